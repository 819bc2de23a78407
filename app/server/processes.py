"""Server processes: uvicorn in the main process or in workers, their supervision and their common end.

A worker imports this module first. Everything else is imported while it loads the application, so keep imports few.
"""

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import uvicorn
from uvicorn.config import LOGGING_CONFIG, STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from app.background.ending import PROCESS_IS_ENDING
from app.background.metrics import PROCESS_METRICS
from app.server.http_protocol import LimitedHttpProtocol
from app.server.import_speed import gc_disabled
from app.settings import Settings
from app.text.json_log import JSON_LOG_CONFIG

log = logging.getLogger(__name__)

# A worker without an answer for this long is replaced; on a busy machine the start alone takes more than uvicorn's 5 s.
WORKER_SILENCE_SECONDS = 60
HANGING_SECONDS = 15  # a worker that has answered before is replaced after this time if it uses no CPU: it is not busy
IDLE_SHARE = 0.003  # of a core: threads that wait for the GIL use less, and a running process uses more
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_SIGNAL_SECONDS = 1.0
SHUTDOWN_GRACE_SECONDS = 5  # for running requests, and for browsers that hold a live page open


ATTACH_FILTER_SOCKET_OPTION = 26  # SO_ATTACH_FILTER, see socket(7); Python has no name for it


class StopRequest:
    """Handler of stop signals while this process starts; `is_requested` is True after one came.

    A signal raises KeyboardInterrupt. But Python drops an exception in a destructor or a weak reference's callback,
    where a process that imports many modules spends some of its time, so the request is stored as well.
    """

    def __init__(self) -> None:
        self.is_requested = False
        for number in stop_signals_that_are_not_ignored():
            signal.signal(number, self.interrupt)

    def interrupt(self, _signal: int, _frame: object) -> NoReturn:
        self.is_requested = True
        raise KeyboardInterrupt


def stop_signals_that_are_not_ignored() -> list[signal.Signals]:
    """Return the `STOP_SIGNALS` that this process does not ignore; `nohup`, for example, lets it ignore one."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


class WorkerConfig(uvicorn.Config):
    """uvicorn's configuration; `load` is the first code of Easel that runs in a worker."""

    metrics_folder: Path | None = None  # of the files by which processes exchange their metrics
    drain_seconds = 0

    def load(self) -> None:
        terminate_with_parent()
        PROCESS_METRICS.folder = self.metrics_folder
        with gc_disabled():
            super().load()


class OrderlyServer(uvicorn.Server):
    """uvicorn's server, which stops in an orderly way even after a second signal.

    The first signal makes `/ready` say 503, and the server stops some seconds later, or at a second signal. A signal
    to all processes of the server reaches a worker twice, so one that follows at once does not count.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.drain_seconds = config.drain_seconds if isinstance(config, WorkerConfig) else 0
        self.first_signal_at: float | None = None
        for number in stop_signals_that_are_not_ignored():
            signal.signal(number, self.handle_exit)

    def handle_exit(self, _signal: int, _frame: object) -> None:
        PROCESS_IS_ENDING.set()
        now = time.monotonic()
        if self.first_signal_at is None and self.drain_seconds and self.started:
            self.first_signal_at = now
            loop = asyncio.get_running_loop()
            loop.call_soon_threadsafe(loop.call_later, self.drain_seconds, self.stop_accepting)
        elif self.first_signal_at is None or now - self.first_signal_at > SAME_SIGNAL_SECONDS:
            self.stop_accepting()

    def stop_accepting(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening and end in order.

        Connections that the kernel has accepted are still served: closing the socket would reset them.
        """
        loop = asyncio.get_running_loop()
        waiting = [
            connection
            for listener in sockets or []
            for connection in refuse_new_and_accept_waiting_connections(listener)
        ]
        for server in self.servers:
            server.close()  # without an `await` before, so that no connection comes in between
        await asyncio.gather(*(loop.connect_accepted_socket(self.create_protocol, visitor) for visitor in waiting))
        await super().shutdown(sockets)

    def create_protocol(self) -> asyncio.Protocol:
        """Return the protocol of a connection, as uvicorn makes it."""
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def refuse_new_and_accept_waiting_connections(listener: socket.socket) -> list[socket.socket]:
    """Stop new connections to a socket, and accept those that wait."""
    drop_new_connections(listener)
    listener.settimeout(0)
    accepted: list[socket.socket] = []
    with suppress(OSError):  # none is left, or there is no room for another one
        while True:
            accepted.append(listener.accept()[0])
    for connection in accepted:
        connection.settimeout(0)
    return accepted


def drop_new_connections(listener: socket.socket) -> None:
    """Let the kernel drop packets to a listening socket, so that none connects between the last accept and the close.

    The client's machine tries again and is refused. Works on Linux only.
    """
    if sys.platform == "linux":
        drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # BPF: return 0 bytes of each packet
        with suppress(OSError):
            listener.setsockopt(
                socket.SOL_SOCKET, ATTACH_FILTER_SOCKET_OPTION, struct.pack("HP", 1, ctypes.addressof(drop_all))
            )


