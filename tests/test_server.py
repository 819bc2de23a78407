"""`easel serve` as people start and end it: real processes, a PostgreSQL of its own, signals."""

import asyncio
import gc
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from sqlalchemy import text

from app.database.postmaster import command_line_of_process_or_empty
from app.server import processes
from app.server import serve as servers
from app.server.http_protocol import LimitedHttpProtocol
from tests.database.test_embedded import postmaster_pid, process_is_running, wait_until
from tests.servers import COMMAND, ENVIRONMENT, PATIENT_SECONDS, EaselServer, easel_serving

pytestmark = pytest.mark.slow

PATIENT = PATIENT_SECONDS
SOMEBODY = {"PROLIFIC_PID": "SECRETWORKER", "STUDY_ID": "s", "SESSION_ID": "t"}


@pytest.fixture
def data(demo_data: Path) -> Path:
    return demo_data


@pytest.fixture(scope="module")
def served(
    demo_once: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EaselServer]:
    """A server with so many workers, for tests that leave it as it was: a start takes seconds.

    It is started as `nohup` does, ended by Ctrl-C, and must never have named an annotator.
    """
    data = shutil.copytree(demo_once, tmp_path_factory.mktemp("shared") / "data")
    with easel_serving(data, "--workers", request.param, command=("nohup", *COMMAND)) as server:
        wait_until(lambda: answers(server), PATIENT)
        yield server
        assert_ended_in_order(server, signal.SIGINT)
        assert SOMEBODY["PROLIFIC_PID"] not in server.rest()


with_workers = partial(pytest.mark.parametrize, "served", indirect=True)


def easel(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env=ENVIRONMENT | {"EASEL_DATA_DIR": str(data)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENT,
    )


def workers_of(pid: int) -> list[int]:
    """Return the server processes below the main one."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if "spawn_main" in command_line_of_process_or_empty(int(child))]


def get(url: str, **how: Any) -> httpx.Response:
    # Nothing is encrypted here, and to read the authorities' certificates takes longer than most requests.
    return httpx.get(url, timeout=PATIENT, follow_redirects=True, verify=False, **how)


def answers(server: EaselServer) -> bool:
    try:
        return get(f"{server.base}/ready").status_code == 200
    except httpx.TransportError:
        return False


def assert_ended_in_order(server: EaselServer, *how: signal.Signals) -> None:
    """A signal, or more of them at once, ends everything, PostgreSQL included, and that is said in a word.

    A start takes seconds. So tests that need a server of their own end it each in another way, with one and with two
    workers, and no test starts one only to end it.
    """
    database = postmaster_pid(server.data)
    *first, last = how
    for impatient in first:
        server.process.send_signal(impatient)
    assert server.end(last) == 0
    assert not process_is_running(database)
    assert not (server.data / "address").exists()
    assert server.rest().endswith("Stopped.\n")
    assert "Traceback" not in server.rest()


@with_workers(["1"])
def test_the_demo_is_served_with_a_link_that_stays_the_same_at_the_next_start(served, data):
    """Both servers start on what the first start of all has made."""
    assert "How often is this verb used?" in get(served.link).text
    assert "/login?token=" not in served.welcome  # a file is no terminal
    with easel_serving(data, "--demo") as again:
        assert again.link.rpartition("/")[2] == served.link.rpartition("/")[2]
        assert again.welcome.count("/link/") == 1
        assert answers(again)
        assert_ended_in_order(again, signal.SIGINT, signal.SIGINT)
        assert again.rest().strip() == "Stopped."


@with_workers(["1", "2"])
def test_replies_do_not_say_which_program_serves(served):
    assert "server" not in get(f"{served.base}/login").headers


@with_workers(["1"])
def test_commands_find_the_database_and_the_address_of_the_running_server(served):
    said = easel(served.data, "login")
    assert said.stdout.startswith(f"{served.base}/login?token=")
    assert said.stderr == ""
    assert get(said.stdout.strip()).status_code == 200
    shown = json.loads(easel(served.data, "campaign", "show", "lexical-frequency", "--json").stdout)
    assert shown["links"]["link"] == served.link


@with_workers(["1", "2"])
def test_a_terminal_that_goes_away_is_nothing_to_a_server_that_is_to_ignore_that(served):
    served.process.send_signal(signal.SIGHUP)
    assert answers(served)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_when_the_main_process_is_killed_workers_and_postgresql_end_too_and_commands_do_without(data):
    with easel_serving(data, "--workers", "2") as server:
        assert answers(server)
        wait_until(lambda: len(workers_of(server.process.pid)) == 2)
        others = [*workers_of(server.process.pid), postmaster_pid(data)]
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        wait_until(lambda: not any(process_is_running(pid) for pid in others))
    # The address of a server that was killed is left over, and not used.
    assert (data / "address").read_text() == server.base
    said = easel(data, "login")
    assert said.stdout.startswith("http://127.0.0.1:8000/login?token=")
    assert said.stderr == "No Easel is running on this data folder; start it with `make run`.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@with_workers(["2"])
def test_a_worker_that_is_killed_is_replaced(served):
    wait_until(lambda: len(workers_of(served.process.pid)) == 2)
    victim = workers_of(served.process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in (now := workers_of(served.process.pid)) and len(now) == 2)
    wait_until(lambda: listening(served) == 2, PATIENT)
    assert answers(served)


def listening(server: EaselServer) -> int:
    """Return the number of sockets that listen on the server's port."""
    port = f":{int(server.base.rpartition(':')[2]):04X}"
    table = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(columns[1].endswith(port) and columns[3] == "0A" for columns in table)


def established(pid: int) -> int:
    """Return a process's connections to visitors: its sockets on the server's port except the listening one."""
    table = (line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])
    open_sockets = {columns[9] for columns in table if columns[3] == "01"}
    held = {leads_to(file).strip("socket:[]") for file in Path(f"/proc/{pid}/fd").iterdir()}
    return len(open_sockets & held)


