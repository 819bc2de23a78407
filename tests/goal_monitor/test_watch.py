"""Campaigns that stop by themselves when their goal is reached."""

import asyncio
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sqlalchemy import select, text

from app.campaigns import lifecycle, settings_edits
from app.campaigns.settings import CampaignSettings
from app.database import tables
from app.database.alerts import alert_sentence
from app.errors import Conflict
from app.goal_monitor.monitor import enforce_goal_and_return_state_or_none
from app.goals.progress import Progress, goal_item_numbers, goal_progress_or_none, text_that_identifies_goal
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.quality import decisions
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    find_or_lease_next_hit,
    store_settings,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import answer_hits_of_systems, create_campaign_of_systems, outputs_table
from tests.unsaved import unsaved

GOAL: dict[str, Any] = {"goal": "best", "best_items": 2, "goal_within": 10, "judgments_per_item": 40}


async def answered(engine, campaign, people, scores_of=lambda item: [95.0, 90.0][item] if item < 2 else 10.0 + item):
    """Store HITs of people who nearly agree that the first two items are the best."""
    for person in range(people):
        assignment = await create_annotator(engine, campaign, f"p{person}")
        for _ in range(2):
            hit = await try_to_lease_hit(engine, assignment)
            noise = 3 * (person % 3 - 1)
            await submit_scores(engine, assignment, hit, scores=[min(100.0, scores_of(i) + noise) for i in hit.items])


async def status_of(engine, campaign):
    async with engine.connect() as connection:
        return (await connection.execute(select(tables.campaigns).where(tables.campaigns.c.id == campaign.id))).one()


async def alerts(engine):
    async with engine.connect() as connection:
        return (await connection.execute(text("SELECT kind, about FROM alerts ORDER BY id"))).all()


@pytest.mark.parametrize(("wish", "status"), [("tell", "running"), ("pause", "paused"), ("finish", "finished")])
async def test_a_campaign_does_what_was_wished_when_its_goal_is_reached(engine, wish, status):
    campaign = await create_running_campaign(engine, items=10, when_reached=wish, **GOAL)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).status == "running"
    await answered(engine, campaign, 6)
    seen = await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    now = await status_of(engine, campaign)
    assert (now.status, now.goal_reached) == (status, text_that_identifies_goal(campaign))
    assert ("goal", "we know the best 2 items with 95 % probability, up to differences of 10 points") in [
        tuple(row) for row in await alerts(engine)
    ]
    assert seen is not None
    assert seen.evidence_read is not None
    assert seen.has_stopped_campaign == (wish != "tell")


async def test_whoever_goes_on_is_not_stopped_again_but_for_another_goal(engine):
    campaign = await create_running_campaign(engine, items=10, when_reached="pause", **GOAL)
    await answered(engine, campaign, 6)
    last = await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "resume", now=NOW)
    last = await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW, last_position=last)
    assert (await status_of(engine, campaign)).status == "running"
    await store_settings(engine, goal_percent=90)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW, last_position=last)
    assert (await status_of(engine, campaign)).status == "paused"
    assert [row.kind for row in await alerts(engine)] == ["goal", "goal"]


async def test_of_many_looks_at_once_one_acts(engine):
    campaign = await create_running_campaign(engine, items=10, when_reached="finish", **GOAL)
    await answered(engine, campaign, 6)
    await asyncio.gather(*(enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW) for _ in range(4)))
    assert [row.kind for row in await alerts(engine)] == ["goal"]
    async with engine.connect() as connection:
        lines = (await connection.execute(text("SELECT who FROM audit_log WHERE action = 'campaign.finish'"))).all()
    assert [line.who for line in lines] == ["Easel"]


async def test_a_goal_is_far_while_nobody_agrees(engine):
    campaign = await create_running_campaign(engine, items=10, when_reached="finish", **(GOAL | {"goal_within": 0}))
    await answered(engine, campaign, 6, scores_of=lambda item: 50.0 + 7 * (item % 2))
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).status == "running"


async def test_answers_that_count_no_more_are_no_reason_to_stop(engine):
    campaign = await create_running_campaign(engine, items=10, when_reached="finish", **GOAL)
    await answered(engine, campaign, 6)
    async with engine.begin() as connection:
        people = (await connection.execute(text("SELECT id FROM annotators ORDER BY id"))).scalars().all()
        for person in people[1:]:
            await decisions.exclude_annotator(connection, campaign, person, reason="test", now=NOW)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).status == "running"


