"""One person who comes more than once: from another Prolific session, in a second tab, after they stopped."""

import asyncio

import pytest

from app.annotation.hits import completion, drafts
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import borrow_autocommit_driver
from app.errors import Gone, NotFound
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)


async def visits(engine, campaign, *sessions, person="W1"):
    """The assignments of one person from Prolific, by session."""
    return [await create_annotator(engine, campaign, person, "prolific", assignment=session) for session in sessions]


async def stop(engine, assignment):
    async with borrow_autocommit_driver(engine) as connection:
        return await completion.end_visit_or_find_next_hit(
            connection, PosteriorCache(), AssignmentQuery(assignment), now=NOW
        )


@pytest.mark.parametrize("limit", [None, 1, 2])
async def test_a_second_session_goes_on_with_the_open_hit_and_its_draft(engine, limit):
    campaign = await create_running_campaign(engine, hits_per_annotator=limit)
    first, second = await visits(engine, campaign, "s1", "s2")
    begun = await try_to_lease_hit(engine, first)
    async with borrow_autocommit_driver(engine) as connection:
        await drafts.try_to_save_draft_of_open_hit(connection, first, begun.id, {"1": {"score": 7}})
    taken = await try_to_lease_hit(engine, second)
    assert (taken.id, taken.items, taken.draft) == (begun.id, begun.items, {"1": {"score": 7}})


async def test_a_hit_whose_time_ran_out_in_the_first_session_is_taken_up_in_the_second(engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, lease_minutes=10)
    first, second = await visits(engine, campaign, "s1", "s2")
    begun = await try_to_lease_hit(engine, first)
    await expire_leases(engine)
    assert (await try_to_lease_hit(engine, second)).id == begun.id


@pytest.mark.parametrize("who_is_first", [0, 1])
async def test_a_hit_that_two_visits_answer_counts_once_for_the_visit_that_was_first(engine, who_is_first):
    campaign = await create_running_campaign(engine, hits_per_annotator=1)
    both = await visits(engine, campaign, "s1", "s2")
    hits = [await try_to_lease_hit(engine, assignment) for assignment in both]
    quick, late = both[who_is_first], both[1 - who_is_first]
    assert not (await submit_scores(engine, quick, hits[0])).repeated
    assert (await submit_scores(engine, late, hits[0])).repeated
    assert [(await find_or_lease_next_hit(engine, it)).reason for it in both] == ["limit", "limit"]
    assert await fetch_rows(engine, "SELECT assignment_id FROM hits") == [(quick.assignment_id,)]
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_an_answer_and_a_visit_that_takes_the_hit_over_at_the_same_time_lose_nothing(engine):
    campaign = await create_running_campaign(engine, items=30, hits_per_annotator=1)
    for person in range(6):
        first, second = [
            await create_annotator(engine, campaign, f"W{person}", "prolific", assignment=s) for s in ("s1", "s2")
        ]
        hit = await try_to_lease_hit(engine, first)
        receipt, work = await asyncio.gather(submit_scores(engine, first, hit), find_or_lease_next_hit(engine, second))
        assert not receipt.repeated
        assert work.reason == "limit" or (work.hit and work.hit.id == hit.id)
        assert (await find_or_lease_next_hit(engine, second)).reason == "limit"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 6


async def test_two_new_visits_that_ask_at_once_for_a_hit_left_open_get_that_one(engine):
    campaign = await create_running_campaign(engine)
    first, *others = await visits(engine, campaign, "s1", "s2", "s3")
    hit = await try_to_lease_hit(engine, first)
    given = {
        it.id for it in await asyncio.gather(*(try_to_lease_hit(engine, other) for other in others for _ in range(2)))
    }
    assert hit.id in given
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == len(given)


async def test_two_mturk_assignments_of_one_worker_are_two_hits(engine):
    campaign = await create_running_campaign(engine)
    hits = [
        await try_to_lease_hit(engine, await create_annotator(engine, campaign, "W1", "mturk", assignment=a))
        for a in ("A1", "A2")
    ]
    assert hits[0].id != hits[1].id


