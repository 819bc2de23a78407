"""Calls are listed and decided about on a page, by the API and by the command; none shows an address."""

import asyncio
import csv
import io
import json
from functools import partial

import pytest
from click.testing import CliRunner

from app.accounts import tokens, users
from app.cli.commands import easel
from app.errors import Conflict
from app.record.deletion import delete_campaign_and_all_its_data_or_refuse
from tests.annotation.hits.campaigns import NOW, execute_sql, fetch_rows, fetch_value
from tests.server_calls.visits import change_crowd_settings, create_study


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def study(engine, platform):
    """Create a study with four finished people: credited, refused, unclear, and without a call yet."""
    study = await create_study(engine, platform)
    platform.behaviours = ["ok", "404", "credit then 500"]
    for number in range(1, 4):
        await study.let_person_finish(f"p{number}")
        await study.work_again()
    await study.let_person_finish("p4")
    assert await study.states() == ["sent", "failed", "unknown", "prepared"]
    return study


@pytest.fixture
async def call_of_program(app, researcher):
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)

    async def call(study, method, path="", **sent):
        address = f"/api/v1/campaigns/{study.campaign.slug}/calls{path}"
        return await researcher.request(method, address, headers={"authorization": f"Bearer {token}"}, **sent)

    return call


@pytest.fixture
def program(call_of_program, study):
    return partial(call_of_program, study)


async def id_of(engine, state):
    return await fetch_value(engine, f"SELECT id FROM server_calls WHERE state = '{state}'")


async def test_the_page_shows_what_is_unclear_and_lets_people_decide(researcher, engine, study, platform):
    address = f"/admin/campaigns/{study.campaign.slug}/calls"
    page = (await researcher.get(address)).text
    assert "Unclear: 1 call" in page
    assert "The platform answered with status 404." in page
    assert "s3cr3t" not in page
    unclear, failed, waiting = [await id_of(engine, state) for state in ("unknown", "failed", "prepared")]
    for call, decision in ((unclear, "sent"), (failed, "again"), (waiting, "cancel")):
        reply = await researcher.post(f"{address}/{call}/decision", data={"decision": decision})
        assert reply.status_code == 303
    assert await study.states() == ["sent", "prepared", "sent", "cancelled"]
    noted = await fetch_rows(engine, "SELECT about FROM audit_log WHERE action = 'calls.decided' ORDER BY id")
    assert noted == [(f"{unclear}: sent",), (f"{failed}: again",), (f"{waiting}: cancel",)]
    await study.work_again()
    assert await study.states() == ["sent", "sent", "sent", "cancelled"]
    assert platform.credits == {"p1": 1, "p2": 1, "p3": 1}


async def test_all_failed_calls_are_repeated_at_once(researcher, engine, study, platform):
    await execute_sql(engine, "UPDATE server_calls SET state = 'failed' WHERE state IN ('prepared', 'unknown')")
    address = f"/admin/campaigns/{study.campaign.slug}/calls"
    assert "Repeat 3 failed calls" in (await researcher.get(address)).text
    await researcher.post(f"{address}/repeat", data={"state": "failed"})
    assert await study.states() == ["sent", "prepared", "prepared", "prepared"]
    assert await fetch_rows(engine, "SELECT about FROM audit_log WHERE action = 'calls.repeated'") == [("3 failed",)]


async def test_without_an_address_the_page_leads_to_the_settings(researcher, engine, platform):
    study = await create_study(engine, platform, call_completed=None)
    assert "No call is set up." in (await researcher.get(f"/admin/campaigns/{study.campaign.slug}/calls")).text


async def test_the_share_page_links_to_the_calls(researcher, study):
    page = (await researcher.get(f"/admin/campaigns/{study.campaign.slug}/share")).text
    assert f'href="/admin/campaigns/{study.campaign.slug}/calls"' in page
    assert "s3cr3t" not in page
    assert "No completion code is set, so people have no proof" not in page


async def test_the_table_has_all_calls_without_their_addresses(researcher, study):
    reply = await researcher.get(f"/admin/campaigns/{study.campaign.slug}/calls.csv")
    rows = list(csv.DictReader(io.StringIO(reply.text.removeprefix("\ufeff"))))
    assert [row["state"] for row in rows] == ["unknown", "failed", "prepared", "sent"]
    assert "s3cr3t" not in reply.text


