"""Changes in a campaign's record since a poll: all of them, once, whatever transactions do meanwhile."""

import itertools
from datetime import timedelta

from sqlalchemy import text

from app.annotation.hits import submission
from app.annotation.hits.next_hit import HitOnPage
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import borrow_driver_in_transaction
from app.designs.answer import Answer
from app.record import responses, revisions
from app.record.changes import Watermark, poll_changes
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)


async def poll(engine, campaign, since=None):
    async with engine.connect() as connection:
        return await poll_changes(connection, campaign.id, since)


async def news(engine, campaign, since):
    """Return the current watermark and the numbers of the new responses."""
    async with engine.connect() as connection:
        now, answers = await responses.load_watermark_and_new_responses(connection, campaign.id, since, last_decision=0)
        return now, [answer.seq for answer in answers]


async def answered(engine, campaign, name):
    someone = await create_annotator(engine, campaign, name)
    return (await submit_scores(engine, someone, await try_to_lease_hit(engine, someone))).seq


async def test_at_the_first_look_all_is_new_and_at_the_next_nothing(engine):
    campaign = await create_running_campaign(engine)
    await answered(engine, campaign, "me")
    now, first, since = await poll(engine, campaign)
    assert (first, since) == (1, None)
    _, first, since = await poll(engine, campaign, now)
    assert (first, since) == (None, now)


async def test_answers_of_other_campaigns_are_no_news(engine):
    campaign, other = [await create_running_campaign(engine) for _ in range(2)]
    now, *_ = await poll(engine, campaign)
    await answered(engine, other, "me")
    assert (await poll(engine, campaign, now)).first_new_seq is None


async def lease_disjoint_hits(engine, campaign, number):
    """Create assignments and HITs without a common item, so that no annotator waits."""
    hits: dict[AssignmentId, HitOnPage] = {}
    names = map(str, itertools.count())
    while len(hits) < number:
        hit = await try_to_lease_hit(engine, someone := await create_annotator(engine, campaign, next(names)))
        if not set(hit.items) & {item for other in hits.values() for item in other.items}:
            hits[someone] = hit
    return [*hits.items()]


async def stored(connection, someone, hit):
    sent = Answer(dict.fromkeys(hit.items, 50.0))
    return (await submission.store_answer_of_hit_and_return_receipt(connection, someone, hit.id, sent, now=NOW)).seq


async def test_each_answer_is_found_once_in_whatever_order_transactions_end(engine):
    campaign = await create_running_campaign(engine, items=60, judgments_per_item=50)
    one, two, three = await lease_disjoint_hits(engine, campaign, 3)
    now, *_ = await poll(engine, campaign)
    async with borrow_driver_in_transaction(engine) as outer:
        first = await stored(outer, *one)
        async with borrow_driver_in_transaction(engine) as inner:
            second = await stored(inner, *two)
            third = (await submit_scores(engine, *three)).seq
            now, found = await news(engine, campaign, now)
            assert found == [third]
        now, found = await news(engine, campaign, now)
        assert found == [second]
    now, found = await news(engine, campaign, now)
    assert found == [first]
    assert first < second < third
    assert (await news(engine, campaign, now))[1] == []


async def test_answers_between_two_looks_can_be_read_at_any_time_later(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    before, *_ = await poll(engine, campaign)
    between = [await answered(engine, campaign, name) for name in ("me", "you")]
    after, first, _ = await poll(engine, campaign, before)
    await answered(engine, campaign, "they")
    async with engine.connect() as connection:
        found = await responses.load_counted_responses(connection, campaign.id, since=before, until=after)
        assert (
            await responses.count_responses_that_count(connection, campaign.id, after_seq=0, since=before, until=after)
            == 2
        )
    assert [answer.seq for answer in found] == between
    assert first == between[0]


async def test_an_id_that_a_crashed_server_gives_out_again_is_not_missed(engine):
    """Of a transaction that left no trace, beside one that goes on; a server forgets both when it crashes."""
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    await answered(engine, campaign, "me")
    async with engine.connect() as goes_on, engine.connect() as lost:
        await goes_on.execute(text("SELECT pg_current_xact_id()"))
        gone = await lost.scalar(text("SELECT pg_current_xact_id()::text"))
        await lost.rollback()
        now, *_ = await poll(engine, campaign)
    again = await answered(engine, campaign, "you")
    await execute_sql(
        engine,
        "UPDATE responses SET transaction_id = CAST(CAST(:gone AS text) AS xid8) WHERE seq = :again",
        gone=gone,
        again=again,
    )
    assert (await news(engine, campaign, now))[1] == [again]


async def test_what_another_run_of_the_server_has_told_is_worth_nothing(engine):
    campaign = await create_running_campaign(engine)
    now, *_ = await poll(engine, campaign)
    earlier = Watermark(now.snapshot, now.revision, now.server_started - timedelta(seconds=1))
    assert (await poll(engine, campaign, earlier))[1:] == (1, None)


async def test_of_another_revision_all_is_new(engine):
    campaign = await create_running_campaign(engine)
    await answered(engine, campaign, "me")
    before, *_ = await poll(engine, campaign)
    someone = await fetch_value(engine, "SELECT id FROM annotators")
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", someone, reason="", actor="ada", now=NOW
        )
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert (await poll(engine, campaign, before)).previous is None