def leads_to(file: Path) -> str:
    """Return the name of a process's open file; empty if it was closed meanwhile, as in a worker that still starts."""
    with suppress(FileNotFoundError):
        return str(file.readlink())
    return ""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@with_workers(["2"])
def test_visitors_who_come_at_once_are_spread_over_the_workers(served):
    wait_until(lambda: listening(served) == 2, PATIENT)
    with ExitStack() as stack:
        visitors = [
            stack.enter_context(socket.create_connection(("127.0.0.1", int(served.base.rpartition(":")[2]))))
            for _ in range(64)
        ]
        assert len(visitors) == 64
        wait_until(lambda: sum(map(established, workers_of(served.process.pid))) >= 64)
        # Each is as likely to come to one as to the other: 11 or fewer of 64 happen once in ten million times.
        assert min(map(established, workers_of(served.process.pid))) >= 12


@contextmanager
def two_workers(monkeypatch: pytest.MonkeyPatch, application: str = "hello") -> Iterator[processes.WorkerSupervisor]:
    """Run a supervisor with two started workers, which only the test supervises."""
    with servers.open_one_socket_per_worker("127.0.0.1", 0, 2) as listeners, ExitStack() as stack:
        for listener in listeners:
            listener.listen()
        configuration = uvicorn.Config(f"tests.servers:{application}", lifespan="off", workers=2, log_level="critical")
        with monkeypatch.context() as patched:
            patched.setattr(signal, "signal", lambda *_: None)
            workers = processes.WorkerSupervisor(configuration, listeners)
        stack.enter_context(workers.port)
        workers.init_processes()
        stack.callback(workers.join_all)
        stack.callback(workers.terminate_all)
        assert all(worker.wait_until_ready(PATIENT) for worker in workers.processes)
        yield workers


def said_to_visitors(workers: processes.WorkerSupervisor) -> set[str]:
    """Return the answers that many visitors get, one after another. The kernel chooses a worker for each by chance."""
    port = workers.port.getsockname()[1]
    return {get(f"http://127.0.0.1:{port}").text for _ in range(32)}