async def test_an_mturk_assignment_cannot_answer_the_hit_of_another_one(engine):
    campaign = await create_running_campaign(engine, items=30)
    first, second = [await create_annotator(engine, campaign, "W1", "mturk", assignment=it) for it in ("asg1", "asg2")]
    hit = await try_to_lease_hit(engine, first)
    with pytest.raises(NotFound):
        await submit_scores(engine, second, hit)
    async with borrow_autocommit_driver(engine) as connection:
        assert not await drafts.try_to_save_draft_of_open_hit(connection, second, hit.id, {"1": {"score": 7}})
    assert (await try_to_lease_hit(engine, first)).draft == {}
    assert not (await submit_scores(engine, first, hit)).repeated


async def two_hits_of_one_mturk_assignment(engine, campaign):
    """The assignment, the HIT that it lost because others needed the items, and the one that it got instead."""
    mine = await create_annotator(engine, campaign, "W1", "mturk", assignment="asg1")
    lost = await try_to_lease_hit(engine, mine)
    await expire_leases(engine)
    rival = await create_annotator(engine, campaign, "W2", "mturk", assignment="asg2")
    taken = await try_to_lease_hit(engine, rival)
    got = await try_to_lease_hit(engine, mine)
    assert got.id != lost.id
    await expire_leases(engine, taken)
    return mine, lost, got


async def test_an_mturk_assignment_that_has_another_hit_now_cannot_answer_the_lost_one(engine):
    campaign = await create_running_campaign(engine, items=7, judgments_per_item=1)
    mine, lost, got = await two_hits_of_one_mturk_assignment(engine, campaign)
    with pytest.raises(Gone):
        await submit_scores(engine, mine, lost)
    assert not (await submit_scores(engine, mine, got)).repeated
    with pytest.raises(Gone):
        await submit_scores(engine, mine, lost)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_of_two_late_answers_of_one_mturk_assignment_one_counts(engine):
    campaign = await create_running_campaign(engine, items=7, judgments_per_item=1)
    mine, lost, got = await two_hits_of_one_mturk_assignment(engine, campaign)
    await execute_sql(
        engine, "UPDATE hits SET closed_at = issued_at WHERE assignment_id = :mine", mine=mine.assignment_id
    )
    answers = await asyncio.gather(
        submit_scores(engine, mine, lost), submit_scores(engine, mine, got), return_exceptions=True
    )
    assert [type(answer) for answer in answers if isinstance(answer, Exception)] == [Gone]
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1
    assert (await find_or_lease_next_hit(engine, mine)).reason == "assignment_done"


async def test_another_person_cannot_answer_ones_hit(engine):
    campaign = await create_running_campaign(engine)
    mine, theirs = await create_annotator(engine, campaign, "W1"), await create_annotator(engine, campaign, "W2")
    hit = await try_to_lease_hit(engine, mine)
    with pytest.raises(NotFound, match="not yours"):
        await submit_scores(engine, theirs, hit)


async def test_who_stops_can_return_and_others_get_the_items_at_once(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1, prolific_completion_code="C0DE")
    (visit,) = await visits(engine, campaign, "s1")
    hit = await try_to_lease_hit(engine, visit)
    work = await stop(engine, visit)
    assert (work.reason, work.is_finished) == ("stopped", True)
    other = await create_annotator(engine, campaign, "W2", "prolific")
    assert sorted((await try_to_lease_hit(engine, other)).items) == sorted(hit.items)


async def test_who_stopped_and_comes_back_finds_the_hit_as_it_was(engine):
    campaign = await create_running_campaign(engine)
    (visit,) = await visits(engine, campaign, "s1")
    hit = await try_to_lease_hit(engine, visit)
    await stop(engine, visit)
    assert (await try_to_lease_hit(engine, visit)).id == hit.id


async def test_a_visit_is_completed_by_stopping_only_if_something_was_answered_in_it(engine):
    campaign = await create_running_campaign(engine, items=30)
    one, two = await visits(engine, campaign, "s1", "s2")
    await submit_scores(engine, one, await try_to_lease_hit(engine, one))
    for visit in (one, two):
        await stop(engine, visit)
    completed = await fetch_rows(engine, "SELECT completed_at IS NOT NULL FROM assignments ORDER BY id")
    assert completed == [(True,), (False,)]
