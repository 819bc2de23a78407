"""Pages, API and command for a person's data."""

import io
import json
import re
import zipfile
from datetime import UTC, datetime, timedelta

import pytest

from app.accounts import tokens, users
from app.privacy.deletion_notice import deletion_notice_or_empty
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import NOW, execute_sql, fetch_rows, fetch_value
from tests.privacy.people import SUBMISSION_ID, WORKER_ID, create_answered_campaign


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def address(engine):
    campaign, _ = await create_answered_campaign(engine)
    return f"/admin/campaigns/{campaign.slug}/privacy"


async def test_a_researcher_finds_a_person_and_downloads_their_data(researcher, address):
    page = (await researcher.post(address, data={"term": SUBMISSION_ID})).text
    assert f'href="{address}/A1/export"' in page
    download = await researcher.get(f"{address}/A1/export")
    assert download.headers["content-type"] == "application/zip"
    assert download.headers["cache-control"] == "no-store"
    document = json.loads(zipfile.ZipFile(io.BytesIO(download.content)).read("person.json"))
    assert document["tables"]["annotators"][0]["worker_id"] == WORKER_ID


async def test_an_erasure_leads_to_a_receipt_that_does_not_name_the_person(researcher, engine, address):
    reply = await researcher.post(f"{address}/A1/erase", data={"rule": "remove", "sure": "yes"})
    assert reply.status_code == 303
    receipt = (await researcher.get(reply.headers["location"])).text
    assert "2, removed" in receipt
    assert WORKER_ID not in receipt
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE worker_id = :id", id=WORKER_ID) == 0
    found = (await researcher.post(address, data={"term": "A1"})).text
    assert "Erase this person" not in found
    annotator = (await researcher.get(address.replace("privacy", "annotators/A1"))).text
    assert "They asked for this" in " ".join(annotator.split())


async def test_what_happens_to_the_answers_is_asked_and_not_preset(researcher, address):
    page = (await researcher.post(address, data={"term": "A1"})).text
    choices = re.findall(r'<input type="radio" name="rule"[^>]*>', page)
    assert len(choices) == 2
    assert all(" checked" not in choice and " required" in choice for choice in choices)
    assert "If someone withdraws, do what your" in page


async def test_a_finished_campaign_leads_to_the_setting_that_deletes_it(researcher, engine, address):
    campaign, setting = address.removesuffix("/privacy"), "/settings?setting=everything_days"
    assert setting not in (await researcher.get(campaign)).text
    await researcher.post(f"{campaign}/finish")
    assert f'href="{campaign}{setting}">Delete …</a>' in (await researcher.get(campaign)).text
    assert 'name="everything_days"' in (await researcher.get(campaign + setting, follow_redirects=True)).text


async def test_the_head_of_a_finished_campaign_says_on_which_day_it_is_deleted(researcher, engine, address):
    campaign = address.removesuffix("/privacy")
    await execute_sql(engine, """UPDATE campaigns SET visit_settings = visit_settings || '{"everything_days": 30}'""")
    assert "Easel deletes this campaign" not in (await researcher.get(campaign)).text
    await researcher.post(f"{campaign}/finish")
    finished_at = await fetch_value(engine, "SELECT finished_at FROM campaigns")
    day = f"{finished_at + timedelta(days=30):%Y-%m-%d}"
    for subpage in ("", "/annotators", "/settings/visit?done=saved"):
        page = (await researcher.get(f"{campaign}{subpage}")).text
        assert f"Easel deletes this campaign, with all answers, on {day}." in page, subpage


@pytest.mark.parametrize(
    ("days_left", "text"),
    [
        (8, "on 2026-05-01."),
        (3, "on 2026-05-01, but at the earliest 7 days after the alert about it."),
        (-3, "with all answers, 7 days after the alert about it."),
    ],
)
async def test_the_day_of_deletion_waits_for_the_alert(engine, address, days_left, text):
    due = datetime(2026, 5, 1, 12, tzinfo=UTC)
    await execute_sql(
        engine,
        """UPDATE campaigns SET status = 'finished', finished_at = :at,
               visit_settings = visit_settings || '{"everything_days": 30}'""",
        at=due - timedelta(days=30),
    )
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, address.split("/")[3])
    assert deletion_notice_or_empty(campaign, due - timedelta(days=days_left)).endswith(text)


async def test_without_the_box_nothing_is_erased(researcher, engine, address):
    reply = await researcher.post(f"{address}/A1/erase", data={"rule": "remove"})
    assert reply.status_code == 422
    assert await fetch_value(engine, "SELECT count(*) FROM erasures") == 0


@pytest.mark.parametrize(("term", "text"), [("unknown", "No annotator of this campaign"), ("", "Enter an id")])
async def test_a_search_without_a_result_says_so(researcher, address, term, text):
    assert text in (await researcher.post(address, data={"term": term})).text


