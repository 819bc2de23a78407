"""`easel payments`."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from app.cli.commands import easel
from tests.annotation.hits.campaigns import execute_sql, fetch_rows
from tests.payments.studies import create_study


@pytest.fixture
def run(database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)

    async def command(*words):
        return await asyncio.to_thread(lambda: CliRunner().invoke(easel, ["payments", *words]))

    return command


async def test_a_file_is_added_once_and_sent(engine, prolific, run, tmp_path):
    study = await create_study(engine, prolific)
    file = tmp_path / "bonuses.csv"
    file.write_text("id,amount,reason\nA1,4.25,careful\nA2,1\n")
    assert (await run("add", "verbs", str(file))).output == "2 bonuses added.\n"
    assert (await run("add", "verbs", str(file))).output == "These bonuses were added before.\n"
    assert "£5.25" in (await run("send", "verbs")).output
    await study.work_again()
    listed = json.loads((await run("list", "verbs", "--json")).output)
    assert [(row["annotator"], row["kind"], row["amount"], row["state"]) for row in listed] == [
        ("A2", "reward", "0.90", "prepared"),
        ("A1", "reward", "0.90", "prepared"),
        ("A2", "bonus", "1.00", "sent"),
        ("A1", "bonus", "4.25", "sent"),
    ]
    assert "A1" in (await run("list", "verbs")).output


async def test_a_person_decides(engine, prolific, run):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    ((payment,),) = await fetch_rows(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    refused = await run("decide", "verbs", str(payment), "sent")
    assert (refused.exit_code, "payment_decided" in refused.output) == (1, True)
    await execute_sql(engine, "UPDATE payments SET state = 'failed'")
    assert (await run("decide", "verbs", str(payment), "again")).exit_code == 0
    assert await study.states() == ["prepared"]


async def test_a_wrong_file_is_refused(engine, prolific, run, tmp_path):
    await create_study(engine, prolific)
    file = tmp_path / "bonuses.csv"
    file.write_bytes(b"A1,4,25,x")
    refused = await run("add", "verbs", str(file))
    assert (refused.exit_code, "bonus_line_unreadable" in refused.output) == (1, True)
