"""Courses and intervals of real campaigns: kept up with as responses come in, in steps, and never wrong."""

import itertools
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from app.campaigns import lifecycle
from app.dashboard import follow, live
from app.dashboard.follow import Courses, Precisions
from app.dashboard.live import Live
from app.dashboard.precision import begun, followed
from app.database.session import transaction
from app.designs.answer import Answer
from app.inference.online.law import Hit
from app.inference.online.laws import ONLINE
from app.serving import submission
from app.serving.posterior_cache import PosteriorCache
from tests.campaigns.drafts import import_results
from tests.serving.campaigns import NOW, annotator, hit_of, running, submit, values


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(follow, "AT_ONCE", 3)
    monkeypatch.setattr(follow, "UNSETTLED", 2)


async def answer(engine, campaign, count):
    me = await annotator(engine, campaign)
    for _ in range(count):
        await submit(engine, me, await hit_of(engine, me))


async def course_of(engine, campaign, courses, *, clock=lambda: 0.0):
    """The newest course; by default no time passes meanwhile, however slow the machine is."""
    async with engine.connect() as connection:
        row = await lifecycle.find(connection, campaign.slug)
        total = await connection.scalar(text("SELECT count(*) FROM responses"))
        return await courses.newest(connection, row, total, clock=clock)


@pytest.mark.parametrize("law", ONLINE)
async def test_a_course_leads_to_the_stored_posteriors_whenever_it_is_asked_for(engine, law):
    campaign = await running(engine, update_law=law, judgments_per_item=20)
    courses = Courses()
    course = await course_of(engine, campaign, courses)
    for count in (0, 1, 2, 3, 7):
        await answer(engine, campaign, count)
        course = await course_of(engine, campaign, courses)
        stored = await values(engine, "SELECT state, judgments FROM current_posteriors ORDER BY number")
        assert list(zip(course.state.T.tolist(), course.judgments, strict=True)) == stored
    fresh = await course_of(engine, campaign, Courses())
    assert (course.answers, fresh.answers) == (13, 13)
    assert np.array_equal(course.early, fresh.early, equal_nan=True)


async def test_intervals_follow_from_all_stored_judgments_whenever_they_are_asked_for(engine):
    campaign = await running(engine, judgments_per_item=20)
    people = [await annotator(engine, campaign, name) for name in ("me", "you")]
    precisions = Precisions()
    precision = await course_of(engine, campaign, precisions)
    for count in (0, 1, 2, 3, 7):
        for k in range(count):
            scores = [float(10 * k), 25.0, 50.0, 75.0, 100.0]
            await submit(engine, people[k % 2], await hit_of(engine, people[k % 2]), scores=scores)
        precision = await course_of(engine, campaign, precisions)
        rows = await values(engine, "SELECT annotator_id, items, values FROM responses ORDER BY seq")
        hits = [Hit(who, items, [score / 100 for score in scores]) for who, items, scores in rows]
        whole = followed(begun(12), hits)
        assert precision.answers == len(rows)
        assert precision.points() == whole.points()
        np.testing.assert_array_equal(precision.intervals.interval(), whole.intervals.interval())
    fresh = await course_of(engine, campaign, Precisions())
    assert (fresh.answers, fresh.points()) == (13, precision.points())
    assert np.isfinite(precision.intervals.standard_error).any()


async def test_a_campaign_that_gave_way_starts_again(engine, monkeypatch):
    monkeypatch.setattr(follow, "MOST_BYTES", 1)
    courses, campaigns = Courses(), [await running(engine) for _ in range(2)]
    for campaign in campaigns:
        await answer(engine, campaign, 4)
        await course_of(engine, campaign, courses)
        assert list(courses.settled) == [campaign.id]
    again = await course_of(engine, campaigns[0], courses)
    assert (again.answers, list(courses.settled)) == (4, [campaigns[0].id])


@pytest.mark.parametrize(("kind", "law"), [(Precisions, "easl"), (Courses, "easl"), (Courses, "easl-aware")])
async def test_of_more_campaigns_than_there_is_room_for_the_one_asked_for_longest_ago_gives_way(
    engine, monkeypatch, kind, law
):
    first, second, third = campaigns = [await running(engine, update_law=law) for _ in range(3)]
    for campaign in campaigns:
        await answer(engine, campaign, 4)
    followers = kind()
    await course_of(engine, first, followers)
    monkeypatch.setattr(follow, "MOST_BYTES", 2.5 * followers.settled[first.id].past.nbytes)
    for campaign in (second, first, third):
        await course_of(engine, campaign, followers)
    assert list(followers.settled) == [first.id, third.id]