@pytest.fixture
async def program(engine, researcher):
    async with engine.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)
    researcher.headers["authorization"] = f"Bearer {token}"
    return researcher


async def test_a_program_finds_exports_and_erases(program, address):
    api = address.replace("/admin/", "/api/v1/").removesuffix("/privacy")
    (found,) = (await program.post(f"{api}/persons/search", json={"term": WORKER_ID})).json()
    assert (found["name"], found["answers"], found["receipt"]) == ("A1", 2, None)
    assert (await program.get(f"{api}/persons/A1/export")).content[:2] == b"PK"
    erased = (await program.post(f"{api}/persons/A1/erasure", json={"rule": "anonymise"})).json()
    assert erased["finished_at"]
    assert (await program.get(f"{api}/erasures")).json() == [erased]
    assert (await program.get(f"{api}/erasures/{erased['receipt']}")).json() == erased
    again = await program.post(f"{api}/persons/A1/erasure", json={"rule": "anonymise"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_erased")
    assert (await program.get(f"{api}/erasures/E-NONE")).json()["error"]["code"] == "receipt_not_found"


async def test_pages_of_quality_and_exports_work_after_an_erasure(researcher, engine, address):
    await researcher.post(f"{address}/A1/erase", data={"rule": "remove", "sure": "yes"})
    campaign = address.removesuffix("/privacy")
    for page in ("", "/annotators", "/checks", "/analysis", "/export", "/log", "/export/responses.csv"):
        assert (await researcher.get(campaign + page)).status_code == 200, page
    rows = (await researcher.get(f"{campaign}/export/responses.csv")).text.splitlines()
    left_out = [row for row in rows if ",erased," in row]
    assert len(left_out) == 10
    assert (await researcher.get(f"{campaign.replace('/admin/', '/api/v1/')}/verify")).status_code in (200, 401)


async def test_no_decision_brings_removed_answers_back(researcher, engine, address):
    await researcher.post(f"{address}/A1/erase", data={"rule": "remove", "sure": "yes"})
    annotators = address.replace("privacy", "annotators")
    for action in ("hold", "release", "exclude", "restore"):
        reply = await researcher.post(f"{annotators}/A1/{action}", data={"reason": "a try"})
        assert reply.status_code == 409, action
    states = await fetch_rows(engine, "SELECT barred FROM annotators ORDER BY id")
    assert states == [("erased",), (None,)]


async def test_the_receipts_are_listed(researcher, address):
    await researcher.post(f"{address}/A1/erase", data={"rule": "anonymise", "sure": "yes"})
    assert re.search(r"receipts/E-[2-9A-Z]{8}", (await researcher.get(address)).text)


async def test_the_form_warns_of_finished_work_that_is_not_paid(researcher, engine):
    campaign, _ = await create_answered_campaign(
        engine, pay_per_hit=0.5, currency="GBP", hits_per_annotator=3, people_from="prolific"
    )
    address = f"/admin/campaigns/{campaign.slug}/privacy"
    warning = "Easel has seen no payment"
    assert warning not in (await researcher.post(address, data={"term": "A1"})).text
    await execute_sql(
        engine, "UPDATE assignments SET completed_at = :now WHERE external_id = :id", now=NOW, id=SUBMISSION_ID
    )
    page = " ".join((await researcher.post(address, data={"term": "A1"})).text.split())
    assert f"A1 finished, and {warning}: <strong>£1.50</strong> is due." in page
    assert "the list of submissions to approve leaves this person out" in page
    assert f"<code>{SUBMISSION_ID}</code>" in page
    assert warning not in (await researcher.post(address, data={"term": "A2"})).text


@pytest.mark.parametrize("status", ["approved", "returned"])
async def test_no_warning_is_given_where_the_platform_has_settled_the_submission(researcher, engine, status):
    campaign, _ = await create_answered_campaign(engine, pay_per_hit=0.5, currency="GBP")
    await execute_sql(
        engine, "UPDATE assignments SET completed_at = :now WHERE external_id = :id", now=NOW, id=SUBMISSION_ID
    )
    await execute_sql(
        engine,
        """INSERT INTO submissions (campaign_id, external_id, annotator_id, study, status, seen_at)
           SELECT :campaign, :id, id, 'study', :status, :now FROM annotators WHERE worker_id = :worker""",
        campaign=campaign.id,
        id=SUBMISSION_ID,
        status=status,
        now=NOW,
        worker=WORKER_ID,
    )
    page = (await researcher.post(f"/admin/campaigns/{campaign.slug}/privacy", data={"term": "A1"})).text
    assert "Erase this person" in page
    assert "Easel has seen no payment" not in page