def test_the_visitors_of_a_worker_that_has_died_come_to_the_other_one_at_once(monkeypatch):
    with two_workers(monkeypatch) as workers:
        first, _ = workers.processes
        first.process.kill()
        first.process.join()
        assert said_to_visitors(workers) == {"hello"}  # although nobody has replaced it
        workers.keep_subprocess_alive()
        assert workers.processes[0].wait_until_ready(PATIENT)
        assert said_to_visitors(workers) == {"hello"}


def test_a_worker_that_dies_while_another_is_replaced_leaves_no_visitors_alone(monkeypatch):
    with two_workers(monkeypatch) as workers:
        first, second = workers.processes

        def hangs(timeout):
            first.process.kill()
            first.process.join()
            return False

        monkeypatch.setattr(second, "is_alive", hangs)
        workers.keep_subprocess_alive()
        workers.keep_subprocess_alive()
        assert all(worker.wait_until_ready(PATIENT) for worker in workers.processes)
        assert said_to_visitors(workers) == {"hello"}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells what CPU time a process used")
def test_a_worker_that_is_stopped_is_replaced_soon(monkeypatch):
    monkeypatch.setattr(processes, "HANGING_SECONDS", 0.5, raising=False)
    with two_workers(monkeypatch) as workers:
        workers.config.timeout_worker_healthcheck = PATIENT
        workers.keep_subprocess_alive()  # each has answered once
        stopped, other = workers.processes
        assert stopped.pid
        os.kill(stopped.pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            while workers.processes[0] is stopped and time.monotonic() - began < PATIENT / 4:
                workers.keep_subprocess_alive()  # it may find answers to what it asked before
        finally:
            with suppress(ProcessLookupError):
                os.kill(stopped.pid, signal.SIGCONT)
        assert time.monotonic() - began < PATIENT / 4
        assert not stopped.process.is_alive()
        assert workers.processes[1] is other
        assert workers.processes[0].wait_until_ready(PATIENT)
        assert said_to_visitors(workers) == {"hello"}


def test_a_worker_that_holds_pythons_lock_on_a_busy_machine_is_not_replaced(monkeypatch):
    monkeypatch.setattr(processes, "HANGING_SECONDS", 0.3, raising=False)
    with two_workers(monkeypatch, "busy") as workers, ThreadPoolExecutor(4) as visitors:
        workers.config.timeout_worker_healthcheck = PATIENT
        workers.keep_subprocess_alive()
        at_first = [worker.pid for worker in workers.processes]
        port = workers.port.getsockname()[1]
        answered = [visitors.submit(get, f"http://127.0.0.1:{port}") for _ in range(4)]
        silent = 0
        while not all(answer.done() for answer in answered):
            began = time.monotonic()
            workers.keep_subprocess_alive()
            silent += time.monotonic() - began > processes.HANGING_SECONDS
        assert silent, "no worker was ever silent for long enough"
        assert [worker.pid for worker in workers.processes] == at_first
        assert {answer.result().text for answer in answered} == {"hello"}


def test_a_worker_that_has_not_answered_yet_is_given_time_to_start(monkeypatch):
    monkeypatch.setattr(processes, "HANGING_SECONDS", 0.1, raising=False)
    monkeypatch.setattr(processes, "cpu_seconds_of_process_or_none", lambda _pid: 0.0, raising=False)
    with two_workers(monkeypatch) as workers:
        workers.config.timeout_worker_healthcheck = PATIENT
        starting = workers.processes[0]
        assert starting.pid
        os.kill(starting.pid, signal.SIGSTOP)
        threading.Timer(1, os.kill, [starting.pid, signal.SIGCONT]).start()
        workers.keep_subprocess_alive()
        assert workers.processes[0] is starting


@pytest.fixture
def restored_signals():
    """Restore the signal handlers afterwards, because a server in this process takes them."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored_signals")
async def test_visitors_whom_the_kernel_has_let_in_are_served_by_a_server_that_ends():
    with servers.open_one_socket_per_worker("127.0.0.1", 0, 1) as (listener,):
        listener.listen()
        address = listener.getsockname()
        configuration = uvicorn.Config(
            "tests.servers:hello",
            lifespan="off",
            http=LimitedHttpProtocol,
            log_level="critical",
            timeout_graceful_shutdown=60,
        )
        configuration.load()
        server = processes.OrderlyServer(configuration)
        server.lifespan = configuration.lifespan_class(configuration)
        await server.startup(sockets=[listener])
        with ExitStack() as stack:  # the event loop accepts none of them: it does not run meanwhile
            visitors = [stack.enter_context(socket.create_connection(address)) for _ in range(8)]
            ending = asyncio.create_task(server.shutdown(sockets=[listener]))
            await asyncio.sleep(0.01)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
            for visitor in visitors:
                visitor.sendall(b"GET / HTTP/1.1\r\nHost: easel\r\n\r\n")
            await ending
            for visitor in visitors:
                visitor.settimeout(PATIENT)
                reply = b"".join(iter(partial(visitor.recv, 4096), b""))
                assert reply.startswith(b"HTTP/1.1 200")
                assert b"hello" in reply


def visits(port: int, ended: threading.Event, outcomes: Counter[str]) -> None:
    """Visit a server again and again, on a connection for each visit, until it has ended."""
    request = b"GET /health HTTP/1.1\r\nHost: easel\r\nConnection: close\r\n\r\n"
    while not ended.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENT) as visitor:
                visitor.sendall(request)
                reply = b"".join(iter(partial(visitor.recv, 4096), b""))
            outcomes["answered" if reply.endswith(b'{"status":"ok"}') else "cut off"] += 1
        except ConnectionRefusedError:
            outcomes["refused"] += 1
            ended.wait(0.02)
        except ConnectionError as problem:
            outcomes[type(problem).__name__] += 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_under_load_resets_no_connection(data, workers):
    with easel_serving(data, "--workers", workers) as server, ExitStack() as stack:
        wait_until(lambda: answers(server), PATIENT)
        ended, outcomes = threading.Event(), Counter[str]()
        port = int(server.base.rpartition(":")[2])
        pool = stack.enter_context(ThreadPoolExecutor())
        visiting = [pool.submit(visits, port, ended, outcomes) for _ in range(6)]
        wait_until(lambda: outcomes["answered"] > 100, PATIENT)
        assert server.end(signal.SIGTERM) == 0
        wait_until(lambda: outcomes["refused"] > 6)
        ended.set()
        assert not any(visit.exception() for visit in visiting)
        assert set(outcomes) == {"answered", "refused"}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_postgresql_that_cannot_be_started_again_ends_the_server_with_one_line(data, workers):
    with easel_serving(data, "--workers", workers) as server:
        assert answers(server)
        (data / "postgresql/PG_VERSION").unlink()
        os.kill(postmaster_pid(data), signal.SIGKILL)
        assert server.process.wait(PATIENT) == 1
        *_, last = server.rest().splitlines()
    assert last.startswith("easel: PostgreSQL ended (SIGKILL) and could not be started again. ")
    assert last.endswith("(startup_problem)")


def test_a_command_without_a_server_starts_the_database_itself(data):
    assert re.search(r"^lexical-frequency +running +150 ", easel(data, "campaign", "list").stdout, re.MULTILINE)


@with_workers(["1"])
def test_worker_ids_are_not_logged(served):
    key = served.link.rpartition("/")[2]
    assert get(f"{served.base}/prolific/{key}", params=SOMEBODY).status_code == 200
    get(f"{served.base}/nowhere", params=SOMEBODY)
    # `served` looks into all that the server has said, once it has ended.


def test_a_misspelled_setting_is_said_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "EASEL_WORKRES", "4")
    with socket.create_server(("127.0.0.1", 0)) as other:
        result = easel(tmp_path / "data", "serve", "--port", str(other.getsockname()[1]))
    warning = "easel: EASEL_WORKRES is not a setting and has no effect. Did you mean EASEL_WORKERS?"
    assert result.stderr.splitlines()[0] == warning


def test_a_busy_port_is_said_before_anything_else_is_done(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = easel(tmp_path / "data", "serve", "--port", str(port))
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert f"Port {port} on 127.0.0.1 is in use" in result.stderr
    assert f"EASEL_PORT={servers.neighbouring_port_to_suggest(port)} make run" in result.stderr
    assert not (tmp_path / "data").exists()


@with_workers(["1"])
def test_a_second_server_on_the_same_data_is_refused_in_one_line(served):
    result = easel(served.data, "serve", "--port", "0")
    assert result.returncode == 1
    assert re.fullmatch(r"easel: Another Easel is using .*\n", result.stderr)
    assert answers(served)


def test_what_a_server_imports_is_never_looked_through_for_garbage(monkeypatch):
    collecting: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: collecting.append(gc.isenabled()))
    processes.WorkerConfig("tests.servers:hello").load()
    assert collecting == [False]
    assert gc.isenabled()


def test_a_worker_without_a_parent_watches_nobody(monkeypatch):
    started: list[object] = []
    monkeypatch.setattr(threading, "Thread", started.append)
    processes.terminate_with_parent()
    assert started == []


SIGNAL_AT_THE_START = """
import signal, uvicorn
from app import cli
serve = uvicorn.Server.serve
async def signalled(self, sockets=None):
    signal.raise_signal(signal.SIGTERM)
    await serve(self, sockets=sockets)
uvicorn.Server.serve = signalled
cli.main(["serve", "--port", "0"])
"""


def test_a_signal_before_the_server_is_ready_ends_it_too(data):
    command = [sys.executable, "-c", SIGNAL_AT_THE_START]
    environment = ENVIRONMENT | {"EASEL_DATA_DIR": str(data)}
    done = subprocess.run(command, env=environment, timeout=PATIENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Stopped."), done.stderr


def test_workers_that_a_signal_ends_in_their_start_are_not_waited_for(data):
    environment = ENVIRONMENT | {"EASEL_DATA_DIR": str(data)}
    with subprocess.Popen(
        [*COMMAND, "--workers", "2"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        wait_until(lambda: len(workers_of(process.pid)) == 2)
        os.killpg(process.pid, signal.SIGTERM)  # as Ctrl-C and a service manager do
        assert process.wait(processes.WORKER_SILENCE_SECONDS / 2) == 0


SIGNAL_IN_A_DESTRUCTOR = """
import signal, sys
from app import cli
from app.server import processes
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.Signals[sys.argv[1]])
class Configuration(processes.WorkerConfig):
    def __init__(self, *settings, **more):
        Dropped()
        super().__init__(*settings, **more)