class WorkerProcess(Process):
    """uvicorn's worker process, which runs an `OrderlyServer`."""

    has_answered = False

    def is_alive(self, timeout: float = WORKER_SILENCE_SECONDS) -> bool:
        """Return whether the worker answers within `timeout` seconds.

        A stopped or deadlocked worker is given up sooner, but not one that starts, or is slow on a busy machine.
        """
        if not self.process.is_alive():
            return False
        used = cpu_seconds_of_process_or_none(self.pid)
        if not self.ping(HANGING_SECONDS):
            used_now = cpu_seconds_of_process_or_none(self.pid)
            idle = used is not None and used_now is not None and used_now - used < IDLE_SHARE * HANGING_SECONDS
            if (self.has_answered and idle) or not self.ping(timeout - HANGING_SECONDS):
                return False
        self.has_answered = True
        return True

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        self._server = OrderlyServer(self.config)  # in the main thread, before another one asks for it
        super().target(sockets)


class WorkerSupervisor(Multiprocess):
    """uvicorn's supervisor, with a separate socket for every worker.

    Only the worker holds it: when the worker dies, the kernel closes the socket, and new connections go to the other
    workers at once. Its replacement gets another socket, on which it listens as soon as it can serve.
    """

    handle_hup = Multiprocess.handle_term  # as with one worker, a terminal that goes away ends the server

    def __init__(self, config: uvicorn.Config, listeners: Sequence[socket.socket]) -> None:
        """Make a supervisor.

        Args:
            config: uvicorn's configuration.
            listeners: One socket for each first worker, which may have waiting connections; closed here once passed on.

        """
        self.listeners = listeners
        self.port = bind_another_socket_to_same_port(listeners[0])  # reserves the port, even while no worker lives
        ignored = set(STOP_SIGNALS).difference(stop_signals_that_are_not_ignored())
        super().__init__(config, [])
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    def init_processes(self) -> None:
        self.processes = [self.start_worker(listener) for listener in self.listeners]

    def start_worker(self, listener: socket.socket) -> WorkerProcess:
        """Return a new worker, which alone has the socket from now on."""
        worker = WorkerProcess(self.config, [listener])
        worker.start()
        listener.close()
        return worker

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died or are silent; end all if one could not even start."""
        for index, worker in enumerate(self.processes):
            worker.child_conn.close()  # so that a worker that died at its start is not waited for like a silent one
            if self.should_exit.is_set() or worker.is_alive(timeout=self.config.timeout_worker_healthcheck):
                continue
            worker.kill()
            worker.join()
            if worker.exitcode == STARTUP_FAILURE:
                log.error("A server process failed to start, so Easel ends.")
                self.should_exit.set()
                return
            log.warning("Server process %s ended (exit code %s) and is replaced.", worker.pid, worker.exitcode)
            self.processes[index] = self.start_worker(bind_another_socket_to_same_port(self.port))

    def handle_ttin(self) -> None:
        """Ignore the signal: an additional worker would have no socket."""

    def handle_ttou(self) -> None:
        """Ignore the signal: connections at the socket of a removed worker would wait forever."""


def cpu_seconds_of_process_or_none(pid: int | None) -> float | None:
    """Return the CPU time used by all threads of a process, if the system tells."""
    if sys.platform != "linux" or pid is None:
        return None
    with suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3); Python has no name for it
    return None


def bind_another_socket_to_same_port(listener: socket.socket) -> socket.socket:
    """Return another socket on the port of one that shares it, which does not listen yet."""
    other = socket.socket(listener.family, listener.type, listener.proto)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        other.setsockopt(socket.SOL_SOCKET, option, 1)
    other.bind(listener.getsockname())
    return other


def serve_until_stopped(settings: Settings, listeners: list[socket.socket], stop_request: StopRequest) -> None:
    """Serve until a signal comes, in this process or in workers; not at all if one came during the start."""
    configuration = WorkerConfig(
        "app.main:create_server_app",
        factory=True,
        workers=settings.workers,
        log_config=JSON_LOG_CONFIG if settings.log_format == "json" else LOGGING_CONFIG,
        log_level="warning",
        http=LimitedHttpProtocol,
        ws="none",
        server_header=False,
        access_log=False,  # platforms put worker ids into query strings
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        timeout_worker_healthcheck=WORKER_SILENCE_SECONDS,
    )
    configuration.drain_seconds = settings.drain_seconds
    # From here on uvicorn handles signals: an exception raised into a starting event loop would hang it.
    serve_until_signalled: Callable[[], None]
    if settings.workers == 1:
        serve_until_signalled = partial(OrderlyServer(configuration).run, sockets=listeners)
    else:
        serve_until_signalled = WorkerSupervisor(configuration, listeners).run
    with tempfile.TemporaryDirectory(prefix="easel-metrics-") as folder:
        configuration.metrics_folder = Path(folder)
        if not stop_request.is_requested:
            serve_until_signalled()


def terminate_with_parent() -> None:
    """Let a worker end when the main process does, since a killed main process cannot stop its workers."""
    if parent := multiprocessing.parent_process():

        def wait_for_parent() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait_for_parent, daemon=True).start()
