"""No HIT before consent, neither through the page nor for a program; a changed text is asked again."""

import csv
import io
import re
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from app.annotation.hits import leases
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import settings_edits
from app.database.session import borrow_autocommit_driver
from app.exports.registry import open_export_or_refuse
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    form_fields,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.onboarding.visits import CONSENT, hidden_fields, leases_of, open_campaign_link, send_form, step_of

FETCH = {"x-easel": "fetch", "accept": "application/json"}


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine, consent=CONSENT)


async def change_text(engine, campaign, text):
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update={"consent": text})
        )


async def test_nobody_gets_a_hit_before_they_agree(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    assert "<strong>your answers</strong>" in page
    assert await leases_of(engine) == 0
    page = await send_form(client, address, page, answer="yes")
    assert form_fields(page)["hit"]
    (row,) = await fetch_rows(engine, "SELECT step, version, outcome FROM visits")
    assert row == ("consent", 1, "passed")
    (text,) = await fetch_rows(engine, "SELECT version, markdown, sha256 FROM consent_texts")
    assert text == (1, CONSENT, sha256(CONSENT.encode()).hexdigest())


async def start_by_link(client, campaign, **fields):
    """Press the button on the link's welcome page, and return the next page."""
    link = f"/link/{campaign.link_key}"
    form = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', (await client.get(link)).text)
    reply = await client.post(link, data=dict(form) | fields)
    return (await client.get(reply.headers["location"])).text if reply.status_code == 303 else reply.text


async def test_the_first_page_of_the_link_shows_the_text_and_who_agrees_there_starts(client, engine, campaign):
    page = (await client.get(f"/link/{campaign.link_key}")).text
    assert "<strong>your answers</strong>" in page
    assert "Step 1" not in page  # there is only one
    assert form_fields(await start_by_link(client, campaign, answer="yes"))["hit"]
    assert await fetch_rows(engine, "SELECT step, version, outcome FROM visits") == [("consent", 1, "passed")]


async def test_who_says_no_on_the_first_page_of_the_link_gets_no_hit_and_may_still_agree(client, engine, campaign):
    page = await start_by_link(client, campaign, answer="no")
    assert "That is all right" in page
    assert step_of(page) == "consent"
    assert await leases_of(engine) == 0
    assert await fetch_rows(engine, "SELECT step, version, outcome FROM visits") == [("consent", 1, "declined")]


async def test_a_press_that_leaves_the_question_open_is_asked_next(client, engine, campaign):
    reply = await client.post(f"/link/{campaign.link_key}")  # a page of before, which had no such question
    address = reply.headers["location"]
    page = (await client.get(address)).text
    assert step_of(page) == "consent"
    assert form_fields(await send_form(client, address, page, answer="yes"))["hit"]


async def test_on_the_first_page_of_the_link_an_earlier_text_cannot_be_agreed_to(client, engine, campaign):
    page = await start_by_link(client, campaign, answer="yes", version="0")
    assert "The text has changed since you opened this page" in page
    assert "<strong>your answers</strong>" in page
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


async def test_the_first_page_from_a_platform_is_welcome_and_consent_in_one(client, engine):
    campaign = await create_running_campaign(engine, welcome=True, consent=CONSENT, minutes_per_hit=2)
    page, address = await open_campaign_link(client, campaign)
    assert step_of(page) == "consent"
    for words in ("How frequent?", "about 2 min a task", "<strong>your answers</strong>", "What a task looks like"):
        assert words in page
    await change_text(engine, campaign, "Another text.")
    assert form_fields(await send_form(client, address, (await client.get(address)).text, answer="yes"))["hit"]


async def test_without_a_welcome_the_page_of_the_consent_shows_the_text_alone(client, campaign):
    page, _ = await open_campaign_link(client, campaign)
    assert "How frequent?" not in page


async def test_saying_no_ends_kindly_and_can_be_taken_back(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, page, answer="no")
    assert "That is all right" in page
    assert "Please return the study on Prolific" in page
    assert await leases_of(engine) == 0
    page = await send_form(client, address, page, answer="yes")
    assert form_fields(page)["hit"]
    assert await fetch_rows(engine, "SELECT outcome FROM visits") == [("passed",)]


async def test_a_yes_is_not_taken_back_by_an_old_page(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    await send_form(client, address, page, answer="yes")
    await send_form(client, address, page, answer="no")
    assert await fetch_rows(engine, "SELECT outcome FROM visits") == [("passed",)]


async def test_a_page_without_an_answer_is_shown_again_with_the_reason(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    reply = await client.post(address, data=hidden_fields(page))
    assert "Say whether you agree" in reply.text
    assert await leases_of(engine) == 0


async def test_an_answer_cannot_be_sent_to_a_campaign_that_asks_for_consent_first(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    reply = await client.post(
        address, data={"token": hidden_fields(page)["token"], "hit": "1", "score-0": "5"}, headers=FETCH
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "hit_not_found")


async def test_a_changed_text_is_asked_before_the_next_hit_and_the_open_one_is_kept(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, page, answer="yes")
    begun = form_fields(page)
    await change_text(engine, campaign, "We also keep your age.")
    reply = await client.post(address, data=begun, headers=FETCH)
    assert "The text that you agreed to has changed" in reply.text
    assert "<html" not in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1
    assert await leases_of(engine) == 1
    page = await send_form(client, address, reply.text, answer="yes")
    assert form_fields(page)["hit"] != begun["hit"]
    assert await fetch_rows(engine, "SELECT version, outcome FROM visits ORDER BY version") == [
        (1, "passed"), (2, "passed"),
    ]  # fmt: skip
    assert await fetch_value(engine, "SELECT count(*) FROM consent_texts") == 2


async def test_agreeing_to_the_earlier_text_does_not_count_for_the_new_one(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    await change_text(engine, campaign, "We also keep your age.")
    reply = await client.post(address, data=hidden_fields(page) | {"answer": "yes"})
    assert "The text has changed since you opened this page" in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 0


async def test_who_held_a_hit_gets_the_same_one_back_after_they_agree_again(engine, campaign):
    me = await create_annotator(engine, campaign, platform="api")
    assert (await find_or_lease_next_hit(engine, me)).reason == "visit"
    await agree(engine, campaign, me, 1)
    hit = await try_to_lease_hit(engine, me)
    await change_text(engine, campaign, "Another text.")
    assert (await find_or_lease_next_hit(engine, me)).reason == "visit"
    await agree(engine, campaign, me, 2)
    assert (await try_to_lease_hit(engine, me)).id == hit.id


async def agree(engine, campaign, assignment, version):
    async with borrow_autocommit_driver(engine) as connection:
        await connection.execute(
            "INSERT INTO visits SELECT campaign_id, annotator_id, 'consent', $2, 'passed', '{}', now() "
            "FROM assignments WHERE id = $1",
            assignment.assignment_id,
            version,
        )


async def test_the_same_text_saved_again_asks_nobody_again(client, engine, campaign):
    await change_text(engine, campaign, CONSENT)
    assert await fetch_value(engine, "SELECT visit_version FROM campaigns") == 1


async def test_consent_asked_for_after_the_launch_is_asked_of_who_works_already(client, engine):
    campaign = await create_running_campaign(engine)
    page, address = await open_campaign_link(client, campaign)
    await change_text(engine, campaign, CONSENT)
    page = (await client.post(address, data=form_fields(page))).text
    assert step_of(page) == "consent"
    assert form_fields(await send_form(client, address, page, answer="yes"))["hit"]


async def test_simulated_annotators_agree_to_nothing(engine, campaign):
    made = await answer_hits_by_simulated_annotators_and_count(
        engine,
        campaign,
        hits=3,
        annotators=2,
        population=population_with_random_bias_only(0.1),
        truth_column=None,
        rng=np.random.default_rng(1),
        clock=lambda: NOW,
    )
    assert made == 3


async def statements_of(engine, assignment, cache):
    """Return the number of SQL statements for the next HIT."""
    async with borrow_autocommit_driver(engine) as connection:
        seen: list[Any] = []
        connection.add_query_logger(seen.append)
        await leases.find_or_lease_next_hit(connection, cache, AssignmentQuery(assignment), now=NOW)
        connection.remove_query_logger(seen.append)
    return [one.query for one in seen]


async def test_after_admission_the_way_to_a_hit_is_that_of_a_campaign_without_steps(engine, campaign):
    plain = await create_running_campaign(engine)
    took = []
    for of in (plain, campaign):
        me, cache = await create_annotator(engine, of, platform="prolific"), PosteriorCache()
        if of is campaign:
            await agree(engine, of, me, 1)
        await submit_scores(engine, me, await try_to_lease_hit(engine, me, cache=cache))
        took.append(await statements_of(engine, me, cache))
    assert took[0] == took[1]


async def test_the_export_of_visits_tells_who_agreed_to_which_text_and_when(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    await send_form(client, address, page, answer="yes")
    file = await open_export_or_refuse(engine, campaign.slug, "visits")
    (row,) = csv.DictReader(io.StringIO("".join([piece async for piece in file.chunks])))
    told = {name: row[name] for name in ("name", "platform", "step", "version", "outcome", "sha256")}
    assert told == {
        "name": "A1", "platform": "prolific", "step": "consent", "version": "1", "outcome": "passed",
        "sha256": sha256(CONSENT.encode()).hexdigest(),
    }  # fmt: skip
    assert row["taken_at"]
    assert "p1" not in row.values()
