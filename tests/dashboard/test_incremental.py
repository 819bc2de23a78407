"""Courses and intervals of real campaigns: kept up with as responses come in, in steps, and never wrong."""

import asyncio
import itertools
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from app.annotation.hits import submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard import incremental, live
from app.dashboard.incremental import HistoryReplay, PrecisionReplay
from app.dashboard.live import LiveDashboards
from app.dashboard.precision import initial_precision, precision_after_hits
from app.database.session import borrow_driver_in_transaction
from app.designs.answer import Answer
from app.designs.campaign import campaign_id_and_criterion_number
from app.inference.online.easl import LAW as EASL
from app.inference.online.law import AnsweredHit
from app.record import revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import import_results
from tests.laws import SCORE_LAWS


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(incremental, "RESPONSES_PER_REPLAY_BATCH", 3)


async def answer(engine, campaign, count):
    me = await create_annotator(engine, campaign)
    for _ in range(count):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))


async def newest_state(engine, campaign, courses, *, clock=lambda: 0.0):
    """Return the newest state; by default no time passes meanwhile, however slow the machine is."""
    async with engine.connect() as connection:
        row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return (await courses.replay_new_answers_and_return_position(connection, row.criteria[0], clock=clock)).state


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_a_course_leads_to_the_stored_posteriors_whenever_it_is_asked_for(engine, law):
    campaign = await create_running_campaign(engine, update_law=law, judgments_per_item=20)
    courses = HistoryReplay()
    course = await newest_state(engine, campaign, courses)
    for count in (0, 1, 2, 3, 7):
        await answer(engine, campaign, count)
        course = await newest_state(engine, campaign, courses)
        stored = await fetch_rows(engine, "SELECT state, judgments FROM current_posteriors ORDER BY number")
        assert list(zip(course.state.T.tolist(), course.judgments, strict=True)) == stored
    fresh = await newest_state(engine, campaign, HistoryReplay())
    assert (course.answers, fresh.answers) == (13, 13)
    assert np.array_equal(course.early_states, fresh.early_states, equal_nan=True)


async def test_intervals_follow_from_all_stored_judgments_whenever_they_are_asked_for(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=20)
    people = [await create_annotator(engine, campaign, name) for name in ("me", "you")]
    precisions = PrecisionReplay()
    precision = await newest_state(engine, campaign, precisions)
    for count in (0, 1, 2, 3, 7):
        for k in range(count):
            scores = [float(10 * k), 25.0, 50.0, 75.0, 100.0]
            await submit_scores(engine, people[k % 2], await try_to_lease_hit(engine, people[k % 2]), scores=scores)
        precision = await newest_state(engine, campaign, precisions)
        rows = await fetch_rows(engine, "SELECT annotator_id, items, values FROM responses ORDER BY seq")
        hits = [AnsweredHit(who, items, [score / 100 for score in scores]) for who, items, scores in rows]
        whole = precision_after_hits(initial_precision(EASL, 12), hits)
        assert precision.answers == len(rows)
        assert precision.response_counts_and_median_half_widths() == whole.response_counts_and_median_half_widths()
        np.testing.assert_array_equal(precision.intervals.interval(), whole.intervals.interval())
    fresh = await newest_state(engine, campaign, PrecisionReplay())
    assert (fresh.answers, fresh.response_counts_and_median_half_widths()) == (
        13,
        precision.response_counts_and_median_half_widths(),
    )
    assert np.isfinite(precision.intervals.standard_error).any()


async def test_a_campaign_that_gave_way_starts_again(engine, monkeypatch):
    monkeypatch.setattr(incremental, "MAX_REPLAY_BYTES", 1)
    courses, campaigns = HistoryReplay(), [await create_running_campaign(engine) for _ in range(2)]
    for campaign in campaigns:
        await answer(engine, campaign, 4)
        await newest_state(engine, campaign, courses)
        assert list(courses.positions) == [campaign_id_and_criterion_number(campaign.criteria[0])]
    again = await newest_state(engine, campaigns[0], courses)
    assert (again.answers, list(courses.positions)) == (4, [campaign_id_and_criterion_number(campaigns[0].criteria[0])])


@pytest.mark.parametrize(
    ("kind", "law"), [(PrecisionReplay, "easl"), (HistoryReplay, "easl"), (HistoryReplay, "easl-aware")]
)
async def test_of_more_campaigns_than_there_is_room_for_the_one_asked_for_longest_ago_gives_way(
    engine, monkeypatch, kind, law
):
    first, second, third = campaigns = [await create_running_campaign(engine, update_law=law) for _ in range(3)]
    for campaign in campaigns:
        await answer(engine, campaign, 4)
    alone = kind()
    await newest_state(engine, first, alone)
    monkeypatch.setattr(
        incremental,
        "MAX_REPLAY_BYTES",
        2.5 * alone.positions[campaign_id_and_criterion_number(first.criteria[0])].state.nbytes,
    )
    followers = kind()
    for campaign in (first, second, first, third):
        await newest_state(engine, campaign, followers)
    assert list(followers.positions) == [
        campaign_id_and_criterion_number(first.criteria[0]),
        campaign_id_and_criterion_number(third.criteria[0]),
    ]


async def test_items_with_a_prior_of_their_own_start_from_it(engine):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET prior = ARRAY[3, 2] WHERE number = 4"))
    course = await newest_state(engine, campaign, HistoryReplay())
    assert course.state[:, 4:6].tolist() == [[3, 1], [2, 1]]


