"""A study on Prolific from a campaign: drafted once, published with its total, and grown by people alone."""

import asyncio
import re
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import ValidationError

from app.accounts import tokens, users
from app.campaigns.settings import CampaignSettings
from app.cli.commands import easel
from app.errors import Conflict, Invalid
from app.payments.connections import ServiceConnector
from app.payments.token_encryption import TokenCipher
from app.recruiting.studies import (
    change_study_state_or_places_or_refuse,
    draft_study_and_return_id_or_refuse,
    load_study_view_or_refuse,
)
from app.recruiting.study_trial import create_test_study_of_campaign_or_refuse
from tests.annotation.hits.campaigns import NOW, create_running_campaign, execute_sql, fetch_rows, fetch_value
from tests.payments.studies import audit_lines, create_study, words

HTTPS = "https://easel.example.org"
PAID: dict[str, Any] = {"pay_per_hit": 0.5, "minutes_per_hit": 2, "hits_per_annotator": 3}


@pytest.fixture
async def study(engine, prolific):
    return await create_study(engine, prolific, entered="", people=0, **PAID)


async def draft(study, base_url=HTTPS):
    return await draft_study_and_return_id_or_refuse(
        study.engine, study.connector, "verbs", base_url, now=study.clock.now
    )


async def act(study, action, **more):
    await change_study_state_or_places_or_refuse(study.engine, study.connector, "verbs", action, **more)


async def view(study, base_url=HTTPS):
    return await load_study_view_or_refuse(study.engine, study.connector, "verbs", base_url)


