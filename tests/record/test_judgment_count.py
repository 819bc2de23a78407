"""The number of judgments in lists of campaigns is counted from the answers since the last time."""

import pytest
from sqlalchemy import text

from app.database.bulk import open_snapshot
from app.record import judgment_count
from app.record.judgment_count import count_judgments_by_campaign
from app.record.revisions import store_decision_and_return_number, switch_revision_if_it_misses_decisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)

OF_POSTERIORS = "SELECT sum(judgments) FROM current_posteriors WHERE criterion = 0 AND campaign_id = :campaign"


@pytest.fixture(autouse=True)
def stores_every_count(monkeypatch):
    monkeypatch.setattr(judgment_count, "MAX_ANSWERS_COUNTED_AGAIN", 0)


async def judgments_in_list(engine, campaign):
    async with engine.begin() as connection:
        return (await count_judgments_by_campaign(connection, [campaign.id]))[campaign.id]


async def answer(engine, campaign, assignment, hits=1):
    for _ in range(hits):
        hit = await try_to_lease_hit(engine, assignment)
        await submit_scores(engine, assignment, hit, scores=[30.0] * len(hit.items))


async def test_every_answer_counts_once_however_often_it_is_counted(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    other = await create_running_campaign(engine, judgments_per_item=50)
    ann = await create_annotator(engine, campaign)
    for hits in (0, 2, 0, 1, 3):
        await answer(engine, campaign, ann, hits)
        for _ in range(2):
            assert await judgments_in_list(engine, campaign) == (
                await fetch_value(engine, OF_POSTERIORS, campaign=campaign.id)
            )
    await answer(engine, other, await create_annotator(engine, other))
    assert (await judgments_in_list(engine, campaign), await judgments_in_list(engine, other)) == (30, 5)


async def test_an_answer_whose_transaction_ends_late_is_counted(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    ann = await create_annotator(engine, campaign)
    await answer(engine, campaign, ann)
    assert await judgments_in_list(engine, campaign) == 5
    async with engine.begin() as connection:  # it has an id before the next answer, and ends after the count
        await connection.execute(text("SELECT pg_current_xact_id()"))
        await answer(engine, campaign, ann)
        assert await judgments_in_list(engine, campaign) == 10
        copy = "INSERT INTO hits (campaign_id, annotator_id, assignment_id, items, issued_at, expires_at, closed_at) "
        copy += "SELECT campaign_id, annotator_id, assignment_id, items, issued_at, expires_at, closed_at FROM hits "
        copy += "ORDER BY id LIMIT 1 RETURNING id"
        hit = await connection.scalar(text(copy))
        await connection.execute(
            text(
                "INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at) "
                "SELECT campaign_id, :hit, annotator_id, source, items, values, received_at FROM responses LIMIT 1"
            ),
            {"hit": hit},
        )
    assert await judgments_in_list(engine, campaign) == 15


async def test_answers_that_do_not_count_are_not_counted(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    ann, bob = [await create_annotator(engine, campaign, name) for name in ("ann", "bob")]
    await answer(engine, campaign, ann, 2)
    await answer(engine, campaign, bob, 1)
    assert await judgments_in_list(engine, campaign) == 15
    row = await fetch_value(engine, "SELECT annotator_id FROM assignments WHERE id = :assignment", **ann.parameters)
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", row, reason="", actor="ada", now=NOW
        )
    assert await judgments_in_list(engine, campaign) == 15  # as in the posteriors
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await judgments_in_list(engine, campaign) == 5
    await answer(engine, campaign, ann, 1)
    await answer(engine, campaign, bob, 1)
    assert (
        await judgments_in_list(engine, campaign)
        == 10
        == await fetch_value(engine, OF_POSTERIORS, campaign=campaign.id)
    )


async def test_only_later_answers_are_read(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    ann = await create_annotator(engine, campaign)
    await answer(engine, campaign, ann, 2)
    assert await judgments_in_list(engine, campaign) == 10
    await execute_sql(engine, "UPDATE posteriors SET judgments = 1000")
    assert await judgments_in_list(engine, campaign) == 10
    await execute_sql(engine, "UPDATE counted_judgments SET server_started = server_started - interval '1 s'")
    assert await judgments_in_list(engine, campaign) == 12_000


async def test_a_transaction_that_reads_a_snapshot_counts_and_stores_nothing(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    await answer(engine, campaign, await create_annotator(engine, campaign), 2)
    async with open_snapshot(engine) as connection:
        assert await count_judgments_by_campaign(connection, [campaign.id]) == {campaign.id: 10}
    assert await fetch_value(engine, "SELECT count(*) FROM counted_judgments") == 0
