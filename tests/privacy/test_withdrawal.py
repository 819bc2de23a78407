"""Annotators get a code at the end, and where the campaign lets them, have their own answers removed."""

import re
from datetime import timedelta

import pytest

from app.annotation.platforms.approvals import list_ids_of_approvable_submissions
from app.annotation.platforms.registry import PLATFORMS
from app.errors import Conflict, Forbidden
from app.privacy.erasure_work import finish_erasures_that_are_due
from app.privacy.erasures import erase_person_and_return_erasure
from app.privacy.person_search import find_people_and_log_search
from app.privacy.withdrawal import undo_withdrawal_or_refuse, withdraw_annotator_and_return_erasure
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    form_fields,
    try_to_lease_hit,
)
from tests.privacy.people import answer_hits, verification_is_clean

DAY = timedelta(hours=24)


@pytest.fixture
def engine(app):
    return app.state.database


async def end_page(client, engine, **settings):
    """Arrive from a platform, answer the only set and return the last page."""
    campaign = await create_running_campaign(engine, hits_per_annotator=1, **settings)
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1"
    fields = form_fields((await client.get(address)).text)
    return campaign, (await client.post(address, data=fields)).text


def withdraw_address(page):
    (address,) = re.findall(r'href="([^"]+/withdraw\?[^"]+)"', page)
    return address.replace("&amp;", "&")


def fields_of(page, action):
    token, *_ = re.findall(r'name="token" value="([^"]+)"', page)
    return {"token": token, "action": action}


async def test_the_code_on_the_last_page_finds_the_person_and_only_its_hash_is_stored(client, engine):
    campaign, page = await end_page(client, engine)
    (code,) = re.findall(r">([A-Z2-7]{5}-[A-Z2-7]{5})<", page)
    async with engine.begin() as connection:
        for typed in (code, code.lower().replace("-", " ")):
            assert [person.name for person in await find_people_and_log_search(connection, campaign, typed)] == ["A1"]
    assert len(await fetch_value(engine, "SELECT code_hash FROM withdrawal_codes")) == 32


async def test_only_a_campaign_that_lets_them_offers_the_page_for_it(client, engine):
    _, page = await end_page(client, engine)
    assert "/withdraw" not in page


async def test_an_annotator_withdraws_and_takes_it_back(client, engine):
    _, page = await end_page(client, engine, withdrawal="self")
    asked = await client.get(withdraw_address(page))
    path = withdraw_address(page).partition("?")[0]
    withdrawn = (await client.post(path, data=fields_of(asked.text, "withdraw"))).text
    assert "Your answers will be removed in 24 hours" in withdrawn
    again = (await client.post(path, data=fields_of(asked.text, "withdraw"))).text
    assert "Your answers will be removed in 24 hours" in again
    kept = (await client.post(path, data=fields_of(withdrawn, "keep"))).text
    assert "Stop and have my answers removed" in kept
    assert await fetch_value(engine, "SELECT count(*) FROM erasures") == 0
    assert await fetch_rows(engine, "SELECT barred FROM annotators") == [(None,)]
    lines = await fetch_rows(engine, "SELECT action, who FROM audit_log WHERE action LIKE 'people.%' ORDER BY id")
    assert lines == [("people.withdrew", "the annotator"), ("people.withdrawal_undone", "the annotator")]


async def test_the_page_says_how_to_ask_where_only_the_researcher_removes_answers(client, engine):
    campaign, _ = await end_page(client, engine, withdrawal="self")
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1"
    link = withdraw_address((await client.get(address)).text)
    await execute_sql(engine, "UPDATE campaigns SET visit_settings = visit_settings - 'withdrawal'")
    page = (await client.get(link)).text
    assert "Write to the researcher" in page
    assert re.search(r">[A-Z2-7]{5}-[A-Z2-7]{5}<", page)


