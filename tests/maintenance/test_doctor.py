"""`easel doctor` on sound and on broken installations."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import json
import shutil
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from app.cli import doctor as doctor_command
from app.cli.commands import easel as command
from tests.database.test_embedded import run_sql
from tests.test_cli import RESULTS, easel, files, running  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.slow, pytest.mark.own_database]

FAULT, WARNING, OK = "fault", "warning", "ok"
RANDOM_KEY = "7f3a9c01d2e4b5860f1c2d3e4a5b6978"


@pytest.fixture
def findings(database_url, monkeypatch):
    """Return the findings of `easel doctor` by check, with settings from the environment."""

    def examine(**environment: object) -> dict[str, dict[str, str]]:
        for name, value in ({"DATABASE_URL": database_url} | environment).items():
            monkeypatch.setenv(name, str(value))
        result = CliRunner().invoke(command, ["doctor", "--json"])
        report = json.loads(result.stdout)
        severities = {finding["severity"] for finding in report["findings"]}
        assert report["state"] == next(state for state in (FAULT, WARNING, OK) if state in severities)
        assert result.exit_code == (OK, WARNING, FAULT).index(report["state"])
        assert all(bool(finding["remedy"]) == (finding["severity"] != OK) for finding in report["findings"])
        return {finding["check"]: finding for finding in report["findings"]}

    return examine


class DiskUsage(NamedTuple):
    free: int


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that refuses connections, and that no other program can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        yield int(taken.getsockname()[1])


def test_a_sound_installation_has_no_finding(tmp_path, monkeypatch):
    monkeypatch.setenv("EASEL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("EASEL_BACKUP_DIR", str(tmp_path / "backups"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: DiskUsage(10**12))
    for arguments in (["migrate"], ["backup"]):
        assert CliRunner().invoke(command, arguments).exit_code == 0
    result = CliRunner().invoke(command, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "0 faults, 0 warnings." in result.output


def test_a_folder_without_a_database_is_a_fault_and_stays_empty(findings, tmp_path):
    found = findings(DATABASE_URL="", EASEL_DATA_DIR=tmp_path / "none")
    assert found["database"]["severity"] == FAULT
    assert not (tmp_path / "none").exists()


def test_people_read_each_fault_with_its_remedy(findings, monkeypatch, database_url):
    findings()
    result = CliRunner().invoke(command, ["doctor"])
    assert result.exit_code == 2
    printed = " ".join(result.output.split())
    assert "fault fsync: fsync is off: a power cut can destroy the database. Run `ALTER SYSTEM SET fsync" in printed


def test_a_server_that_may_lose_answers_is_a_fault(findings, database_url):
    name = make_url(database_url).database
    run_sql(database_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    found = findings()
    assert found["fsync"]["severity"] == found["full_page_writes"]["severity"] == FAULT
    assert found["synchronous_commit"]["severity"] == FAULT
    assert found["autovacuum"]["severity"] == found["wal_level"]["severity"] == WARNING


def test_an_old_schema_is_a_fault(findings, database_url):
    assert findings()["schema"]["severity"] == OK
    run_sql(database_url, "UPDATE alembic_version SET version_num = '0010_lock_answers'")
    found = findings()["schema"]
    assert found["severity"] == FAULT
    assert "easel migrate" in found["remedy"]


def test_a_database_without_tables_is_a_fault(findings, database_url):
    run_sql(database_url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    assert findings()["schema"]["severity"] == FAULT


def test_a_database_that_does_not_answer_is_a_fault(findings, silent_port):
    found = findings(DATABASE_URL=f"postgresql://somebody:hidden7@127.0.0.1:{silent_port}/easel")
    assert found["database"]["severity"] == FAULT
    assert "hidden7" not in json.dumps(found)


@pytest.mark.parametrize("key", ["change-me-change-me-change-me-change-me", "k" * 32, "ab" * 20])
def test_a_key_that_others_can_guess_is_a_fault(findings, key):
    found = findings(EASEL_SECRET_KEY=key)
    assert found["secrets"]["severity"] == FAULT
    assert "EASEL_SECRET_KEY" in found["secrets"]["message"]
    assert key not in json.dumps(found)
    assert findings(EASEL_SECRET_KEY=RANDOM_KEY)["secrets"]["severity"] == OK


@pytest.mark.parametrize("password", ["postgres", "easel", "password123", "changeme", "1234"])
def test_a_password_of_an_example_is_a_fault(findings, password, silent_port):
    found = findings(DATABASE_URL=f"postgresql://easel:{password}@127.0.0.1:{silent_port}/easel")
    assert found["secrets"]["severity"] == FAULT
    assert "DATABASE_URL" in found["secrets"]["message"]


def test_a_mail_server_that_does_not_answer_is_a_fault(findings, silent_port):
    assert findings()["mail"]["severity"] == OK
    found = findings(EASEL_SMTP_URL=f"smtp://somebody:hidden7@127.0.0.1:{silent_port}")
    assert found["mail"]["severity"] == FAULT
    assert "hidden7" not in json.dumps(found)


@pytest.mark.parametrize(("free", "severity"), [(10**8, FAULT), (10**9, WARNING), (10**12, OK)])
def test_a_full_disk_is_found(findings, monkeypatch, tmp_path, free, severity):
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: DiskUsage(free))
    found = findings(EASEL_BACKUP_DIR=tmp_path / "not made yet")
    assert found["disk for temporary files"]["severity"] == severity
    assert found["disk for backups"]["severity"] == severity


@pytest.mark.parametrize(("hours", "severity"), [(0, OK), (1, WARNING), (-1, WARNING)])
def test_a_clock_that_differs_from_the_database_is_a_warning(findings, monkeypatch, hours, severity):
    monkeypatch.setattr(doctor_command, "current_utc_time", lambda: datetime.now(UTC) + timedelta(hours=hours))
    assert findings()["clock"]["severity"] == severity


def test_backups_that_are_missing_unfinished_or_old_are_a_warning(findings, tmp_path):
    assert findings()["backups"]["severity"] == WARNING
    folder = tmp_path / "backups"
    assert findings(EASEL_BACKUP_DIR=folder)["backups"]["severity"] == WARNING
    folder.mkdir()
    now = datetime.now(UTC)
    (folder / f"easel-{now:%Y%m%d-%H%M%S}.dump").write_text("without a manifest")
    for age, severity in ((3, WARNING), (0, OK)):
        for suffix in (".dump", ".json"):
            (folder / f"easel-{now - timedelta(days=age):%Y%m%d-%H%M%S}{suffix}").write_text("")
        assert findings()["backups"]["severity"] == severity


def test_an_index_that_is_invalid_or_missing_is_a_fault(findings, database_url):
    found = findings()
    assert found["invalid indexes"]["severity"] == found["missing indexes"]["severity"] == OK
    invalid, missing = run_sql(
        database_url,
        "SELECT array_agg(i.indexname) FROM (SELECT indexname FROM pg_indexes WHERE tablename = 'hits' "
        "AND indexname LIKE '%idx' ORDER BY 1 LIMIT 2) AS i",
    )
    run_sql(
        database_url,
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{invalid}'::regclass",
        f"DROP INDEX {missing}",
    )
    found = findings()
    assert f"REINDEX INDEX CONCURRENTLY {invalid}" in found["invalid indexes"]["remedy"]
    assert missing in found["missing indexes"]["message"]
    assert found["invalid indexes"]["severity"] == found["missing indexes"]["severity"] == FAULT


class NotEasel(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


def test_a_public_address_that_is_not_easels_is_a_fault(findings, silent_port):
    with HTTPServer(("127.0.0.1", 0), NotEasel) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        wrong = findings(EASEL_PUBLIC_URL=f"http://127.0.0.1:{server.server_port}")["public address"]
        server.shutdown()
    assert wrong["severity"] == FAULT
    assert "the reply is not from Easel" in wrong["message"]
    assert findings(EASEL_PUBLIC_URL=f"http://127.0.0.1:{silent_port}")["public address"]["severity"] == FAULT


def test_a_network_without_a_public_address_is_a_warning(findings):
    assert findings()["public address"]["severity"] == OK
    assert findings(EASEL_HOST="0.0.0.0")["public address"]["severity"] == WARNING


def test_too_few_connections_are_a_fault(findings):
    assert findings()["connections"]["severity"] == OK
    found = findings(EASEL_WORKERS=64, EASEL_POOL_SIZE=100)["connections"]
    assert found["severity"] == FAULT
    assert "6597 connections" in found["message"]


def test_a_variable_that_nothing_reads_is_a_warning(findings):
    found = findings(EASEL_WORKRES=4)["unknown settings"]
    assert found["severity"] == WARNING
    assert found["message"] == "EASEL_WORKRES is not a setting and has no effect. Did you mean EASEL_WORKERS?"


@pytest.mark.parametrize(
    ("revision", "remedy"),
    [
        ("0001_initial", "easel migrate"),
        ("0999_future", "newer version"),
        ("0044", "last 0.1 release"),
        ("of another program", "DATABASE_URL"),
    ],
)
def test_the_remedy_for_a_schema_is_one_that_works(findings, database_url, revision, remedy):
    run_sql(database_url, f"UPDATE alembic_version SET version_num = '{revision}'")
    assert remedy in findings()["schema"]["remedy"]


def test_a_setting_that_cannot_be_read_is_a_fault(findings):
    found = findings(EASEL_PORT="many")
    assert list(found) == ["settings"]
    assert "EASEL_PORT" in found["settings"]["message"]


def test_posteriors_that_do_not_follow_from_the_answers_are_a_fault(findings, easel, running, files, database_url):
    (Path(files) / "results.csv").write_text(RESULTS)
    easel("campaign", "import-responses", running, files / "results.csv")
    assert findings()["posteriors"]["severity"] == OK
    run_sql(database_url, "UPDATE posteriors SET judgments = judgments + 1")
    found = findings()["posteriors"]
    assert found["severity"] == FAULT
    assert "easel verify verbs" in found["remedy"]


def test_alert_messages_that_cannot_be_sent_are_a_warning(findings, running, database_url):
    assert findings()["alert messages"]["severity"] == OK
    run_sql(
        database_url,
        "INSERT INTO alerts (campaign_id, kind, occasion, about, because) "
        "SELECT id, 'quiet', 'o', 'a', '' FROM campaigns",
        "INSERT INTO alert_messages (campaign_id, alert_id, way, receiver, problem) "
        "SELECT campaign_id, id, 'webhook', '', 'It does not answer.' FROM alerts",
    )
    assert findings()["alert messages"]["severity"] == WARNING


def test_lines_that_are_too_long_continue_below_the_message(tmp_path, monkeypatch):
    monkeypatch.setenv("EASEL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    *lines, _, numbers = CliRunner().invoke(command, ["doctor"]).stdout.splitlines()
    assert {line[:9] for line in lines} <= {"ok       ", "warning  ", "fault    ", " " * 9}
    assert numbers.startswith("1 fault")
    assert "DATABASE_URL or EASEL_DATA_DIR" in " ".join(" ".join(lines).split())


def test_what_is_all_right_is_said_without_zeros(findings):
    found = findings()
    assert found["alert messages"]["message"] == "All messages of alerts were sent."
    assert found["long transactions"]["message"] == "No transaction has been open for long."
    assert found["posteriors"]["message"].startswith("Nothing was replayed")
