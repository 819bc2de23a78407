"""HITs per hour from the times of stored answers."""

from datetime import timedelta

import pytest

from app.record.answer_rates import load_hit_count_by_minute, load_recent_hits_per_hour_or_none
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    submit_scores,
    try_to_lease_hit,
)

LATER = NOW + timedelta(hours=30, seconds=30)


async def answer_at(engine, campaign, *minutes_before_later: float) -> None:
    me = await create_annotator(engine, campaign)
    for minutes in minutes_before_later:
        await submit_scores(engine, me, await try_to_lease_hit(engine, me), now=LATER - timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("minutes", "rate"),
    [
        ((), None),
        ((200, 30, 20), None),
        ((200, 30, 20, 10), 3 * 60 / 59.5),
        ((200, 100, 90, 80), None),
        ((30, 20), None),
        ((30, 20, 10), 2 * 60 / 30),
    ],
)
async def test_a_rate_needs_three_answers_in_the_last_hour(engine, minutes, rate):
    campaign = await create_running_campaign(engine, judgments_per_item=90)
    await answer_at(engine, campaign, *minutes)
    async with engine.connect() as connection:
        found = await load_recent_hits_per_hour_or_none(connection, campaign.id, now=LATER)
    assert found == (None if rate is None else pytest.approx(rate))


async def test_answers_are_counted_by_minute_for_a_day_without_imported_ones(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=90)
    await answer_at(engine, campaign, 24 * 60 + 1, 24 * 60 - 1, 5, 5.2, 3)
    await execute_sql(engine, "UPDATE responses SET source = 'import' WHERE seq = (SELECT max(seq) FROM responses)")
    async with engine.connect() as connection:
        found = await load_hit_count_by_minute(connection, campaign.id, LATER)
    minute = int(LATER.timestamp()) // 60
    assert found == {minute - 24 * 60 + 1: 1, minute - 5: 2}
