"""Commands on a database that they cannot use, or with posteriors that other arithmetic has stored."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import errno
import json
import re

import pytest
from asyncpg import DiskFullError
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from app.database.migrate import newest_schema_revision
from tests.database.test_embedded import run_sql
from tests.test_cli import easel, files, running  # noqa: F401  (fixtures)

COMMANDS = [("serve", "--port", "0"), ("migrate",), ("campaign", "list"), ("verify", "verbs"), ("login",)]


@pytest.mark.own_database
def test_a_schema_that_this_easel_cannot_work_on_is_a_sentence_for_every_command(easel, database_url):
    newest = newest_schema_revision()
    cases = {
        "9999_more": f"is at revision 9999_more, and this Easel knows revisions up to {newest}: a newer Easel has",
        "abc": f"is at revision abc, which no Easel up to {newest} has made",
        "0000": f"is at revision 0000, which no Easel up to {newest} has made",
        "0062": f"is at revision 0062, which no Easel up to {newest} has made",
        "0060": "is at revision 0060, of an early Easel 0.1. Upgrade it to the last 0.1 release first",
    }
    for revision, said in cases.items():
        run_sql(database_url, f"UPDATE alembic_version SET version_num = '{revision}'")
        for arguments in COMMANDS:
            result = easel(*arguments)
            assert result.exit_code == 1, arguments
            assert said in result.stderr, arguments
            assert re.search(r" \(schema_(too_old|too_new|unknown)\)\n$", result.stderr), arguments


@pytest.mark.own_database
def test_an_older_schema_asks_for_migrate(easel, database_url):
    run_sql(database_url, "UPDATE alembic_version SET version_num = '0061'")
    for arguments in COMMANDS[2:]:
        result = easel(*arguments)
        assert result.exit_code == 1
        assert f"is at revision 0061, and this Easel needs {newest_schema_revision()}. Run `" in result.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("?sslmod=require", "DATABASE_URL has the parameter 'sslmod', which Easel does not know"),
        ("?timeout=5", "DATABASE_URL has the parameter 'timeout', which Easel does not know"),
        ("?sslmode=maybe", "DATABASE_URL has a value for 'sslmode' that Easel cannot use"),
        ("?connect_timeout=soon", "DATABASE_URL has a value for 'connect_timeout' that Easel cannot use"),
        ("?target_session_attrs=writable", "DATABASE_URL has a value for 'target_session_attrs'"),
        ("?host=a,b&port=1,2,3", "DATABASE_URL names 2 hosts and 3 ports"),
    ],
)
def test_a_parameter_of_the_address_that_easel_cannot_follow_is_a_sentence_for_every_command(
    easel,
    monkeypatch,
    more,
    said,
):
    monkeypatch.setenv("DATABASE_URL", f"postgresql://someone:hunter2@127.0.0.1:9/none{more}")
    for arguments in COMMANDS:
        result = easel(*arguments)
        assert result.exit_code == 1
        assert said in result.stderr
        assert "hunter2" not in result.stderr


def test_the_address_of_several_servers_is_understood(easel, database_url, monkeypatch):
    """The embedded server has a socket alone; libpq writes its folder like this."""
    url = make_url(database_url)
    folder = str(url.query["host"]).replace("/", "%2F")
    name = f"{url.username}@{folder}:{url.query['port']}/{url.database}"
    nobody = f"{url.username}@127.0.0.1:9,{folder}:{url.query['port']}/{url.database}"
    for given in (name, nobody, f"{nobody}?target_session_attrs=read-write&connect_timeout=3&keepalives_idle=5"):
        monkeypatch.setenv("DATABASE_URL", f"postgresql://{given}")
        assert easel("campaign", "list").output.startswith("There are no campaigns yet.")


@pytest.mark.own_database
def test_a_server_is_not_started_on_a_standby_but_its_campaigns_are_listed(easel, database_url):
    run_sql(database_url, f"ALTER DATABASE {make_url(database_url).database} SET default_transaction_read_only = on")
    for arguments in COMMANDS[:2]:
        result = easel(*arguments)
        assert result.exit_code == 1
        assert "accepts no writes: it is a standby" in result.stderr
    assert easel("campaign", "list").output.startswith("There are no campaigns yet.")
    assert "database_unavailable" in easel("login").stderr


def test_posteriors_of_other_rounding_are_explained_and_stored_again(easel, running, files, database_url):
    easel("campaign", "import-responses", running, files / "results.csv")
    run_sql(database_url, "UPDATE posteriors SET state[1] = state[1] * (1 + 3e-15), score = score - 1e-15")
    result = easel("verify", running)
    assert result.exit_code == 1
    assert result.stdout.startswith("item v0: ")
    assert "differ from the replay by rounding alone" in result.stderr
    assert f"verify {running} --replay` stores them again. (verify_rounding)" in result.stderr
    document = json.loads(easel("verify", running, "--json").stdout)
    assert (document["clean"], document["beyond_rounding"]) == (False, 0)
    again = easel("verify", running, "--replay")
    assert again.exit_code == 0
    assert again.output == (
        "The posteriors were stored again from the same answers.\n"
        "Replayed 1 responses: the posteriors of 6 items are the same.\n"
    )
    assert easel("verify", running).exit_code == 0
    assert easel("verify", running, "--replay").output.startswith("Replayed 1 responses")
    noted = (
        "SELECT count(*) FROM audit_log WHERE action = 'answers.replayed' AND way = 'command' AND campaign = 'verbs'"
    )
    assert run_sql(database_url, noted) == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE posteriors SET state[1] = state[1] + 0.001 WHERE subject = 0",
        "UPDATE posteriors SET judgments = judgments + 1 WHERE subject = 0",
        "UPDATE posteriors SET state[1] = state[1] * (1 + 3e-15), score = CASE subject WHEN 0 THEN 1.5 ELSE score END",
    ],
)
def test_posteriors_that_differ_by_more_are_not_stored_again(easel, running, files, database_url, change):
    easel("campaign", "import-responses", running, files / "results.csv")
    run_sql(database_url, change)
    result = easel("verify", running, "--replay")
    assert result.exit_code == 1
    assert "differ from the replay, so nothing was stored again. (verify_failed)" in result.stderr
    assert json.loads(easel("verify", running, "--json").stdout)["beyond_rounding"] >= 1


def test_what_easl_aware_has_learned_by_other_rounding_is_stored_again(easel, files, database_url):
    chosen = ("--name", "Verbs", "--question", "How often?", "--update-law", "easl-aware", "--judgments-per-item", 100)
    easel("campaign", "create", *chosen)
    easel("campaign", "import", "verbs", files / "items.csv")
    easel("campaign", "launch", "verbs")
    rows = "".join(f"A{k},W{k % 5},v0,v1,{k},{99 - k}\n" for k in range(40))
    (files / "many.csv").write_text("AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n" + rows)
    easel("campaign", "import-responses", "verbs", files / "many.csv")
    assert easel("verify", "verbs").exit_code == 0
    run_sql(database_url, "UPDATE posteriors SET variance = variance * (1 + 1e-14) WHERE judgments > 0")
    assert "(verify_rounding)" in easel("verify", "verbs").stderr
    assert easel("verify", "verbs", "--replay").exit_code == 0
    assert easel("verify", "verbs").exit_code == 0


FULL_DISK = """
    CREATE FUNCTION fail_as_on_a_full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$
