"""Run work in a child process, because minutes of it in this one would make annotators wait, or in a daemon thread.

The process is forked from one that has imported everything and does nothing else; the first use starts that one.
Cancelling the awaiting task kills the child process; so does the death of its parent.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
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

PROCESS_NICENESS = 10  # requests for pages come first
FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(["app.record.revisions", "app.quality.peer_agreement"])

T = TypeVar("T")
PortableException = tuple[Callable[..., Exception], str, dict[str, Any]]
"""An exception that can be pickled: its constructor, its message, and its keyword arguments."""


class ProcessWorkFailed(RuntimeError):
    """Failure of work in a child process; the message is the traceback there, without values."""


@dataclass(frozen=True)
class ProgressMessage:
    """Progress of work in a child process."""

    amount: int


PROGRESS_SENDER: ContextVar[Connection] = ContextVar("PROGRESS_SENDER")


def report_progress(amount: int) -> None:
    """Send the progress of work in a child process to the awaiting task."""
    PROGRESS_SENDER.get().send(ProgressMessage(amount))


async def run_in_process(
    work: Callable[..., Coroutine[Any, Any, T]],
    *arguments: Any,
    on_progress: Callable[[int], None] = lambda _amount: None,
) -> T:
    """Return the result of `await work(*arguments)`, run in a child process.

    Args:
        work: A function of a module.
        *arguments: Its arguments, which can be pickled.
        on_progress: Called with each amount that the work passes to `report_progress`.

    Raises:
        Refusal: As the work raises it.
        ConnectionError: The database was away.
        RuntimeError: The work failed otherwise, or was killed.

    """
    receiver, sender = FORK_SERVER.Pipe(duplex=False)
    process = FORK_SERVER.Process(target=run_work_in_child_and_send_result, args=(sender, work, arguments), daemon=True)
    start_task = asyncio.create_task(asyncio.to_thread(process.start))  # the first time it takes a second
    try:
        await asyncio.shield(start_task)
        sender.close()  # so that this process notices when the child's end closes
        result: T
        result, problem = await receive_progress_then_result_and_problem(receiver, on_progress)
    except asyncio.CancelledError:
        start_task.add_done_callback(lambda _started: kill_process_if_started(process))
        raise
    finally:
        receiver.close()
    if problem is not None:
        kind, message, details = problem
        raise kind(message, **details)
    return result


def kill_process_if_started(process: BaseProcess) -> None:
    """Kill a process, unless it could not be started."""
    with suppress(AttributeError):
        process.kill()


async def wait_until_readable(receiver: Connection) -> None:
    """Wait for a message or the end of the other side, without occupying a thread."""
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(receiver.fileno(), is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(receiver.fileno())
    # uvloop makes what it watches non-blocking; but a long message comes in parts, and its reader waits for them.
    os.set_blocking(receiver.fileno(), True)


async def receive_progress_then_result_and_problem(
    receiver: Connection, on_progress: Callable[[int], None]
) -> tuple[Any, PortableException | None]:
    """Pass progress on until the work is done, then return its result and the exception that it raised."""
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
        return None, (RuntimeError, "a child process ended before its work was done", {})
    return message


def run_work_in_child_and_send_result(
    sender: Connection, work: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]
) -> None:
    """Do the work in the child process, and send its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal stops the server, which ends this process
    os.nice(PROCESS_NICENESS)
    PROGRESS_SENDER.set(sender)
    Thread(target=wait_for_parent_end_then_exit, daemon=True).start()
    sender.send(asyncio.run(await_result_and_problem(work(*arguments))))


def wait_for_parent_end_then_exit() -> None:
    """Exit as soon as the parent process ends, since a killed parent cannot end this one."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)


async def await_result_and_problem(work: Coroutine[Any, Any, Any]) -> tuple[Any, PortableException | None]:
    """Return the result of the work, and the exception that it raised."""
    try:
        return await work, None
    except Refusal as refusal:
        return None, (type(refusal), refusal.message, refusal.details | {"code": refusal.code})
    except Exception as problem:  # noqa: BLE001  (raised in the awaiting task)
        away = isinstance(problem, DATABASE_ERRORS) and is_database_away(problem)
        return None, (ConnectionError if away else ProcessWorkFailed, format_redacted_traceback(problem), {})


async def run_in_daemon_thread(work: Callable[[], T], name: str) -> T:
    """Return the result of `work`, run in a daemon thread, so that a stop of the server does not wait for it.

    `asyncio.to_thread` shares a few threads with all other work; this function uses none of them, so work that hangs
    for seconds delays nothing else. The caller limits the number of such threads.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:  # noqa: BLE001  (raised where it is awaited)
            future.set_exception(problem)

    Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
