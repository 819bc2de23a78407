"""People who were erased after a backup are erased again when it is restored."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import asyncio
import json
import stat

import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.maintenance.test_backups import answered, backed_up, empty_database_url  # noqa: F401  (fixtures)
from tests.test_cli import easel, files, running  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.slow, pytest.mark.own_database]


def select_value(url, statement):
    async def select():
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.connect() as connection:
            value = await connection.scalar(text(statement))
        await engine.dispose()
        return value

    return asyncio.run(select())


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
@pytest.mark.usefixtures("answered")
def test_a_restored_backup_erases_again_and_verifies(easel, tmp_path, empty_database_url, database_url, rule):
    dump = backed_up(easel, tmp_path / "backups")
    worker = select_value(database_url, "SELECT worker_id FROM annotators")
    erased = easel("person", "erase", worker, "--rule", rule, "--yes")
    assert erased.exit_code == 0, erased.stderr
    backed_up(easel, tmp_path / "later")  # two backups of one second would have one name
    erasures = tmp_path / "later" / "erasures.jsonl"
    assert stat.S_IMODE(erasures.stat().st_mode) == 0o600
    assert worker not in erasures.read_text()
    erasures.rename(dump.with_name("erasures.jsonl"))
    restored = easel("restore", dump, "--into", empty_database_url)
    assert restored.exit_code == 0, restored.stderr
    assert "1 annotator" in restored.output
    assert select_value(empty_database_url, "SELECT worker_id LIKE 'erased:%' FROM annotators")
    receipt = "SELECT receipt FROM erasures"
    assert select_value(empty_database_url, receipt) == select_value(database_url, receipt)
    counted = "SELECT sum(judgments) > 0 FROM current_posteriors"
    assert select_value(empty_database_url, counted) == (rule == "anonymise")


def test_a_backup_after_the_erasure_erases_no_one_again(easel, answered, tmp_path, empty_database_url):
    easel("person", "erase", "A1", "--campaign", answered, "--rule", "anonymise", "--yes")
    dump = backed_up(easel, tmp_path / "backups")
    restored = easel("restore", dump, "--into", empty_database_url)
    assert restored.exit_code == 0, restored.stderr
    assert "Erased again" not in restored.output


def test_a_list_that_cannot_be_read_is_refused_with_its_line(easel, answered, tmp_path, empty_database_url):
    dump = backed_up(easel, tmp_path / "backups")
    (tmp_path / "list.jsonl").write_text("{}\n")
    restored = easel("restore", dump, "--into", empty_database_url, "--erasures", tmp_path / "list.jsonl")
    assert restored.exit_code == 1
    assert "line 1" in restored.stderr
    assert "erasures_unreadable" in restored.stderr


def test_a_backup_keeps_what_only_the_list_in_its_folder_knows(easel, answered, tmp_path, database_url):
    folder = tmp_path / "backups"
    folder.mkdir()
    known_elsewhere = (
        f'{{"campaign":"{answered}","receipt":"E-ELSEWHERE","rule":"remove","requested_by":"ada",'
        '"requested_at":"2020-01-01T00:00:00Z","person_hashes":[]}\n'
    )
    (folder / "erasures.jsonl").write_text(known_elsewhere)
    easel("person", "erase", "A1", "--campaign", answered, "--rule", "anonymise", "--yes")
    backed_up(easel, folder)
    receipts = [json.loads(line)["receipt"] for line in (folder / "erasures.jsonl").read_text().splitlines()]
    assert receipts == ["E-ELSEWHERE", select_value(database_url, "SELECT receipt FROM erasures")]
    other = tmp_path / "later"  # two backups of one second would have one name
    other.mkdir()
    (other / "erasures.jsonl").write_text("damaged\n")
    refused = easel("backup", other)
    assert (refused.exit_code, "erasures_unreadable" in refused.stderr) == (1, True)
    assert (other / "erasures.jsonl").read_text() == "damaged\n"


def test_commands_find_export_and_list(easel, answered, tmp_path):
    found = easel("person", "find", "A1")
    assert answered in found.output
    assert easel("person", "find", "nobody-knows").output == "No one.\n"
    written = easel("person", "export", answered, "A1", "-o", tmp_path / "a1.zip")
    assert written.exit_code == 0, written.stderr
    assert (tmp_path / "a1.zip").read_bytes()[:2] == b"PK"
    missing = easel("person", "erase", "nobody-knows", "--rule", "remove", "--yes")
    assert (missing.exit_code, "person_not_found" in missing.stderr) == (1, True)
    easel("person", "erase", "A1", "--rule", "remove", "--yes")
    assert "remove" in easel("person", "receipts", answered).output
    assert "already_erased" in easel("person", "erase", "A1", "--rule", "remove", "--yes").stderr