async def test_a_draft_has_what_the_campaign_says(engine, prolific, study):
    found = await draft(study)
    made = prolific.studies[found]
    link_key = await fetch_value(engine, "SELECT link_key FROM campaigns")
    assert made["external_study_url"] == (
        f"{HTTPS}/prolific/{link_key}"
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    # 12 items with 3 judgments are 36, 5 to a task: 8 tasks, 3 for each person
    assert (made["reward"], made["estimated_completion_time"], made["total_available_places"]) == (150, 6, 3)
    assert [code["code_type"] for code in made["completion_codes"]] == [
        "COMPLETED",
        "FAILED_ATTENTION_CHECK",
        "OTHER",
        "OTHER",
    ]
    codes = await fetch_rows(
        engine,
        """SELECT crowd_settings ->> 'prolific_completion_code', crowd_settings ->> 'return_failed_checks'
           FROM campaigns""",
    )
    assert codes == [(made["completion_codes"][0]["code"], made["completion_codes"][1]["code"])]
    assert len({code["code"] for code in made["completion_codes"]}) == 4
    assert (await audit_lines(engine))[-1] == "payments.study_drafted"


async def test_places_follow_from_the_plan(engine, prolific, study):
    plan = '{"items": 12, "per_item": 3, "warning": "", "enough": 3, "totals": [90, 60, 180]}'
    await execute_sql(engine, "UPDATE campaigns SET newest_plan = CAST(:plan AS jsonb)", plan=plan)
    found = (await view(study)).plan
    assert (found.places, found.most_places, found.has_plan) == (6, 12, True)


async def test_codes_that_the_campaign_has_are_kept(engine, prolific, study):
    await execute_sql(
        engine, """UPDATE campaigns SET crowd_settings = crowd_settings || '{"prolific_completion_code": "MINE1"}'"""
    )
    made = prolific.studies[await draft(study)]
    assert made["completion_codes"][0]["code"] == "MINE1"


async def test_a_campaign_has_one_study(prolific, study):
    await draft(study)
    with pytest.raises(Conflict) as refused:
        await draft(study)
    assert refused.value.code == "study_exists"
    assert len(prolific.studies) == 1


async def test_of_two_drafts_at_once_one_counts(engine, study):
    replies = await asyncio.gather(draft(study), draft(study), return_exceptions=True)
    stored = await fetch_value(engine, "SELECT study FROM payment_accounts")
    assert stored in replies


async def test_a_study_needs_pay_time_and_a_limit_of_tasks(engine, prolific):
    study = await create_study(engine, prolific, entered="", people=0, pay_per_hit=0.5)
    with pytest.raises(Conflict) as refused:
        await draft(study)
    assert refused.value.details["settings"] == ["minutes of one person", "tasks per annotator"]


async def test_a_study_is_published_with_its_total_alone(engine, prolific, study):
    found = await draft(study)
    for total in ("", "4.5", "4.51", "450"):
        with pytest.raises(Conflict) as refused:
            await act(study, "publish", total=total)
        assert refused.value.code == "total_differs"
    assert prolific.studies[found]["status"] == "UNPUBLISHED"
    await act(study, "publish", total="4.50")
    assert prolific.studies[found]["status"] == "ACTIVE"
    with pytest.raises(Conflict) as refused:  # another manager, at the same moment
        await act(study, "publish", total="4.50")
    assert refused.value.code == "service_refused"
    await act(study, "pause")
    await act(study, "resume")
    assert prolific.studies[found]["status"] == "ACTIVE"
    assert (await audit_lines(engine))[-1] == "payments.study_changed"


async def test_a_campaign_that_does_not_run_is_not_published(engine, study):
    await draft(study)
    await execute_sql(engine, "UPDATE campaigns SET status = 'paused'")
    with pytest.raises(Conflict) as refused:
        await act(study, "publish", total="4.50")
    assert refused.value.code == "not_running"


async def test_more_places_are_proposed_and_added_by_people_alone(prolific, study):
    found = await draft(study)
    await act(study, "publish", total="4.50")
    for number in range(3):
        prolific.add(f"s{number}", "APPROVED", study=found)
    prolific.add("s3", "RETURNED", study=found)  # another person takes this place
    await study.work_again(minutes=10)
    await execute_sql(  # a place of an earlier study is none of this one
        study.engine,
        """INSERT INTO submissions (campaign_id, external_id, study, status, seen_at)
           SELECT campaign_id, 'earlier', 'earlier', 'approved', seen_at FROM submissions LIMIT 1""",
    )
    assert (await view(study)).proposed_places == 6
    assert prolific.studies[found]["total_available_places"] == 3
    for places in ("3", "2", "six", "-1", ""):
        with pytest.raises(Invalid):
            await act(study, "places", places=places)
    await act(study, "places", places="6")
    assert prolific.studies[found]["total_available_places"] == 6
    assert (await view(study)).proposed_places is None


async def test_warnings_name_low_pay_low_balance_and_a_private_address(engine, prolific, study):
    assert (await view(study)).warnings == []  # 15.00 per hour
    prolific.balance = 400
    await execute_sql(engine, "UPDATE campaigns SET minutes_per_hit = 6")
    warnings = " ".join((await view(study, "http://127.0.0.1:8000")).warnings)
    assert "below the platform’s minimum of £6.00" in warnings
    assert "has £4.00, less than the rewards of £4.50, and fees come on top" in warnings
    assert "People cannot reach http://127.0.0.1:8000" in warnings


async def test_a_draft_says_who_may_take_part_as_the_settings_have_it(engine, prolific):
    settings: dict[str, Any] = {
        "recruiting_title": "Rate verbs",
        "recruiting_description": "You rate **verbs**.",
        "recruiting_minutes": 9,
        "recruiting_devices": "desktop and tablet",
        "recruiting_groups": ["group-1", "group-2"],
        "recruiting_excluded_groups": ["group-3"],
        "recruiting_labels": ["ai_annotation"],
    }
    study = await create_study(engine, prolific, entered="", people=0, **PAID, **settings)
    made = prolific.studies[await draft(study)]
    assert (made["name"], made["description"]) == ("Rate verbs", "You rate **verbs**.")
    assert (made["estimated_completion_time"], made["device_compatibility"]) == (9, ["desktop", "tablet"])
    assert made["study_labels"] == ["ai_annotation"]
    assert made["filters"] == [
        {"filter_id": "participant_group_allowlist", "selected_values": ["group-1", "group-2"]},
        {"filter_id": "participant_group_blocklist", "selected_values": ["group-3"]},
    ]
    assert "filter_set_id" not in made
    assert (await view(study)).plan.hourly_pay == 1000  # 1.50 for 9 minutes


async def test_a_draft_has_a_filter_set_or_the_reason_why_not(engine, prolific):
    study = await create_study(engine, prolific, entered="", people=0, **PAID, recruiting_filter_set="gone")
    with pytest.raises(Conflict) as refused:
        await draft(study)
    assert "filter_set" in refused.value.message
    sql = """UPDATE campaigns SET crowd_settings = crowd_settings || '{"recruiting_filter_set": "set-1"}'"""
    await execute_sql(engine, sql)
    made = prolific.studies[await draft(study)]
    assert made["filter_set_id"] == "set-1"
    assert "filters" not in made


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"recruiting_minutes": 0}, "recruiting_minutes"),
        ({"recruiting_devices": "watch"}, "recruiting_devices"),
        ({"recruiting_filter_set": "a b"}, "recruiting_filter_set"),
        ({"recruiting_groups": ["a,b"]}, "recruiting_groups"),
        ({"recruiting_groups": [f"g{number}" for number in range(21)]}, "recruiting_groups"),
        ({"recruiting_labels": ["AI annotation"]}, "recruiting_labels"),
        ({"recruiting_filter_set": "set-1", "recruiting_excluded_groups": ["g"]}, "recruiting_excluded_groups"),
    ],
)
def test_settings_that_no_study_can_have_are_refused_by_name(settings, name):
    with pytest.raises(ValidationError) as refused:
        CampaignSettings.model_validate({"name": "N", "question": "Q?"} | settings)
    assert [error["loc"][0] for error in refused.value.errors()] == [name]