async def test_people_who_withdrew_after_work_find_the_way_back_to_the_platform(client, engine):
    campaign, page = await end_page(client, engine, withdrawal="self", prolific_completion_code="D0NE")
    asked = await client.get(withdraw_address(page))
    path = withdraw_address(page).partition("?")[0]
    withdrawn = (await client.post(path, data=fields_of(asked.text, "withdraw"))).text
    assert "submissions/complete?cc=D0NE" in withdrawn
    task = (await client.get(f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1")).text
    assert 'data-reason="withdrawn"' in task
    assert "submissions/complete?cc=D0NE" in task


async def test_people_who_withdrew_before_any_answer_are_told_to_return_the_task(client, engine):
    campaign = await create_running_campaign(engine, withdrawal="self", prolific_completion_code="D0NE")
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1"
    task = (await client.get(address)).text
    path = f"/prolific/{campaign.link_key}/withdraw"
    withdrawn = (await client.post(path, data=fields_of(task, "withdraw"))).text
    for page in (withdrawn, (await client.get(address)).text):
        assert "lease return the study on Prolific" in page
        assert "D0NE" not in page


async def withdrawn_pages_after_one_set(client, engine, *, before_withdrawal=None, **settings):
    """Answer one of several sets, withdraw, and return the withdrawal page and the task's page."""
    campaign = await create_running_campaign(
        engine, withdrawal="self", prolific_completion_code="D0NE", hits_per_annotator=3, **settings
    )
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1"
    task = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    if before_withdrawal:
        await execute_sql(engine, before_withdrawal)
    fields = fields_of(task, "withdraw")
    withdrawn = (await client.post(f"/prolific/{campaign.link_key}/withdraw", data=fields)).text
    assert "You have withdrawn" in withdrawn
    return withdrawn, (await client.get(address)).text


async def test_a_withdrawal_gives_no_code_before_the_visit_may_end(client, engine):
    for page in await withdrawn_pages_after_one_set(client, engine):
        assert "lease return the study on Prolific" in page
        assert "D0NE" not in page


async def test_a_withdrawal_gives_the_code_where_any_set_may_be_the_last(client, engine):
    for page in await withdrawn_pages_after_one_set(client, engine, leave_early=True):
        assert "submissions/complete?cc=D0NE" in page


async def test_a_withdrawal_gives_no_code_to_people_who_were_held_before(client, engine):
    hold = "UPDATE annotators SET barred = 'held', barred_reason = 'gold', barred_by = 'x', barred_at = now()"
    pages = await withdrawn_pages_after_one_set(client, engine, before_withdrawal=hold, leave_early=True)
    for page in pages:
        assert "D0NE" not in page


async def test_people_who_can_be_paid_without_a_code_get_one_instruction_on_both_pages(client, engine):
    campaign, page = await end_page(client, engine, withdrawal="self")
    path = f"/prolific/{campaign.link_key}"
    withdrawn = (await client.post(f"{path}/withdraw", data=fields_of(page, "withdraw"))).text
    assert "You have withdrawn" in withdrawn
    for shown in (withdrawn, (await client.get(f"{path}?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1")).text):
        assert "You can now finish on Prolific’s own page." in shown
        assert "lease return the study" not in shown


async def test_people_who_keep_their_answers_twice_are_told_that_nothing_is_withdrawn(client, engine):
    campaign, page = await end_page(client, engine, withdrawal="self")
    path = f"/prolific/{campaign.link_key}/withdraw"
    await client.post(path, data=fields_of(page, "withdraw"))
    for count in range(3):
        kept = await client.post(path, data=fields_of(page, "keep"))
        assert kept.status_code == 200
        assert "can no longer be taken back" not in kept.text
        assert ("Nothing is withdrawn. Your answers are kept." in kept.text) == (count > 0)


@pytest.mark.parametrize("token", ["", "forged"])
async def test_a_stranger_withdraws_nobody(client, engine, token):
    campaign, _ = await end_page(client, engine, withdrawal="self")
    reply = await client.post(f"/prolific/{campaign.link_key}/withdraw", data={"token": token, "action": "withdraw"})
    assert reply.status_code == 422
    assert await fetch_value(engine, "SELECT count(*) FROM erasures") == 0


async def withdrawn_person(engine):
    campaign = await create_running_campaign(engine, withdrawal="self")
    person = await create_annotator(engine, campaign, "ann", "prolific")
    await answer_hits(engine, person, 1)
    await try_to_lease_hit(engine, person)
    async with engine.begin() as connection:
        await withdraw_annotator_and_return_erasure(connection, campaign, person.assignment_id, now=NOW)
    return campaign, person


async def test_a_day_later_the_answers_are_removed_and_nothing_brings_them_back(engine):
    campaign, person = await withdrawn_person(engine)
    await finish_erasures_that_are_due(engine, now=NOW + DAY - timedelta(seconds=1))
    assert await fetch_value(engine, "SELECT worker_id FROM annotators") == "ann"
    assert (await find_or_lease_next_hit(engine, person)).reason == "withdrawn"
    await finish_erasures_that_are_due(engine, now=NOW + DAY)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 0
    assert (await find_or_lease_next_hit(engine, person)).reason == "erased"
    assert await verification_is_clean(engine, campaign)
    async with engine.begin() as connection:
        with pytest.raises(Conflict) as refusal:
            await undo_withdrawal_or_refuse(connection, campaign, person.assignment_id, now=NOW + DAY)
    assert refusal.value.code == "withdrawal_final"


async def test_the_receipt_of_a_withdrawal_that_is_not_due_claims_no_erasure(researcher, engine):
    campaign, _ = await withdrawn_person(engine)
    receipt = await fetch_value(engine, "SELECT receipt FROM erasures")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/privacy/receipts/{receipt}")).text
    assert "Nothing is erased yet" in page
    assert "What will be erased" in page
    assert "<dt>Answers</dt>" not in page


async def test_after_taking_it_back_the_annotator_works_on(engine):
    campaign, person = await withdrawn_person(engine)
    async with engine.begin() as connection:
        await undo_withdrawal_or_refuse(connection, campaign, person.assignment_id, now=NOW + timedelta(hours=23))
    assert (await find_or_lease_next_hit(engine, person)).hit is not None


async def test_a_withdrawal_that_is_not_offered_is_refused(engine):
    campaign = await create_running_campaign(engine)
    person = await create_annotator(engine, campaign)
    async with engine.begin() as connection:
        with pytest.raises(Forbidden) as refusal:
            await withdraw_annotator_and_return_erasure(connection, campaign, person.assignment_id, now=NOW)
    assert refusal.value.code == "withdrawal_not_offered"


async def test_a_researcher_can_erase_at_once_who_withdrew(engine):
    campaign, _ = await withdrawn_person(engine)
    receipt = await fetch_value(engine, "SELECT receipt FROM erasures")
    with pytest.raises(Conflict) as refusal:
        await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=NOW)
    assert refusal.value.code == "already_withdrawn"
    assert (await erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=NOW)).receipt == receipt
    assert await fetch_value(engine, "SELECT identifiers_erased_at FROM erasures") == NOW


async def test_who_withdrew_can_be_paid_until_the_ids_are_erased(engine):
    campaign, _ = await withdrawn_person(engine)
    await execute_sql(engine, "UPDATE assignments SET completed_at = :now", now=NOW)
    async with engine.connect() as connection:
        listed = await list_ids_of_approvable_submissions(connection, campaign.id, PLATFORMS["prolific"])
    assert len(listed) == 1