async def test_items_with_a_prior_of_their_own_start_from_it(engine):
    campaign = await running(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET prior = ARRAY[3, 2] WHERE number = 4"))
    course = await course_of(engine, campaign, Courses())
    assert course.state[:, 4:6].tolist() == [[3, 1], [2, 1]]


@pytest.mark.own_database
async def test_an_answer_that_commits_late_takes_its_place(engine):
    campaign = await running(engine, judgments_per_item=20)
    courses = Courses()
    await answer(engine, campaign, 6)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE late AS SELECT * FROM responses ORDER BY seq OFFSET 4 LIMIT 1"))
        await connection.execute(text("DELETE FROM responses USING late WHERE responses.seq = late.seq"))
    assert (await course_of(engine, campaign, courses)).answers == 5
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO responses OVERRIDING SYSTEM VALUE SELECT * FROM late"))
    course = await course_of(engine, campaign, courses)
    assert course.answers == 6
    stored = await values(engine, "SELECT state FROM current_posteriors ORDER BY number")
    assert [(state,) for state in course.state.T.tolist()] == stored


@pytest.mark.parametrize("kind", [Courses, Precisions])
async def test_an_answer_that_commits_after_a_whole_import_takes_its_place(engine, monkeypatch, kind):
    """It had its number before the rows of the import had theirs."""
    monkeypatch.setattr(follow, "AT_ONCE", 1_000)
    monkeypatch.setattr(follow, "UNSETTLED", 200)
    campaign = await running(engine, judgments_per_item=1_000)
    await answer(engine, campaign, 6)
    followers, me = kind(), await annotator(engine, campaign, "late")
    hit = await hit_of(engine, me)
    free = [f"v{number}" for number in range(12) if number not in hit.items][:2]
    row = f"{free[0]},{free[1]},10,90\n"
    async with transaction(engine) as connection:
        await submission.submit(connection, me, hit.id, Answer(dict.fromkeys(hit.items, 20.0)), now=NOW)
        await import_results(engine, campaign, "Input.id1,Input.id2,Answer.range1,Answer.range2\n" + 400 * row)
        assert (await course_of(engine, campaign, followers)).answers == 406
        assert (await course_of(engine, campaign, followers)).answers == 406
    assert (await course_of(engine, campaign, followers)).answers == 407
    await answer(engine, campaign, 1)
    assert (await course_of(engine, campaign, followers)).answers == 408


async def test_a_long_past_is_caught_up_with_in_steps(engine):
    campaign = await running(engine, judgments_per_item=20)
    await answer(engine, campaign, 20)
    courses, clock = Courses(), itertools.count(0, 10).__next__  # ten seconds pass between two looks at it
    answers = [(await course_of(engine, campaign, courses, clock=clock)).answers for _ in range(8)]
    assert answers == [3, 6, 9, 12, 15, 18, 20, 20]


async def test_of_two_that_follow_at_once_the_further_one_counts(engine):
    campaign = await running(engine, judgments_per_item=20)
    courses = Courses()
    await answer(engine, campaign, 4)
    await course_of(engine, campaign, courses)
    slower = courses.settled[campaign.id]
    await answer(engine, campaign, 4)
    await course_of(engine, campaign, courses)
    courses.keep(campaign, slower)
    assert courses.settled[campaign.id].past.answers == 6


async def test_viewers_see_the_past_come_in_and_its_end(engine, monkeypatch):
    monkeypatch.setattr(follow, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(live, "PERIOD_SECONDS", 0.05)
    campaign = await running(engine, judgments_per_item=20)
    await answer(engine, campaign, 9)

    async def clock():
        return NOW

    hub = Live(engine, PosteriorCache(), clock)
    seen: list[dict[str, Any]] = []
    async with aclosing(hub.states(campaign.slug)) as states:
        while not seen or seen[-1]["behind"]:
            state = await anext(states)
            assert state
            seen.append(state.figures["uncertainty"])
    await hub.stop()
    assert [figures["behind"] for figures in seen] == [6, 3, 0]
    assert seen[0]["note"] == "Reading the answers; 6 HITs to go."
    assert "Reading" not in seen[-1]["note"]
    assert seen[-1]["points"][-1][0] == 9
