"""examples/point_in_time.sh: after a crash, a database is restored as it was at a time."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from app.cli.commands import easel as command
from app.database.embedded import choose_server_identity, iterate_binary_folders, run_postgres_and_yield_url
from app.database.migrate import upgrade_schema
from tests.database.test_embedded import run_sql, wait_until
from tests.test_cli import files  # noqa: F401  (fixture)

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "point_in_time.sh"
BINARIES = next(path for path in iterate_binary_folders() if path.exists())


def run_script(*arguments: object, **environment: str) -> None:
    subprocess.run([SCRIPT, *map(str, arguments)], check=True, capture_output=True, env=os.environ | environment)


def run_easel(*arguments: object) -> str:
    result = CliRunner().invoke(command, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@contextmanager
def postgres_until_crash(data: Path) -> Iterator[str]:
    """The cluster's server without a supervisor; the end of the block kills it."""
    cluster = data / "postgresql"
    options = ("-k", cluster, "-c", "listen_addresses=")
    prefix = choose_server_identity(cluster).prefix
    server = subprocess.Popen([*prefix, BINARIES / "postgres", "-D", cluster, *options], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: subprocess.run([BINARIES / "pg_isready", "-q", "-h", cluster], check=False).returncode == 0)
        yield f"postgresql+asyncpg://app@/postgres?host={quote(str(cluster))}&port=5432"
    finally:
        os.kill(int((cluster / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        server.kill()
        server.wait()


def test_every_answer_before_the_time_is_restored_and_none_after_it(files, tmp_path_factory, monkeypatch):
    folder = Path(tmp_path_factory.mktemp("pitr"))
    archive, data = folder / "archive", folder / "data"
    (archive / "wal").mkdir(parents=True)
    with run_postgres_and_yield_url(data) as url:
        upgrade_schema(url)
        run_outside = {"archive_mode": "on", "archive_command": f"{SCRIPT} archive {archive} %p %f"}
        for name, value in run_outside.items():
            run_sql(url, "COMMIT", f"ALTER SYSTEM SET {name} = '{value}'")
    with postgres_until_crash(data) as url:
        monkeypatch.setenv("DATABASE_URL", url)
        run_easel("campaign", "create", "--name", "Verbs", "--question", "How often?", "--judgments-per-item", 40)
        run_easel("campaign", "import", "verbs", files / "items.csv")
        run_easel("campaign", "launch", "verbs")
        simulate = ("simulate", "verbs", "--pace", 0, "--hits")
        run_easel(*simulate, 3)
        environment = {"PGHOST": str(data / "postgresql"), "PGUSER": "app"}
        run_script("base", archive, PG_BASEBACKUP=str(BINARIES / "pg_basebackup"), **environment)
        run_sql(url, "SELECT pg_switch_wal()")
        (files / "more.csv").write_text(
            "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n"
            + "".join(f"A{k},W{k},v0,v1,70,30\n" for k in range(100))
        )
        run_easel("campaign", "import-responses", "verbs", files / "more.csv")
        expected = run_easel("export", "verbs", "responses")
        run_sql(url, "SELECT pg_switch_wal()")
        time = run_sql(url, "SELECT clock_timestamp()::text")
        run_easel("campaign", "finish", "verbs")
    restored = folder / "restored"
    restored.mkdir()
    run_script("restore", archive, restored / "postgresql", time, data / "postgresql" / "pg_wal")
    with run_postgres_and_yield_url(restored) as url:
        wait_until(lambda: not run_sql(url, "SELECT pg_is_in_recovery()"))
        monkeypatch.setenv("DATABASE_URL", url)
        assert run_easel("export", "verbs", "responses") == expected
        assert run_sql(url, "SELECT status FROM campaigns") == "running"
        assert "Replayed 103 responses" in run_easel("verify", "verbs")


def test_a_cluster_that_exists_is_not_overwritten(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "cluster").mkdir()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run_script("restore", tmp_path, tmp_path / "cluster", "2026-11-28 03:00:00+00")
    assert b"exists already" in refused.value.stderr
