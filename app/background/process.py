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

from app.database.session import DATABASE_ERRORS, is_database_away
from app.errors import Refusal
from app.text.redaction import format_redacted_traceback

PROCESS_NICENESS = 10  # whoever waits for a page comes first
FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(["app.record.revisions", "app.quality.peer_agreement"])

T = TypeVar("T")
PortableException = tuple[Callable[..., Exception], str, dict[str, Any]]
"""An exception: how it is made, its message, and what it has besides."""


class ProcessWorkFailed(RuntimeError):
    """Work in another process failed; the message is the traceback there, without values."""


@dataclass(frozen=True)
class ProgressMessage:
    """How far work is, as it tells."""

    amount: int


PROGRESS_SENDER: ContextVar[Connection] = ContextVar("TELLING")


def report_progress(amount: int) -> None:
    """From work that is done apart: how far it is, to whoever waits for it."""
    PROGRESS_SENDER.get().send(ProgressMessage(amount))


async def run_in_process(
    work: Callable[..., Coroutine[Any, Any, T]],
    *arguments: Any,
    on_progress: Callable[[int], None] = lambda _what: None,
) -> T:
    """`await work(*arguments)` in another process: a function of a module, with what can be pickled. told: hears what
    the work says by `tell`.

    Raises the `Refusal` that it raises, `ConnectionError` where the database was away, and RuntimeError where it failed
    otherwise, or was killed.
    """
    receiver, sender = FORK_SERVER.Pipe(duplex=False)
    process = FORK_SERVER.Process(target=child_process_main, args=(sender, work, arguments), daemon=True)
    start_task = asyncio.create_task(asyncio.to_thread(process.start))  # the first time it takes a second
    try:
        await asyncio.shield(start_task)
        sender.close()  # so that its end is heard of
        result: T
        result, problem = await receive_result(receiver, on_progress)
    except asyncio.CancelledError:
        start_task.add_done_callback(lambda _started: kill_process(process))
        raise
    finally:
        receiver.close()
    if problem is not None:
        kind, message, details = problem
        raise kind(message, **details)
    return result


def kill_process(process: BaseProcess) -> None:
    """It may not have been able to start."""
    with suppress(AttributeError):
        process.kill()


async def wait_until_readable(receiver: Connection) -> None:
    """Wait until there is something to receive, or nothing will come; no thread waits meanwhile."""
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(receiver.fileno(), is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(receiver.fileno())


async def receive_result(
    receiver: Connection, on_progress: Callable[[int], None]
) -> tuple[Any, PortableException | None]:
    """What came of the work, and what it raised."""
    while True:
        await wait_until_readable(receiver)
        message = await asyncio.to_thread(receive_message, receiver)
        if not isinstance(message, ProgressMessage):
            return message
        on_progress(message.amount)


def receive_message(receiver: Connection) -> ProgressMessage | tuple[Any, PortableException | None]:
    try:
        message: ProgressMessage | tuple[Any, PortableException | None] = receiver.recv()
    except EOFError:
        return None, (RuntimeError, "a process that worked beside this one has ended before its work was done", {})
    return message


def child_process_main(
    sender: Connection, work: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]
) -> None:
    """In the other process: do it, and tell what came of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who types it at a terminal stops the server, which ends this
    os.nice(PROCESS_NICENESS)
    PROGRESS_SENDER.set(sender)
    Thread(target=exit_with_parent, daemon=True).start()
    sender.send(asyncio.run(result_or_problem(work(*arguments))))


def exit_with_parent() -> None:
    """Whoever waits for the work may be killed."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)


async def result_or_problem(work: Coroutine[Any, Any, Any]) -> tuple[Any, PortableException | None]:
    """What comes of it, and what it raises."""
    try:
        return await work, None
    except Refusal as refusal:
        return None, (type(refusal), refusal.message, refusal.details | {"code": refusal.code})
    except Exception as problem:  # noqa: BLE001  (raised where somebody waits for it)
        away = isinstance(problem, DATABASE_ERRORS) and is_database_away(problem)
        return None, (ConnectionError if away else ProcessWorkFailed, format_redacted_traceback(problem), {})