async def test_a_hit_that_is_open_when_the_goal_is_reached_can_still_be_answered(engine):
    campaign = await create_running_campaign(engine, items=10, when_reached="pause", **GOAL)
    late = await create_annotator(engine, campaign, "late")
    hit = await try_to_lease_hit(engine, late)
    await answered(engine, campaign, 6)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await submit_scores(engine, late, hit)).seq
    assert (await find_or_lease_next_hit(engine, late)).hit is None


async def test_where_items_have_left_and_all_others_are_best_ones_the_lowest_is_to_be_settled(engine):
    campaign = await create_running_campaign(engine, items=5, when_reached="finish", **GOAL)
    await execute_sql(engine, "UPDATE campaigns SET best_items = 10")
    people = [await create_annotator(engine, campaign, f"p{k}") for k in range(6)]
    for person in people[:2]:
        hit = await try_to_lease_hit(engine, person)
        await submit_scores(
            engine, person, hit, scores=[{4: 20.0, 3: 22.0}.get(item, 80.0 + item) for item in hit.items]
        )
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).goal_reached is None


async def test_the_page_says_how_near_the_goal_is(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, **GOAL)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert "We know the best 2 items with 95 % probability, up to differences of 10 points. Now it is 0 %." in page
    await answered(engine, campaign, 6)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert "Goal reached: We know the best 2 items" in page


@pytest.mark.parametrize("people", [1, 4])
async def test_the_page_says_when_a_goal_needs_more_people_rather_than_more_answers(engine, researcher, people):
    """A second judgment of an item by the same annotator tells nothing of how others would judge it."""
    campaign = await create_running_campaign(engine, items=5, **GOAL)
    for person in range(people):
        assignment = await create_annotator(engine, campaign, f"p{person}")
        for _ in range(4 // people):
            await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert ("More annotators would help reach the goal" in page) is (people == 1)


async def test_of_systems_the_page_says_that_most_judgments_are_by_the_same_people(engine, researcher):
    asked = {"design": "rating", "items_per_hit": 1, "goal": "intervals", "goal_width": 1}
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=12), **asked)
    await answer_hits_of_systems(engine, campaign, by=1, each=12)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert "Most judgments of a system are by people who judged it on another segment." in page
    assert "are repeats" not in page


async def test_the_page_says_that_a_campaign_ended_before_its_goal(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, **GOAL)
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished'")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert "Goal not reached: We know the best 2 items" in page


@pytest.mark.parametrize(("when_reached", "share"), [("tell", 18), ("release", 0)])
async def test_a_campaign_that_ends_without_its_goal_says_so_once_and_how_near_it_was(engine, when_reached, share):
    few = GOAL | {"goal": "threshold", "judgments_per_item": 2, "goal_within": 0, "when_reached": when_reached}
    campaign = await create_running_campaign(engine, items=10, **few)
    await answered(engine, campaign, 2, scores_of=lambda item: 45.0 + item)
    for last in (None, await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)):
        await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW, last_position=last)
    finished, missed = await alerts(engine)
    assert (finished.kind, missed.kind) == ("finished", "missed")
    assert alert_sentence(*missed).startswith(
        "The goal was not reached: we know which items are above 50 with 95 % probability"
    )
    async with engine.connect() as connection:
        because = await connection.scalar(text("SELECT because FROM alerts WHERE kind = 'missed'"))
    assert because.startswith(f"At the end it was {share} %. To continue, ask for more judgments per item")


async def test_a_campaign_that_ends_as_somebody_asks_for_a_hit_is_looked_at(engine):
    """Two answers that complete it at once do not see each other, so neither ends it."""
    campaign = await create_running_campaign(engine, items=10, **GOAL)
    me = await create_annotator(engine, campaign)
    await execute_sql(engine, "UPDATE posteriors SET judgments = 40")
    work = await find_or_lease_next_hit(engine, me)
    assert (work.reason, work.should_check_goal) == ("all_done", True)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert [row.kind for row in await alerts(engine)] == ["finished", "missed"]


async def test_a_campaign_that_somebody_finishes_before_its_goal_raises_no_alert(engine):
    campaign = await create_running_campaign(engine, items=10, **GOAL)
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert await alerts(engine) == []