"""


@pytest.mark.own_database
def test_a_full_disk_of_the_database_is_one_line_that_says_so(easel, database_url):
    run_sql(
        database_url,
        FULL_DISK,
        "CREATE TRIGGER full_disk BEFORE INSERT ON campaigns EXECUTE FUNCTION fail_as_on_a_full_disk()",
    )
    result = easel("campaign", "create", "--question", "How often?")
    assert result.stderr == (
        "easel: The disk of the database is full. Everything already stored is kept. Free some space on it, then try "
        "again. (database_full)\n"
    )


def test_a_full_disk_is_one_line_in_a_backup_too(easel, tmp_path, monkeypatch):
    async def fail(*_: object, **__: object) -> None:
        raise DBAPIError("SELECT", None, DiskFullError("No space left on device"))

    monkeypatch.setattr("app.maintenance.backup.write_dump_and_manifest_to_folder", fail)
    assert easel("backup", tmp_path).stderr.startswith("easel: The disk of the database is full.")


def test_a_file_for_which_the_disk_has_no_space_is_one_line(easel, tmp_path, monkeypatch):
    async def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "erasures.jsonl"))

    monkeypatch.setattr("app.maintenance.backup.write_dump_and_manifest_to_folder", fail)
    assert easel("backup", tmp_path).stderr == (
        f"easel: {tmp_path}/erasures.jsonl cannot be written: the disk is full. Free some space. (disk_full)\n"
    )