async def test_a_draft_shows_what_the_platform_computes(prolific, study):
    assert (await view(study)).cost is None
    await draft(study)
    found = await view(study)
    assert found.cost is not None
    assert (found.cost.rewards, found.cost.fees, found.cost.tax, found.cost.total) == (450, 150, 30, 630)
    assert found.warnings == []
    prolific.balance = 629
    (warning,) = (await view(study)).warnings
    assert "has £6.29, less than the cost of £6.30" in warning
    await act(study, "publish", total="4.50")  # which sets its money aside
    assert (await view(study)).warnings == []


async def test_a_cost_that_differs_is_told(prolific, study):
    made = await draft(study)
    prolific.after = lambda call: changed_cost() if "/cost/" in call else None
    (warning,) = (await view(study)).warnings
    assert "expects rewards of £9.00, but Easel expects £4.50" in warning
    prolific.after = lambda _call: None
    prolific.cost_currency = "USD"
    (warning,) = (await view(study)).warnings
    assert "computes the cost in USD, but this campaign pays in GBP" in warning
    prolific.trouble = lambda call: PlainTextResponse("", 500) if "/cost/" in call else None
    assert (await view(study)).cost is None  # the page can do without
    assert made in prolific.studies


def changed_cost():
    part = {"amount": 900, "currency": "GBP"}
    return JSONResponse({"rewards": {"rewards": part, "fees": part, "tax": part}, "bonuses": None})


async def try_study(study, email=""):
    return await create_test_study_of_campaign_or_refuse(study.engine, study.connector, "verbs", email=email)


async def test_a_draft_is_tried_by_a_test_participant(engine, prolific, study):
    with pytest.raises(Conflict) as refused:
        await try_study(study)
    assert refused.value.code == "study_missing"
    found = await draft(study)
    with pytest.raises(Conflict) as refused:
        await try_study(study)
    assert (refused.value.code, "test participant" in refused.value.message) == ("service_refused", True)
    made = await try_study(study, "ada@example.org")
    assert (made.study, made.url) == (f"test-of-{found}", f"https://app.prolific.com/studies/test-of-{found}")
    assert prolific.test_participants == ["ada@example.org"]
    assert (await try_study(study)).study == f"test-of-{found}"
    assert (await audit_lines(engine))[-1] == "payments.test_study"
    await act(study, "publish", total="4.50")
    with pytest.raises(Conflict) as refused:
        await try_study(study)
    assert refused.value.code == "study_published"


async def test_a_token_that_cannot_be_read_refuses_a_test_study(engine, study):
    await draft(study)
    changed = ServiceConnector(study.connector.settings, TokenCipher("another key of the server, long enough"))
    with pytest.raises(Conflict) as refused:
        await create_test_study_of_campaign_or_refuse(engine, changed, "verbs")
    assert refused.value.code == "service_refused"


async def test_a_workspace_that_may_have_no_test_participants_is_told(prolific, study):
    await draft(study)
    prolific.allows_test_studies = False
    with pytest.raises(Conflict) as refused:
        await try_study(study, "ada@example.org")
    assert "not enabled for this workspace" in refused.value.message


@pytest.mark.parametrize("email", ["ada", "a@b@c", "ada @example.org", "a\x00@example.org"])
async def test_what_is_no_address_adds_no_test_participant(prolific, study, email):
    await draft(study)
    with pytest.raises(Invalid) as refused:
        await try_study(study, email)
    assert refused.value.code == "email_unreadable"
    assert prolific.test_participants == []


