"""Revisions that their server did not come to are made by the loop of any server, also those that fail at first."""

import asyncio
from datetime import timedelta

import pytest
import pytest_asyncio

from app.errors import Conflict
from app.record import due_revisions, revisions
from app.record.due_revisions import MIN_DECISION_AGE, DueRevisions
from tests.annotation.hits.campaigns import NOW
from tests.record.test_revisions import answered, decided


async def left_out(engine, campaign, who):
    async with engine.begin() as connection:
        await decided(connection, campaign, annotator=who)


@pytest_asyncio.fixture
async def due(engine):
    """Create two campaigns with a decision each."""
    both = [await answered(engine) for _ in range(2)]
    for campaign, (first, *_) in both:
        await left_out(engine, campaign, first)
    return [campaign.id for campaign, _ in both]


def loop_of(engine, now=NOW):
    async def clock():
        return now

    return DueRevisions(engine, clock)


async def test_after_a_start_all_decisions_are_acted_on(engine, due):
    await loop_of(engine).revise_due_campaigns()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == []


async def test_one_that_fails_stops_no_other_and_is_tried_in_the_next_round(engine, due, monkeypatch):
    real, problems = revisions.switch_revision_if_it_misses_decisions, [KeyError("broken")]

    async def breaks(engine, campaign_id, *, now):
        if campaign_id == due[0] and problems:
            raise problems.pop()
        await real(engine, campaign_id, now=now)

    monkeypatch.setattr(due_revisions, "switch_revision_if_it_misses_decisions", breaks)
    loop = loop_of(engine)
    with pytest.raises(KeyError):
        await loop.revise_due_campaigns()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == due[:1]
    await loop.revise_due_campaigns()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == []


async def test_what_a_request_is_acting_on_is_left_to_it_for_a_while(engine):
    campaign, (first, *_) = await answered(engine)
    loop = loop_of(engine)
    await loop.revise_due_campaigns()
    await left_out(engine, campaign, first)
    await loop.revise_due_campaigns()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == [campaign.id]
    loop.clock = loop_of(engine, NOW + MIN_DECISION_AGE + timedelta(seconds=1)).clock
    await loop.revise_due_campaigns()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == []


async def test_a_revision_that_was_asked_for_can_be_waited_for(engine, due):
    await loop_of(engine).start_revision_and_wait(due[0], now=NOW)
    assert await revisions.load_campaign_ids_due_for_revision(engine) == due[1:]


async def test_a_revision_goes_on_after_its_request_has_waited_long_enough(engine, due, monkeypatch):
    real, may_go_on, done = revisions.switch_revision_if_it_misses_decisions, asyncio.Event(), asyncio.Event()

    async def slow(engine, campaign_id, *, now):
        await may_go_on.wait()
        await real(engine, campaign_id, now=now)
        done.set()

    monkeypatch.setattr(due_revisions, "switch_revision_if_it_misses_decisions", slow)
    await loop_of(engine).start_revision_and_wait(due[0], now=NOW, wait_seconds=0.01)
    assert await revisions.load_campaign_ids_due_for_revision(engine) == due
    may_go_on.set()
    await done.wait()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == due[1:]


async def test_a_revision_that_a_stop_interrupts_stays_due(engine, due, monkeypatch):
    async def endless(*_, **__):
        await asyncio.Event().wait()

    monkeypatch.setattr(due_revisions, "switch_revision_if_it_misses_decisions", endless)
    loop = loop_of(engine)
    await loop.start_revision_and_wait(due[0], now=NOW, wait_seconds=0.01)
    await loop.stop()
    assert await revisions.load_campaign_ids_due_for_revision(engine) == due


async def test_who_waits_for_a_revision_is_told_that_it_was_refused(engine, due, monkeypatch):
    async def refuses(*_, **__):
        raise Conflict("A response names an item that is not there.")

    monkeypatch.setattr(due_revisions, "switch_revision_if_it_misses_decisions", refuses)
    with pytest.raises(Conflict):
        await loop_of(engine).start_revision_and_wait(due[0], now=NOW)


async def test_a_record_that_cannot_be_replayed_is_said_once(engine, due, monkeypatch, caplog):
    async def refuses(*_, **__):
        raise Conflict("A response names an item that is not there.")

    monkeypatch.setattr(due_revisions, "switch_revision_if_it_misses_decisions", refuses)
    loop = loop_of(engine)
    await loop.revise_due_campaigns()
    await loop.revise_due_campaigns()
    assert caplog.text.count("do not follow all decisions") == 2  # one for each campaign
