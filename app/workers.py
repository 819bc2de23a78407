"""The server as processes: uvicorn in the main one or in workers, and how all of them end together.

A worker imports this before it knows anything: what else it needs is imported while it loads the application.
"""

import gc
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import uvicorn
from uvicorn.supervisors import Multiprocess

from app.imports import uncollected
from app.protocol import LimitedProtocol
from app.settings import Settings

SILENCE_SECONDS = 60  # then a worker is replaced; on a busy machine one needs more than uvicorn's 5 s just to start
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GOODBYE_SECONDS = 5  # for requests under way, and for browsers that hold a live page open


class EndRequest:
    """Whether a signal asked this process to end while it starts.

    It interrupts what is under way. But Python drops an exception that comes up in a destructor or a weak reference's
    callback, where a process that imports much spends some of its time: so it is remembered, too.
    """

    def __init__(self) -> None:
        self.asked = False
        for number in signals_not_ignored():
            signal.signal(number, self.interrupt)

    def interrupt(self, _signal: int, _frame: object) -> NoReturn:
        self.asked = True
        raise KeyboardInterrupt


def signals_not_ignored() -> list[signal.Signals]:
    """Those of `ENDING` that this process does not ignore: who started it may want that, as `nohup` does."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]


class Configuration(uvicorn.Config):
    """uvicorn's configuration; `load` is the first thing of ours that runs in a worker."""

    def load(self) -> None:
        end_with_parent()
        with uncollected():
            super().load()
            gc.freeze()  # nor is it looked through later, which would hold up every request under way


class Server(uvicorn.Server):
    """uvicorn's server; asked once more to end, it still does so in order."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        for number in signals_not_ignored():
            signal.signal(number, self.handle_exit)

    def handle_exit(self, _signal: int, _frame: object) -> None:
        self.should_exit = True


class Workers(Multiprocess):
    """uvicorn's supervisor, with a socket of its own for every worker; a new worker takes over a dead one's."""

    handle_hup = Multiprocess.handle_term  # as with one worker, a terminal that goes away ends the server

    def __init__(self, config: uvicorn.Config, listeners: Sequence[socket.socket]) -> None:
        self.listeners = listeners
        ignored = set(ENDING).difference(signals_not_ignored())
        super().__init__(config, [])
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            process.child_conn.close()  # else one that died in its start would be waited for as one that is silent
        super().keep_subprocess_alive()

    @property
    def sockets(self) -> list[socket.socket]:
        """What the worker that is about to start listens on: that of the one it replaces, at first the next one's."""
        # Not by who is dead: while one is waited for, another can die that is replaced only afterwards.
        ended_by_us = [k for k, process in enumerate(self.processes) if process.parent_conn.closed]
        return [self.listeners[ended_by_us[0] if ended_by_us else len(self.processes)]]

    @sockets.setter
    def sockets(self, _none: list[socket.socket]) -> None:
        pass

    def handle_ttin(self) -> None:
        """One worker more would have no socket."""

    def handle_ttou(self) -> None:
        """One worker fewer would leave its visitors waiting."""


def run(settings: Settings, listeners: list[socket.socket], end: EndRequest) -> None:
    """Serve until a signal comes, here or in workers; not at all if one has come."""
    configuration = Configuration(
        "app.main:create_app",
        factory=True,
        workers=settings.workers,
        log_level="warning",
        http=LimitedProtocol,
        ws="none",
        access_log=False,  # platforms put worker ids into query strings
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        timeout_worker_healthcheck=SILENCE_SECONDS,
    )
    # From here on uvicorn handles signals: an exception raised into a starting event loop would hang it.
    serve_until_signalled: Callable[[], None]
    if settings.workers == 1:
        serve_until_signalled = partial(Server(configuration).run, sockets=listeners)
    else:
        serve_until_signalled = Workers(configuration, listeners).run
    if not end.asked:
        serve_until_signalled()


def end_with_parent() -> None:
    """In a worker: end when the main process does. A killed main process can tell nobody."""
    if parent := multiprocessing.parent_process():

        def follow() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()