async def stored_states(engine):
    return [state for (state,) in await fetch_rows(engine, "SELECT state FROM current_posteriors ORDER BY number")]


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_a_course_followed_while_many_answer_at_once_is_that_of_the_record(engine, law):
    campaign = await create_running_campaign(engine, update_law=law, judgments_per_item=1_000)
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(5)]
    courses, precisions = HistoryReplay(), PrecisionReplay()

    async def at_work(me):
        for k in range(6):
            await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[10.0 * k, 25, 50, 75, 100])

    work = asyncio.gather(*map(at_work, people))
    while not work.done():
        await newest_state(engine, campaign, courses)
        await newest_state(engine, campaign, precisions)
    await work
    course, precision = [await newest_state(engine, campaign, followers) for followers in (courses, precisions)]
    assert (course.answers, precision.answers) == (30, 30)
    assert course.state.T.tolist() == await stored_states(engine)
    fresh, again = [
        await newest_state(engine, campaign, followers) for followers in (HistoryReplay(), PrecisionReplay())
    ]
    assert np.array_equal(course.early_states, fresh.early_states, equal_nan=True)
    np.testing.assert_array_equal(precision.intervals.interval(), again.intervals.interval())


@pytest.mark.parametrize("kind", [HistoryReplay, PrecisionReplay])
async def test_an_answer_that_commits_after_a_whole_import_follows_and_nothing_is_read_again(engine, kind):
    """It had its number before the rows of the import had theirs."""
    campaign = await create_running_campaign(engine, judgments_per_item=1_000)
    await answer(engine, campaign, 6)
    followers, me = kind(), await create_annotator(engine, campaign, "late")
    hit = await try_to_lease_hit(engine, me)
    free = [f"v{number}" for number in range(12) if number not in hit.items][:2]
    row = f"{free[0]},{free[1]},10,90\n"
    async with borrow_driver_in_transaction(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(
            connection, me, hit.id, Answer(dict.fromkeys(hit.items, 20.0)), now=NOW
        )
        await import_results(engine, campaign, "Input.id1,Input.id2,Answer.range1,Answer.range2\n" + 400 * row)
        assert (await newest_state(engine, campaign, followers)).answers == 406
        assert (await newest_state(engine, campaign, followers)).answers == 406
    impatient = itertools.count(0, 10).__next__
    past = await newest_state(engine, campaign, followers, clock=impatient)
    assert past.answers == 407
    if kind is HistoryReplay:
        assert past.state.T.tolist() == await stored_states(engine)
    await answer(engine, campaign, 1)
    assert (await newest_state(engine, campaign, followers)).answers == 408


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_of_another_revision_a_course_begins_anew(engine, law):
    campaign = await create_running_campaign(engine, update_law=law, judgments_per_item=20)
    courses, me = HistoryReplay(), await create_annotator(engine, campaign, "hasty")
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await answer(engine, campaign, 5)
    assert (await newest_state(engine, campaign, courses)).answers == 6
    (hasty,) = await fetch_rows(engine, "SELECT id FROM annotators WHERE worker_id = 'hasty'")
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", *hasty, reason="", actor="ada", now=NOW
        )
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await answer(engine, campaign, 1)
    course = await newest_state(engine, campaign, courses)
    assert course.answers == 6
    assert course.state.T.tolist() == await stored_states(engine)


async def test_a_long_past_is_caught_up_with_in_steps(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=20)
    await answer(engine, campaign, 20)
    courses, clock = HistoryReplay(), itertools.count(0, 10).__next__  # ten seconds pass between two looks at it
    answers = [(await newest_state(engine, campaign, courses, clock=clock)).answers for _ in range(8)]
    assert answers == [3, 6, 9, 12, 15, 18, 20, 20]


async def test_nothing_is_said_to_be_left_only_when_what_came_meanwhile_is_followed_too(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=20)
    await answer(engine, campaign, 6)
    courses, clock, seen = HistoryReplay(), itertools.count(0, 10).__next__, []
    for more in (1, 1, 0, 0):
        async with engine.connect() as connection:
            row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
            known = await courses.replay_new_answers_and_return_position(connection, row.criteria[0], clock=clock)
        seen.append((known.state.answers, known.remaining_response_count))
        await answer(engine, campaign, more)
    assert seen == [(3, 3), (7, 0), (8, 0), (8, 0)]


async def test_of_two_that_follow_at_once_the_further_one_counts(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=20)
    courses = HistoryReplay()
    await answer(engine, campaign, 4)
    await newest_state(engine, campaign, courses)
    slower = courses.positions[campaign_id_and_criterion_number(campaign.criteria[0])]
    await answer(engine, campaign, 4)
    await newest_state(engine, campaign, courses)
    courses.cache_position_unless_behind(campaign.criteria[0], slower)
    assert courses.positions[campaign_id_and_criterion_number(campaign.criteria[0])].state.answers == 8


async def test_viewers_see_the_past_come_in_and_its_end(engine, monkeypatch):
    monkeypatch.setattr(incremental, "REPLAY_BUDGET_SECONDS", 0)
    monkeypatch.setattr(live, "MIN_COMPUTE_SECONDS", 0.05)
    campaign = await create_running_campaign(engine, judgments_per_item=20)
    await answer(engine, campaign, 9)

    async def clock():
        return NOW

    hub = LiveDashboards(engine, PosteriorCache(), clock)
    seen: list[dict[str, Any]] = []
    async with aclosing(hub.stream_states(campaign.slug)) as states:
        while not seen or seen[-1]["behind"]:
            state = await anext(states)
            assert state
            seen.append(state.figures["uncertainty"])
    await hub.stop()
    assert [figures["behind"] for figures in seen] == [6, 3, 0]
    assert seen[0]["note"] == "Loading answers: 6 tasks left."
    assert "Reading" not in seen[-1]["note"]
    assert seen[-1]["points"][-1][0] == 9
