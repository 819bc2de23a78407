"""Answers per day in the list of campaigns: counted once, and shown beside campaigns that are running."""

import re
from datetime import timedelta
from itertools import count

import pytest

from app.campaigns import lifecycle
from app.dashboard.daily_answers import DAYS_SHOWN, DailyAnswerCounts
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)

people = count()


async def answer(engine, campaign, times, *, days_ago=0.0):
    moment = NOW - timedelta(days=days_ago)
    for _ in range(times):
        me = await create_annotator(engine, campaign, f"person {next(people)}")
        await submit_scores(engine, me, await try_to_lease_hit(engine, me, now=moment), now=moment)


async def daily_counts(engine, counts, *campaigns, now=NOW):
    async with engine.connect() as connection:
        loaded = await counts.load_daily_answers_by_campaign(connection, [one.id for one in campaigns], now=now)
    return {number: list(answers.counts) for number, answers in loaded.items()}


def last_days(*numbers):
    return [0] * (DAYS_SHOWN - len(numbers)) + list(numbers)


async def test_answers_are_counted_by_day_and_those_of_earlier_days_are_left_out(engine):
    busy, quiet, old = [await create_running_campaign(engine, judgments_per_item=20) for _ in range(3)]
    for times, days_ago in ((3, 2), (1, 1), (2, 0)):
        await answer(engine, busy, times, days_ago=days_ago)
    await answer(engine, old, 1, days_ago=DAYS_SHOWN)
    assert await daily_counts(engine, DailyAnswerCounts(), busy, quiet, old) == {busy.id: last_days(3, 1, 2)}
    assert await daily_counts(engine, DailyAnswerCounts()) == {}


async def test_a_process_counts_new_answers_on_top_of_those_that_it_counted_before(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=20)
    counts = DailyAnswerCounts()
    await answer(engine, campaign, 2, days_ago=1)
    await answer(engine, campaign, 1, days_ago=2 / 24 / 60)
    for _ in range(2):
        assert await daily_counts(engine, counts, campaign) == {campaign.id: last_days(2, 1)}
    await answer(engine, campaign, 1)
    assert await daily_counts(engine, counts, campaign) == {campaign.id: last_days(2, 2)}
    later = NOW + timedelta(days=1)
    for counted in (counts, DailyAnswerCounts(), counts):
        assert await daily_counts(engine, counted, campaign, now=later) == {campaign.id: last_days(2, 2, 0)}
    much_later = NOW + timedelta(days=DAYS_SHOWN + 1)
    assert await daily_counts(engine, counts, campaign, now=much_later) == {}


async def test_imported_answers_are_left_out(engine):
    campaign = await create_running_campaign(engine)
    await answer(engine, campaign, 2)
    async with engine.begin() as connection:
        for statement in ("SET LOCAL session_replication_role = replica", "UPDATE responses SET source = 'import'"):
            await connection.exec_driver_sql(statement)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2
    assert await daily_counts(engine, DailyAnswerCounts(), campaign) == {}


@pytest.mark.usefixtures("app")
async def test_the_list_shows_them_beside_running_campaigns_and_tells_screen_readers(engine, researcher):
    running = await create_running_campaign(engine, name="Verbs", judgments_per_item=20)
    paused = await create_running_campaign(engine, name="Nouns", judgments_per_item=20)
    now = await fetch_value(engine, "SELECT now()")
    await answer(engine, running, 3, days_ago=(NOW - now) / timedelta(days=1))
    await answer(engine, paused, 1, days_ago=(NOW - now) / timedelta(days=1))
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, paused.slug, "pause", now=now)
    page = (await researcher.get("/admin")).text
    (description,) = re.findall(r'class="spark daily"[^>]* role="img" aria-label="([^"]*)"', page)
    assert description == (f"Answered tasks in the last 14 days: 3, 3 of them today. Most on {now:%B} {now.day}: 3.")
    assert page.count('<rect x="') == DAYS_SHOWN