async def test_the_page_and_the_api_lead_the_study(app, researcher, prolific):
    study = await create_study(app.state.database, prolific, entered="", people=0, **PAID)
    app.state.payment_connector = study.connector
    page = "/admin/campaigns/verbs/study"
    assert "Reward of one person £1.50 for 3 tasks, about 6 minutes" in words(await researcher.get(page))
    reply = await researcher.post(f"{page}/draft", follow_redirects=True)
    assert "unpublished" in words(reply)
    assert "Cost of all places £6.30" in words(reply)
    tried = await researcher.post(f"{page}/test", data={"email": "ada@example.org"})
    assert "https://app.prolific.com/studies/test-of-draft-1" in tried.text
    refused = await researcher.post(page, data={"action": "publish", "total": "1"})
    assert "Type this total to publish" in words(refused)
    reply = await researcher.post(page, data={"action": "publish", "total": "4.50"}, follow_redirects=True)
    assert "Pause the study" in words(reply)
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)
    api = {"url": "/api/v1/campaigns/verbs/study", "headers": {"authorization": f"Bearer {token}"}}
    found = (await researcher.get(**api)).json()
    assert (found["status"], found["total"], found["places"], found["hourly_pay"]) == ("active", 450, 3, 1500)
    assert found["cost"] == {"rewards": 450, "fees": 150, "tax": 30, "total": 630, "currency": "GBP"}
    refused = await researcher.post(f"{api['url']}/test", headers=api["headers"], json={})
    assert refused.json()["error"]["code"] == "study_published"
    reply = await researcher.post(**api, json={"action": "pause"})
    assert reply.json()["status"] == "paused"
    assert (await researcher.post(**api, json={"action": "pause"})).json()["error"]["code"] == "service_refused"
    draft_again = await researcher.post(f"{api['url']}/draft", headers=api["headers"])
    assert draft_again.json()["error"]["code"] == "study_exists"


async def test_the_command_drafts(engine, database_url, prolific, study, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("EASEL_PROLIFIC_API_URL", prolific.address)
    monkeypatch.setenv("EASEL_SECRET_KEY", "a key of the server for tests, long enough")
    run = CliRunner().invoke
    words_ = ["study", "draft", "verbs", "--url", HTTPS]
    assert (await asyncio.to_thread(run, easel, words_)).output == "Draft draft-1 created. It is not published yet.\n"
    assert "study_exists" in (await asyncio.to_thread(run, easel, words_)).output
    tried = ["study", "test", "verbs", "--email", "ada@example.org"]
    url = "https://app.prolific.com/studies/test-of-draft-1\n"
    assert (await asyncio.to_thread(run, easel, tried)).output == url


async def test_a_study_without_a_budget_asks_for_it_with_the_sum_filled_in(engine, researcher):
    # 12 items with 3 judgments are 8 tasks of 5, for 3 people with 3 tasks each, who get 1.50 each.
    campaign = await create_running_campaign(engine, items=12, judgments_per_item=3, currency="GBP", **PAID)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/study")).text
    for source_page in (page, (await researcher.get(f"/admin/campaigns/{campaign.slug}/payments")).text):
        assert "Make it on Prolific under <i>Settings</i>, <i>API tokens</i>." in source_page
        assert "its address contains the id, after <code>/workspaces/</code>." in source_page
    assert f'action="/admin/campaigns/{campaign.slug}/payments/connection"' in page
    assert re.search(r'name="budget"[^>]* value="4.50"', page)
    done = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/payments/connection", data={"budget": "4.50", "from": "study"}
    )
    assert done.headers["location"] == f"/admin/campaigns/{campaign.slug}/study?done=payments-connected"


async def test_payments_propose_the_same_budget_and_the_launch_names_the_one_that_was_set(engine, researcher):
    campaign = await create_running_campaign(
        engine, items=12, judgments_per_item=3, currency="GBP", launched=False, **PAID
    )
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.get(f"{address}/payments")).text
    assert re.search(r'name="budget"[^>]* value="4.50"', page)
    assert "The budget for payments is" not in (await researcher.get(f"{address}/launch/confirm")).text
    await researcher.post(f"{address}/payments/connection", data={"budget": "6.00"})
    assert "The budget for payments is <b>£6.00</b>" in (await researcher.get(f"{address}/launch/confirm")).text
    assert re.search(r'name="budget"[^>]* value="6.00"', (await researcher.get(f"{address}/payments")).text)