async def test_a_campaign_that_ends_as_its_last_items_settle_but_for_one_says_so(engine):
    settles = GOAL | {"goal": "threshold", "goal_within": 0, "when_reached": "release"}
    campaign = await create_running_campaign(engine, items=10, **settles)
    await answered(engine, campaign, 6, scores_of=lambda item: 90.0 if item else 50.0)
    await execute_sql(engine, "UPDATE posteriors SET judgments = 40 WHERE subject = 0")
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert [row.kind for row in await alerts(engine)] == ["finished", "missed"]


async def test_what_is_settled_by_the_last_answers_is_known_after_the_end(engine):
    settles = GOAL | {"goal": "threshold", "goal_within": 0, "when_reached": "release", "judgments_per_item": 6}
    campaign = await create_running_campaign(engine, items=10, **settles)
    await answered(engine, campaign, 6, scores_of=lambda item: 90.0 if item else 50.0)
    assert (await status_of(engine, campaign)).status == "finished"
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    async with engine.connect() as connection:
        settled = (await connection.scalars(text("SELECT settled FROM posteriors ORDER BY subject"))).all()
    assert settled == [False, *[True] * 9]
    assert [row.kind for row in await alerts(engine)] == ["finished", "missed"]


async def test_nobody_can_ask_which_of_all_items_are_the_best(engine):
    with pytest.raises(Conflict, match="the best 5 of 5 items would be all of them") as refused:
        await create_running_campaign(engine, items=5, **(GOAL | {"best_items": 5}))
    assert refused.value.code == "all_are_best"
    campaign = await create_running_campaign(engine, name="Other", items=5, best_items=7, judgments_per_item=4)
    async with engine.begin() as connection:
        with pytest.raises(Conflict, match="the best 7 of 5 items"):
            await settings_edits.store_changed_settings_or_refuse(
                connection, campaign.slug, lambda now: now.model_copy(update={"goal": "best"})
            )


@pytest.mark.parametrize("wish", ["tell", "pause", "finish"])
async def test_a_goal_that_the_last_answer_reaches_is_reached(engine, wish):
    campaign = await create_running_campaign(
        engine, items=10, **(GOAL | {"judgments_per_item": 6, "when_reached": wish})
    )
    await answered(engine, campaign, 6)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).goal_reached == text_that_identifies_goal(campaign)
    assert [row.kind for row in await alerts(engine)] == ["finished", "goal"]


def test_how_near_a_goal_is_is_rounded_down_until_it_is_reached(subtests):
    for now, wanted, told in (
        (0.9499999, 0.95, 0.94),
        (0.996, 0.95, 0.996),
        (0.95, 0.95, 0.95),
        (0.29, 0.95, 0.29),
        (0.5499999999999, 0.55, 0.54),
    ):
        with subtests.test(now=now, wanted=wanted, told=told):
            assert Progress("", now, wanted).value_rounded_down_until_reached == told


async def test_without_a_goal_nothing_is_read(engine):
    campaign = await create_running_campaign(engine, items=10)
    seen = await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert seen is not None
    assert seen.evidence_read is None
    assert goal_progress_or_none(campaign, moderated_means_of_tally(Tally.empty(10)), np.zeros(10)) is None


def test_a_goal_that_answers_cannot_tell_of_is_refused(subtests):
    for chosen in (
        {"goal": "best", "design": "pairwise"},
        {"goal": "best", "design": "categories", "design_settings": {"labels": ["a", "b"]}},
        {"goal": "best", "criteria": [{"name": "a", "question": "A?"}, {"name": "b", "question": "B?"}]},
        {"goal": "fame"},
        {"goal": "best", "goal_percent": 100},
    ):
        with subtests.test(chosen=chosen), pytest.raises(ValidationError):
            CampaignSettings.model_validate({"name": "A", "question": "B?"} | chosen)


def test_what_has_left_the_pool_and_what_every_hit_shows_do_not_count_for_a_goal():
    in_pool = np.array([True, False, True, True])
    assert goal_item_numbers(unsaved(always_shown=[3]), in_pool).tolist() == [0, 2]
    assert in_pool.tolist() == [True, False, True, True]


@pytest.mark.parametrize("goal", ["best", "threshold", "order", "intervals", "halves"])
async def test_every_goal_is_reached_once_annotators_who_nearly_agree_have_answered(engine, goal):
    campaign = await create_running_campaign(engine, items=10, when_reached="tell", **(GOAL | {"goal": goal}))
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).goal_reached is None
    await answered(engine, campaign, 6)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert (await status_of(engine, campaign)).goal_reached == text_that_identifies_goal(campaign)
