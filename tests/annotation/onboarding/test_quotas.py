"""Quotas by an answer to an entry question: full ones, and places of people who leave."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from app.annotation.onboarding.visit_progress import (
    admit_to_visit_version_unless_quota_place_lost,
    load_visit_or_refuse,
)
from app.annotation.platforms.assignments import AssignmentId
from app.campaigns.settings import CampaignSettings
from app.database.session import borrow_autocommit_driver, borrow_driver_in_transaction
from tests.annotation.hits.campaigns import (
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    form_fields,
    requests_are_waiting_sql,
    wait_until,
)
from tests.annotation.onboarding.visits import open_campaign_link, send_form, step_of
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)

QUESTION = "gender: What is your gender? | female | male | screen out: rather not"
SETTINGS: dict[str, Any] = {"questions": [QUESTION], "quotas": ["gender = female: 2"], "return_screened_out": "OUT1"}
OUTCOMES = "SELECT outcome, count(*) FROM visits GROUP BY 1 ORDER BY 1"


@pytest.fixture
def engine(app):
    return app.state.database


async def answer_questions(client, campaign, person, answer="female"):
    """Answer the question as this person, and return the next page and its address."""
    page, address = await open_campaign_link(client, campaign, PROLIFIC_PID=person)
    return await send_form(client, address, page, **{"question-gender": answer}), address


async def let_people_be_away(engine, minutes):
    """Let all results of steps and leases be so many minutes older."""
    await execute_sql(
        engine, "UPDATE visits SET taken_at = taken_at - make_interval(mins => :minutes)", minutes=minutes
    )
    await expire_leases(engine)


async def test_a_full_quota_ends_the_visit_kindly_and_others_still_come(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    for person in ("p1", "p2"):
        page, _ = await answer_questions(client, campaign, person)
        assert form_fields(page)["hit"]
    page, address = await answer_questions(client, campaign, "p3")
    assert "Enough people with your answers have taken part already" in page
    assert "OUT1" in page
    assert "OUT1" in (await client.get(address)).text
    page, _ = await answer_questions(client, campaign, "p4", "male")
    assert form_fields(page)["hit"]
    assert await fetch_rows(engine, OUTCOMES) == [("full", 1), ("passed", 3)]


def test_the_number_of_a_quota_has_ordinary_digits():
    with pytest.raises(ValidationError, match="must be like"):
        CampaignSettings(name="Verbs", question="How?", questions=[QUESTION], quotas=["gender = female: ５"])


def test_true_is_no_pay():
    with pytest.raises(ValidationError, match="not yes or no"):
        CampaignSettings(name="Verbs", question="How?", pay_per_hit=True)


async def test_a_full_quota_has_a_code_of_its_own_if_one_is_set(client, engine):
    campaign = await create_running_campaign(
        engine, **SETTINGS | {"quotas": ["gender = female: 0"], "return_quota_full": "FULL1"}
    )
    page, _ = await answer_questions(client, campaign, "p1")
    assert "FULL1" in page
    assert "OUT1" not in page


async def test_of_many_who_answer_at_once_only_as_many_get_a_place_as_there_are(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS, items=40)
    people = [f"p{number}" for number in range(12)]
    pages = [await open_campaign_link(client, campaign, PROLIFIC_PID=person) for person in people]
    answer = {"question-gender": "female"}
    shown = await asyncio.gather(*(send_form(client, address, page, **answer) for page, address in pages))
    assert sum('name="hit"' in page for page in shown) == 2
    assert await fetch_rows(engine, OUTCOMES) == [("full", 10), ("passed", 2)]


async def test_an_answer_that_is_sent_twice_takes_one_place(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"quotas": ["gender = female: 1"]})
    page, address = await open_campaign_link(client, campaign)
    answer = {"question-gender": "female"}
    shown = await asyncio.gather(*(send_form(client, address, page, **answer) for _ in range(4)))
    assert all('name="hit"' in page for page in shown)
    assert await fetch_rows(engine, OUTCOMES) == [("passed", 1)]


async def test_people_who_leave_without_an_answer_free_their_place_after_the_lease_time(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS, lease_minutes=30)
    first_page, first_address = await answer_questions(client, campaign, "p1")
    second_page, second_address = await answer_questions(client, campaign, "p2")
    await client.post(second_address, data=form_fields(second_page))
    await let_people_be_away(engine, 29)
    assert "Enough people" in (await answer_questions(client, campaign, "p3"))[0]
    await let_people_be_away(engine, 2)
    assert form_fields((await answer_questions(client, campaign, "p4"))[0])["hit"]
    # The page that the first person left open stores nothing, and asks the questions again.
    reply = await client.post(first_address, data=form_fields(first_page))
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1
    assert step_of(reply.text) == "questions"
    assert "Enough people" in (await answer_questions(client, campaign, "p1"))[0]


async def test_who_holds_a_task_or_goes_through_other_steps_keeps_the_place(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"quotas": ["gender = female: 1"]})
    await answer_questions(client, campaign, "p1")
    await execute_sql(engine, "UPDATE visits SET taken_at = taken_at - interval '1 day'")
    assert "Enough people" in (await answer_questions(client, campaign, "p2"))[0]


async def test_a_person_who_left_gets_the_place_again_if_there_is_one(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"quotas": ["gender = female: 1"]})
    await answer_questions(client, campaign, "p1")
    await let_people_be_away(engine, 31)
    await answer_questions(client, campaign, "p2")
    await let_people_be_away(engine, 31)
    page, _ = await answer_questions(client, campaign, "p1")
    assert form_fields(page)["hit"]
    assert await fetch_rows(engine, OUTCOMES) == [("lapsed", 2), ("passed", 1)]


async def test_a_request_that_read_the_passed_step_before_the_place_was_lost_admits_nobody(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"quotas": ["gender = female: 1"]})
    _, address = await answer_questions(client, campaign, "p1")
    ((assignment_id,),) = await fetch_rows(engine, "SELECT id FROM assignments")
    await execute_sql(engine, "UPDATE annotators SET admitted = 0")
    async with borrow_autocommit_driver(engine) as connection:
        visit = await load_visit_or_refuse(connection, AssignmentId(campaign.id, assignment_id))
        assert visit.next_step_or_none is None
        await let_people_be_away(engine, 31)
        assert form_fields((await answer_questions(client, campaign, "p2"))[0])["hit"]
        await admit_to_visit_version_unless_quota_place_lost(connection, visit)
    assert await fetch_value(engine, "SELECT admitted FROM annotators ORDER BY id LIMIT 1") < campaign.visit_version
    assert step_of((await client.get(address)).text) == "questions"


@pytest.mark.parametrize("is_renewal", [False, True])
async def test_no_hit_is_leased_once_the_loss_of_a_place_is_committed(client, engine, is_renewal):
    campaign = await create_running_campaign(engine, **SETTINGS | {"quotas": ["gender = female: 1"]})
    await answer_questions(client, campaign, "p1")
    await expire_leases(engine)
    if not is_renewal:
        await execute_sql(engine, "DELETE FROM hits")
    ((assignment_id,),) = await fetch_rows(engine, "SELECT id FROM assignments")
    async with borrow_driver_in_transaction(engine) as freeing:
        await freeing.execute("SELECT FROM annotators FOR UPDATE")
        asking = asyncio.create_task(find_or_lease_next_hit(engine, AssignmentId(campaign.id, assignment_id)))
        await wait_until(engine, requests_are_waiting_sql(1))
        await freeing.execute("UPDATE visits SET outcome = 'lapsed'")
        await freeing.execute("UPDATE annotators SET admitted = -1")
    work = await asking
    assert (work.hit, work.reason) == (None, "visit")


TWO_QUOTAS: dict[str, Any] = {
    "questions": [QUESTION, "age: How old are you? | under 30 | 30 or more"],
    "quotas": ["gender = female: 1", "age = under 30: 1"],
}


async def answer_both_questions(client, campaign, person, gender, age):
    page, address = await open_campaign_link(client, campaign, PROLIFIC_PID=person)
    return await send_form(client, address, page, **{"question-gender": gender, "question-age": age}), address


async def test_a_person_without_a_place_in_one_quota_takes_none_from_people_who_left_in_another(client, engine):
    campaign = await create_running_campaign(engine, **TWO_QUOTAS)
    await answer_both_questions(client, campaign, "p1", "female", "30 or more")
    await let_people_be_away(engine, 31)
    page, address = await answer_both_questions(client, campaign, "p2", "male", "under 30")
    await client.post(address, data=form_fields(page))
    await answer_both_questions(client, campaign, "p3", "female", "under 30")
    assert await fetch_rows(engine, OUTCOMES) == [("full", 1), ("passed", 2)]


async def test_a_person_who_left_with_both_places_is_the_only_one_who_loses_them(client, engine):
    campaign = await create_running_campaign(engine, **TWO_QUOTAS)
    await answer_both_questions(client, campaign, "p1", "female", "under 30")
    await let_people_be_away(engine, 31)
    page, _ = await answer_both_questions(client, campaign, "p2", "female", "under 30")
    assert form_fields(page)["hit"]
    assert await fetch_rows(engine, OUTCOMES) == [("lapsed", 1), ("passed", 1)]


async def test_places_are_freed_without_a_deadlock_whatever_the_order_in_which_people_left(client, engine):
    """Leases and quotas lock annotators by id."""
    campaign = await create_running_campaign(engine, **SETTINGS)
    for person in ("p1", "p2"):
        await answer_questions(client, campaign, person)
    await let_people_be_away(engine, 31)
    await execute_sql(engine, "UPDATE visits SET taken_at = taken_at - annotator_id * interval '1 minute'")
    lowered = """UPDATE campaigns SET visit_settings = visit_settings || '{"quotas": ["gender = female: 1"]}'"""
    await execute_sql(engine, lowered)
    first, second = [row[0] for row in await fetch_rows(engine, "SELECT id FROM annotators ORDER BY id")]
    async with borrow_driver_in_transaction(engine) as leasing:
        await leasing.fetch("SELECT FROM annotators WHERE id = $1 FOR NO KEY UPDATE", first)
        asking = asyncio.create_task(answer_questions(client, campaign, "p3"))
        await wait_until(engine, requests_are_waiting_sql(1))
        await leasing.fetch("SELECT FROM annotators WHERE id = $1 FOR NO KEY UPDATE", second)
    page, _ = await asking
    assert form_fields(page)["hit"]
    assert await fetch_rows(engine, OUTCOMES) == [("lapsed", 2), ("passed", 1)]


async def test_a_person_who_is_excluded_frees_the_place(client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"quotas": ["gender = female: 1"]})
    page, address = await answer_questions(client, campaign, "p1")
    await client.post(address, data=form_fields(page))
    await execute_sql(engine, "UPDATE annotators SET barred = 'excluded'")
    assert form_fields((await answer_questions(client, campaign, "p2"))[0])["hit"]


async def test_a_person_with_two_quotas_needs_a_place_in_both(client, engine):
    campaign = await create_running_campaign(
        engine,
        questions=[QUESTION, "age: How old are you? | under 30 | 30 or more: really"],
        quotas=["gender=female : 1", "age = 30 or more: really: 1"],
    )
    for person, answers, has_place in (
        ("p1", ("female", "under 30"), True),
        ("p2", ("male", "30 or more: really"), True),
        ("p3", ("male", "30 or more: really"), False),
        ("p4", ("female", "30 or more: really"), False),
        ("p5", ("male", "under 30"), True),
    ):
        page, address = await open_campaign_link(client, campaign, PROLIFIC_PID=person)
        fields = dict(zip(("question-gender", "question-age"), answers, strict=True))
        assert ('name="hit"' in await send_form(client, address, page, **fields)) is has_place


@pytest.mark.parametrize(
    ("quotas", "message"),
    [
        (["gender: 50"], "must be like"),
        (["gender = female"], "must be like"),
        (["gender = female: many"], "must be like"),
        (["sex = female: 5"], "not a question with choices"),
        (["comments = none: 5"], "not a question with choices"),
        (["gender = other: 5"], "not a choice"),
        (["gender = rather not: 5"], "that lets people take part"),
        (["gender = female: 5", "gender = female: 6"], "only one quota"),
    ],
)
def test_a_quota_names_a_choice_of_a_question(quotas, message):
    questions = [QUESTION, "comments?: Comments?"]
    with pytest.raises(ValidationError, match=message):
        CampaignSettings(name="Verbs", question="How?", questions=questions, quotas=quotas)


async def test_researchers_see_how_many_places_are_taken_and_raise_a_quota(researcher, client, engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    await answer_questions(client, campaign, "p1")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/participants")).text
    assert "1 of 2" in page
    form = {"quotas": "gender = female: 3"}
    assert (await researcher.post(f"/admin/campaigns/{campaign.slug}/settings/visit", data=form)).status_code == 303
    assert "1 of 3" in (await researcher.get(f"/admin/campaigns/{campaign.slug}/participants")).text


async def test_programs_read_how_many_places_are_taken(api_client, client, engine):  # noqa: F811
    campaign = await create_running_campaign(engine, **SETTINGS)
    await answer_questions(client, campaign, "p1")
    reply = await api_client.get(f"{API}/campaigns/{campaign.slug}/participants")
    assert reply.json()["quotas"] == [{"question": "gender", "answer": "female", "limit": 2, "people": 1}]
