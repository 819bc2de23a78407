"""Work in a process of its own: beside annotators' requests, minutes of it would keep them waiting for the interpreter.

The process is forked from one that has imported everything and does nothing else, which the first use starts. Whoever
stops waiting ends it, and so does the end of this process.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar

from app.database.session import TROUBLE, is_away
from app.errors import Refusal
from app.redaction import format_exception

NICE = 10  # whoever waits for a page comes first
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["app.record.revisions", "app.quality.compared"])

T = TypeVar("T")
Problem = tuple[Callable[..., Exception], str, dict[str, Any]]
"""An exception: how it is made, its message, and what it has besides."""


class WorkFailed(RuntimeError):
    """Work in another process failed; the message is the traceback there, without values."""


@dataclass(frozen=True)
class HowFar:
    """How far work is, as it tells."""

    what: int


TELLING: ContextVar[Connection] = ContextVar("TELLING")


def tell(what: int) -> None:
    """From work that is done apart: how far it is, to whoever waits for it."""
    TELLING.get().send(HowFar(what))


async def apart(
    work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, told: Callable[[int], None] = lambda _what: None
) -> T:
    """`await work(*arguments)` in another process: a function of a module, with what can be pickled. told: hears what
    the work says by `tell`.

    Raises the `Refusal` that it raises, `ConnectionError` where the database was away, and RuntimeError where it failed
    otherwise, or was killed.
    """
    here, there = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=run, args=(there, work, arguments), daemon=True)
    starting = asyncio.create_task(asyncio.to_thread(process.start))  # the first time it takes a second
    try:
        await asyncio.shield(starting)
        there.close()  # so that its end is heard of
        result: T
        result, problem = await heard(here, told)
    except asyncio.CancelledError:
        starting.add_done_callback(lambda _started: end(process))
        raise
    finally:
        here.close()
    if problem is not None:
        kind, message, details = problem
        raise kind(message, **details)
    return result


def end(process: BaseProcess) -> None:
    """It may not have been able to start."""
    with suppress(AttributeError):
        process.kill()


async def readable(here: Connection) -> None:
    """Wait until there is something to receive, or nothing will come; no thread waits meanwhile."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(here.fileno(), told.set)
    try:
        await told.wait()
    finally:
        loop.remove_reader(here.fileno())


async def heard(here: Connection, told: Callable[[int], None]) -> tuple[Any, Problem | None]:
    """What came of the work, and what it raised."""
    while True:
        await readable(here)
        came = await asyncio.to_thread(received, here)
        if not isinstance(came, HowFar):
            return came
        told(came.what)


def received(here: Connection) -> HowFar | tuple[Any, Problem | None]:
    try:
        came: HowFar | tuple[Any, Problem | None] = here.recv()
    except EOFError:
        return None, (RuntimeError, "a process that worked beside this one has ended before its work was done", {})
    return came


def run(there: Connection, work: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]) -> None:
    """In the other process: do it, and tell what came of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who types it at a terminal stops the server, which ends this
    os.nice(NICE)
    TELLING.set(there)
    Thread(target=end_with_parent, daemon=True).start()
    there.send(asyncio.run(done(work(*arguments))))


def end_with_parent() -> None:
    """Whoever waits for the work may be killed."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)


async def done(work: Coroutine[Any, Any, Any]) -> tuple[Any, Problem | None]:
    """What comes of it, and what it raises."""
    try:
        return await work, None
    except Refusal as refusal:
        return None, (type(refusal), refusal.message, refusal.details | {"code": refusal.code})
    except Exception as problem:  # noqa: BLE001  (raised where somebody waits for it)
        away = isinstance(problem, TROUBLE) and is_away(problem)
        return None, (ConnectionError if away else WorkFailed, format_exception(problem), {})