processes.WorkerConfig = Configuration
cli.main(["serve", "--port", "0", "--workers", sys.argv[2]])
"""


@pytest.mark.parametrize(("how", "workers"), [("SIGINT", "1"), ("SIGTERM", "2")])
def test_a_signal_whose_exception_python_drops_ends_it_too(data, how, workers):
    command = [sys.executable, "-c", SIGNAL_IN_A_DESTRUCTOR, how, workers]
    environment = ENVIRONMENT | {"EASEL_DATA_DIR": str(data)}
    done = subprocess.run(command, env=environment, timeout=PATIENT, capture_output=True, text=True, check=False)
    assert "Exception ignored" in done.stderr
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Stopped.")


@pytest.mark.parametrize("to_a_person", [True, False])
async def test_a_login_link_is_printed_to_a_terminal_and_into_no_log(database_url, to_a_person):
    words, _ = await servers.prepare_database_returning_welcome_and_key(
        database_url, "http://easel.test", with_demo=False, shows_login_link=to_a_person
    )
    assert ("http://easel.test/login?token=" in words) is to_a_person
    assert ("easel login" in words) is not to_a_person


async def test_only_campaigns_that_run_are_named_at_the_start(database_url, engine):
    first, _ = await servers.prepare_database_returning_welcome_and_key(
        database_url, "http://easel.test", with_demo=True, shows_login_link=False
    )
    assert re.search(r"^  Annotators   http://easel\.test/link/\S+  \(Lexical frequency\)$", first, re.MULTILINE)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE campaigns SET status = 'finished', finished_at = now()"))
    later, _ = await servers.prepare_database_returning_welcome_and_key(
        database_url, "http://easel.test", with_demo=True, shows_login_link=False
    )
    assert "Annotators" not in later
