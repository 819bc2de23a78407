"""`easel backup` and `easel restore`, on databases of one server."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import asyncio
import json
import re
import stat
import uuid
from pathlib import Path

import pytest
from sqlalchemy import NullPool, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.database.test_embedded import run_sql
from tests.test_cli import RESULTS, easel, files, running  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.slow, pytest.mark.own_database]


def run_outside_transaction(url: str, statement: str) -> None:
    async def run() -> None:
        engine = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.execute(text(statement))
        await engine.dispose()

    asyncio.run(run())


@pytest.fixture
def empty_database_url(database_url):
    """A second database of the same server, without tables."""
    name = f"easel_restored_{uuid.uuid4().hex[:12]}"
    run_outside_transaction(database_url, f"CREATE DATABASE {name}")
    yield make_url(database_url).set(database=name).render_as_string(hide_password=False)
    run_outside_transaction(database_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def answered(easel, files, running):
    easel("campaign", "import-responses", running, files / "results.csv")
    return running


def backed_up(easel, folder, *options) -> Path:
    result = easel("backup", folder, *options)
    assert result.exit_code == 0, result.stderr
    return Path(result.output.partition(":")[0])


def test_a_restored_backup_has_every_answer_and_verifies(easel, answered, tmp_path, empty_database_url, monkeypatch):
    exported = easel("export", answered, "responses").output
    dump = backed_up(easel, tmp_path / "backups")
    restored = easel("restore", dump, "--into", empty_database_url)
    assert restored.exit_code == 0, restored.stderr
    assert "verbs: 1 response replayed, all posteriors are the same." in restored.output
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    assert easel("export", answered, "responses").output == exported
    assert easel("verify", answered).exit_code == 0


def test_a_backup_is_two_files_that_only_their_owner_can_read(easel, answered, tmp_path):
    folder = tmp_path / "backups"
    dump = backed_up(easel, folder)
    assert sorted(path.suffix for path in folder.iterdir()) == [".dump", ".json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    manifest = json.loads(dump.with_suffix(".json").read_text())
    assert manifest["campaigns"] == [
        {"slug": "verbs", "status": "running", "items": 6, "hits": 1, "responses": 1, "newest_response": 1}
    ]


def test_a_backup_is_restored_only_into_an_empty_database(easel, answered, tmp_path):
    dump = backed_up(easel, tmp_path)
    refused = easel("restore", dump)
    assert refused.exit_code == 1
    assert "(database_not_empty)" in refused.stderr
    assert easel("verify", answered).exit_code == 0


@pytest.mark.parametrize("damage", ["cut", "changed", "without its manifest", "with another manifest"])
def test_a_damaged_backup_is_refused_and_nothing_is_loaded(easel, answered, tmp_path, empty_database_url, damage):
    dump = backed_up(easel, tmp_path)
    contents = dump.read_bytes()
    if damage == "cut":
        dump.write_bytes(contents[:-100])
    elif damage == "changed":
        dump.write_bytes(contents[:500] + bytes([contents[500] ^ 1]) + contents[501:])
    elif damage == "without its manifest":
        dump.with_suffix(".json").unlink()
    else:
        dump.with_suffix(".json").write_text("{}")
    refused = easel("restore", dump, "--into", empty_database_url)
    assert refused.exit_code == 1
    assert re.search(r"\(backup_(damaged|unreadable)\)", refused.stderr)
    assert run_sql(empty_database_url, "SELECT to_regclass('campaigns') IS NULL AS is_empty")


def test_a_dump_that_fails_half_way_leaves_the_database_empty(easel, answered, tmp_path, empty_database_url):
    """A type in the way makes a statement fail; everything before it is undone."""
    dump = backed_up(easel, tmp_path)
    run_sql(empty_database_url, "CREATE TYPE campaigns AS ENUM ('in the way')")
    refused = easel("restore", dump, "--into", empty_database_url)
    assert refused.exit_code == 1
    assert "(backup_failed)" in refused.stderr
    assert "already exists" in refused.stderr
    run_sql(empty_database_url, "DROP TYPE campaigns")
    assert easel("restore", dump, "--into", empty_database_url).exit_code == 0


def test_only_the_newest_backups_are_kept_and_other_files_stay(easel, answered, tmp_path):
    for day in (1, 2, 3):
        for suffix in (".dump", ".json"):
            (tmp_path / f"easel-2020010{day}-000000{suffix}").write_text("old")
    unfinished = tmp_path / "easel-20200104-000000.dump"
    unfinished.write_text("no manifest")
    other = tmp_path / "notes.dump"
    other.write_text("mine")
    dump = backed_up(easel, tmp_path, "--keep", "2")
    assert sorted(path.name for path in tmp_path.glob("easel-*.dump")) == [
        "easel-20200103-000000.dump",
        unfinished.name,
        dump.name,
    ]
    assert other.exists()


def test_a_database_without_easel_is_not_backed_up(easel, tmp_path, empty_database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    refused = easel("backup", tmp_path / "backups")
    assert refused.exit_code == 1
    assert "(no_schema)" in refused.stderr
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(easel, answered, tmp_path):
    (tmp_path / "file").write_text("")
    refused = easel("backup", tmp_path / "file" / "backups")
    assert refused.exit_code == 1
    assert "(backup_failed)" in refused.stderr


def test_answers_of_a_restored_campaign_go_on(easel, answered, files, empty_database_url, monkeypatch):
    dump = backed_up(easel, files / "backups")
    assert easel("restore", dump, "--into", empty_database_url).exit_code == 0
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    (files / "more.csv").write_text(RESULTS.replace("A1,W1", "A2,W2"))
    assert easel("campaign", "import-responses", answered, files / "more.csv").exit_code == 0
    assert "Replayed 2 responses" in easel("verify", answered).output


def test_a_restore_holds_payments_that_may_have_been_made_since(
    easel, answered, tmp_path, database_url, empty_database_url
):
    run_sql(
        database_url,
        "INSERT INTO payment_accounts (campaign_id, platform, currency, budget, hook_key, send_through, connected_by, "
        "connected_at) SELECT id, 'prolific', 'GBP', 1000, 'key', 1, 'ada', now() FROM campaigns",
        "INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason, request_key, "
        "line, created_by, created_at) "
        "SELECT campaign_id, id, 's1', 'study', 425, 'GBP', '', 'list', 1, 'ada', now() FROM annotators LIMIT 1",
    )
    restored = easel("restore", backed_up(easel, tmp_path), "--into", empty_database_url)
    assert restored.exit_code == 0, restored.stderr
    assert "Held 1 payment, which may have been made after this backup." in restored.output
    assert run_sql(empty_database_url, "SELECT send_through FROM payment_accounts") == 0