async def test_programs_list_repeat_and_decide(program, engine, study):
    rows = (await program("GET")).json()
    assert [(row["annotator"], row["state"]) for row in rows] == [
        ("A3", "unknown"),
        ("A2", "failed"),
        ("A4", "prepared"),
        ("A1", "sent"),
    ]
    assert "s3cr3t" not in str(rows)
    assert (await program("POST", "/repeat", json={"state": "failed"})).json() == {"repeated": 1}
    unclear = await id_of(engine, "unknown")
    assert (await program("POST", f"/{unclear}/decision", json={"decision": "sent"})).status_code == 204
    assert await study.states() == ["sent", "prepared", "sent", "prepared"]


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/999/decision", {"decision": "again"}, (404, "call_not_found")),
        ("/SENT/decision", {"decision": "again"}, (409, "call_decided")),
        ("/SENT/decision", {"decision": "twice"}, (422, "invalid")),
        ("/repeat", {"state": "sent"}, (422, "invalid")),
    ],
)
async def test_what_cannot_be_decided_is_refused(program, study, path, body, refusal):
    before = await study.states()
    reply = await program("POST", path.replace("SENT", str(await id_of(study.engine, "sent"))), json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == refusal
    assert await study.states() == before


@pytest.fixture
def run(database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)

    async def command(*words):
        result = await asyncio.to_thread(lambda: CliRunner().invoke(easel, ["calls", *words]))
        assert result.exit_code == 0, result.output
        return result.output

    return command


async def test_the_command_lists_repeats_and_decides(engine, run, study):
    listed = await run("list", study.campaign.slug)
    assert "A3" in listed
    assert "s3cr3t" not in listed
    assert await run("repeat", study.campaign.slug, "failed") == "The server makes 1 call again.\n"
    await run("decide", study.campaign.slug, str(await id_of(engine, "unknown")), "cancel")
    assert await study.states() == ["sent", "prepared", "cancelled", "prepared"]


async def test_a_campaign_with_calls_that_are_not_settled_is_not_deleted(engine, study):
    async with engine.begin() as connection:
        with pytest.raises(Conflict) as refusal:
            await delete_campaign_and_all_its_data_or_refuse(connection, study.campaign.id)
    assert refusal.value.code == "calls_unsettled"
    await execute_sql(engine, "UPDATE server_calls SET state = 'cancelled' WHERE state <> 'sent'")
    async with engine.begin() as connection:
        await delete_campaign_and_all_its_data_or_refuse(connection, study.campaign.id)
    assert await fetch_value(engine, "SELECT count(*) FROM server_calls") == 0


async def test_the_addresses_are_in_no_campaign_file(researcher, study):
    file = (await researcher.get(f"/admin/campaigns/{study.campaign.slug}/campaign.yaml")).text
    assert "panel_query" in file
    assert "call_completed" not in file


async def test_before_a_deletion_people_read_which_calls_hold_it_and_which_would_be_lost(researcher, engine, study):
    page = f"/admin/campaigns/{study.campaign.slug}"
    await execute_sql(engine, "UPDATE campaigns SET status = 'draft'")
    held = (await researcher.get(f"{page}/delete/confirm")).text
    assert "Settle or cancel them on the page Calls to the platform" in held
    assert f'action="{page}/delete"' not in held
    await execute_sql(engine, "UPDATE server_calls SET state = 'cancelled' WHERE state IN ('unknown', 'prepared')")
    lost = (await researcher.get(f"{page}/delete/confirm")).text
    assert "1 call to the platform failed" in lost
    assert f'action="{page}/delete"' in lost


async def test_the_overview_tells_of_failed_and_unclear_calls_until_they_are_decided(researcher, engine, study):
    page = f"/admin/campaigns/{study.campaign.slug}"
    assert "2 calls to the platform failed or are unclear" in (await researcher.get(page)).text
    await execute_sql(engine, "UPDATE server_calls SET state = 'sent'")
    assert "to the platform failed or" not in (await researcher.get(page)).text


@pytest.fixture
async def late_study(engine, platform):
    """Create a study with two people who finished before it had an address, and one with erased IDs."""
    study = await create_study(engine, platform, call_completed=None)
    for number in range(1, 4):
        await study.let_person_finish(f"p{number}")
    await execute_sql(engine, "UPDATE assignments SET arrival = '{}' WHERE external_id = 'p3'")
    assert await study.states() == []
    return study


async def test_nobody_is_called_for_without_an_address(call_of_program, late_study):
    assert (await call_of_program(late_study, "GET", "/earlier")).json() == {"people": 0}
    reply = await call_of_program(late_study, "POST", "/earlier")
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "no_call_address")


async def test_programs_count_people_first_and_then_call_for_them(call_of_program, engine, late_study, platform):
    await change_crowd_settings(engine, json.dumps({"call_completed": platform.address}))
    assert (await call_of_program(late_study, "GET", "/earlier")).json() == {"people": 2}
    assert (await call_of_program(late_study, "POST", "/earlier")).json() == {"prepared": 2}
    assert (await call_of_program(late_study, "POST", "/earlier")).json() == {"prepared": 0}


async def test_people_who_completed_before_are_called_for_once_a_person_says_so(
    researcher, engine, late_study, platform, run
):
    study = late_study
    await change_crowd_settings(engine, json.dumps({"call_completed": platform.address}))
    address = f"/admin/campaigns/{study.campaign.slug}/calls"
    await study.work_again()
    assert await study.states() == []
    assert "Call for 2 people who completed before" in (await researcher.get(address)).text
    assert await run("earlier", study.campaign.slug, "--dry-run") == "The server would call for 2 people.\n"
    assert await study.states() == []
    for _ in range(2):
        assert (await researcher.post(f"{address}/earlier")).status_code == 303
    await study.work_again()
    assert await study.states() == ["sent", "sent"]
    assert platform.credits == {"p1": 1, "p2": 1}
    assert "who completed before" not in (await researcher.get(address)).text
    assert await run("earlier", study.campaign.slug) == "The server calls for 0 people.\n"
    assert await fetch_rows(engine, "SELECT about FROM audit_log WHERE action = 'calls.prepared'") == [("2",)]
