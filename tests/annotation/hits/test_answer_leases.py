"""Next HITs that are leased in the transaction of the answers before them."""

import asyncio
from collections import Counter

import pytest

from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import NextHitRequest
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.visit_requests import VisitRequest, VisitServer
from app.background.metrics import PROCESS_METRICS
from app.database.bulk import open_snapshot
from app.database.session import borrow_autocommit_driver, borrow_driver_in_transaction
from app.designs.answer import Answer
from app.errors import Gone, Invalid
from app.record.replay import verify_by_replay_or_refuse
from tests.annotation.hits.campaigns import (
    LOCK_ROOM_OF_EACH_CAMPAIGN,
    NOW,
    begin_session_with_short_lock_timeout,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.crowds import Crowd, are_leased_with_their_answers, create_crowd
from tests.laws import SCORE_LAWS


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_answers_and_the_next_hits_are_one_transaction_and_the_copy_follows_the_replay(engine, law):
    crowd = await create_crowd(engine, update_law=law, judgments_per_item=20)
    for _ in range(4):
        replies = await crowd.answer_and_ask()
        assert all(reply.receipt and reply.next_hit.hit for reply in replies)
        assert are_leased_with_their_answers(crowd)
        assert await crowd.copy_is_that_of_the_database()
    replies = await crowd.answer_and_ask()
    assert [reply.next_hit.assignment.hits_answered for reply in replies] == [5, 5, 5]
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, crowd.campaign)).has_no_mismatches


async def test_the_next_hits_are_drawn_from_the_posteriors_that_the_answers_lead_to(engine):
    """The items of the answered HIT are the least certain ones, so one of them leads: until the answer is stored."""
    crowd = await create_crowd(engine, people=1, items=10, items_per_hit=2, judgments_per_item=50)
    ((me, hit),) = crowd.held.items()
    await execute_sql(
        engine, f"UPDATE posteriors SET variance = variance * 0.99 WHERE NOT subject = ANY(ARRAY{hit.items})"
    )
    crowd.cache.indexes.clear()
    other = await create_annotator(engine, crowd.campaign, "other")
    async with borrow_autocommit_driver(engine) as connection:
        await crowd.cache.load_current_index(connection, crowd.campaign)
        asked = VisitRequest(next_hit=NextHitRequest(AssignmentQuery(other), NOW))
        replies = await VisitServer(crowd.cache).serve(connection, crowd.campaign.id, [crowd.request_of(me), asked])
    assert len(replies) == 2
    leaders = await fetch_rows(engine, "SELECT leader FROM hits WHERE closed_at IS NULL")
    assert not {leader for (leader,) in leaders} & {*hit.items}
    assert await fetch_value(engine, "SELECT count(*) FROM hits WHERE xmin = (SELECT xmin FROM responses)") == 3


async def test_the_choice_of_items_is_timed_for_each_hit_that_is_leased_with_answers(engine):
    crowd = await create_crowd(engine)
    chosen = PROCESS_METRICS.values.histograms["easel_selection_seconds", ()].counts
    before = sum(chosen)
    await crowd.answer_and_ask()
    assert are_leased_with_their_answers(crowd)
    assert len(crowd.statements) == 4
    assert sum(chosen) - before == 3


async def test_an_annotator_gets_no_item_again_that_they_have_just_answered(engine):
    crowd = await create_crowd(engine, people=1, items=10, repeat_items=False)
    (first,) = crowd.held.values()
    (reply,) = await crowd.answer_and_ask()
    assert are_leased_with_their_answers(crowd)
    assert not {*first.items} & {*reply.next_hit.hit.items}
    (last,) = await crowd.answer_and_ask()
    assert last.next_hit.reason == "seen_all"


async def test_two_answers_of_one_visit_both_count_for_its_next_hit(engine):
    campaign = await create_running_campaign(engine, items=60, repeat_items=False)
    cache = PosteriorCache()
    first, second = [await create_annotator(engine, campaign, assignment=name) for name in ("first", "second")]
    stranger = await create_annotator(engine, campaign, "stranger")
    own, other = [await try_to_lease_hit(engine, one, cache=cache) for one in (second, stranger)]
    await execute_sql(
        engine,
        f"UPDATE hits SET (annotator_id, assignment_id) = (SELECT annotator_id, id FROM assignments WHERE id = "
        f"{first.assignment_id}) WHERE id = {other.id}",
    )
    crowd = Crowd(engine, campaign, {second: own, first: other}, cache)
    of_first = VisitRequest(SubmittedAnswer(second, other.id, Answer(dict.fromkeys(other.items, 50.0)), NOW))
    replies = await crowd.serve(of_first, crowd.request_of(second))
    assert [reply.receipt.repeated for reply in replies] == [False, False]
    assert replies[1].next_hit.assignment.hits_answered == 2
    assert not {*own.items, *other.items} & {*replies[1].next_hit.hit.items}


async def test_a_draw_that_fails_is_logged_and_the_answers_are_stored(engine, caplog):
    crowd = await create_crowd(engine)
    index = crowd.cache.indexes[crowd.campaign.id].index
    index.draw_hit_or_none = None
    outcomes = await crowd.answer_and_ask()
    assert all(outcome.request.answered.receipt for outcome in outcomes)
    assert caplog.text.count("could not be drawn with the answers") == 3
    assert "not callable" in caplog.text


async def test_a_refused_answer_keeps_its_hit_and_the_others_go_on(engine):
    crowd = await create_crowd(engine)
    refused, *_ = crowd.held
    hit = crowd.held[refused]
    bad, *good = await crowd.answer_and_ask(scores={refused: {}})
    assert isinstance(bad.refusal, Invalid)
    assert bad.next_hit.hit.id == hit.id
    assert all(reply.next_hit.hit.id not in {hit.id, reply.receipt.hit_id} for reply in good)


async def test_a_person_whose_row_is_locked_gets_the_receipt_and_waits_for_the_hit_alone(engine):
    crowd = await create_crowd(engine)
    person = await fetch_value(engine, "SELECT min(id) FROM annotators")
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM annotators WHERE id = $1 FOR NO KEY UPDATE", person)
        answering = asyncio.create_task(crowd.answer_and_ask())
        await wait_until(engine, requests_are_waiting_sql(1))
        assert await fetch_value(engine, "SELECT count(*) FROM responses") == 3
        assert await fetch_value(engine, "SELECT count(*) FROM hits WHERE closed_at IS NULL") == 2
    assert all(reply.receipt and reply.next_hit.hit for reply in await answering)


async def test_a_person_who_is_blocked_meanwhile_gets_the_receipt_and_no_hit(engine):
    crowd = await create_crowd(engine)
    block = """
        UPDATE annotators SET barred = 'held', barred_reason = '', barred_by = 'me', barred_at = now()
        WHERE id = (SELECT min(id) FROM annotators)"""
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM posteriors FOR NO KEY UPDATE")
        answering = asyncio.create_task(crowd.answer_and_ask())
        await wait_until(engine, requests_are_waiting_sql(1))
        await execute_sql(engine, block)
    replies = await answering
    assert all(reply.receipt for reply in replies)
    assert [reply.next_hit.reason for reply in replies] == ["held", None, None]


async def test_answers_that_wait_until_a_pause_is_committed_are_stored_and_nobody_gets_a_hit(engine):
    crowd = await create_crowd(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM posteriors FOR NO KEY UPDATE")
        answering = asyncio.create_task(crowd.answer_and_ask())
        await wait_until(engine, requests_are_waiting_sql(1))
        await execute_sql(engine, "UPDATE campaigns SET status = 'paused'")
    replies = await answering
    assert all(reply.receipt for reply in replies)
    assert {reply.next_hit.reason for reply in replies} == {"paused"}


async def test_answers_are_stored_without_next_hits_if_the_room_is_locked_for_too_long(engine):
    crowd = await create_crowd(engine)
    answered = {one: hit.id for one, hit in crowd.held.items()}
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        async with begin_session_with_short_lock_timeout(engine) as connection:
            outcomes = await crowd.answer_and_ask(connection=connection)
    assert [outcome.request.answered.receipt.hit_id for outcome in outcomes] == [*answered.values()]
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 3
    assert await crowd.copy_is_that_of_the_database()


FAIL = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no lease'; END$$"
AT_ONCE = "CREATE TRIGGER fail BEFORE INSERT ON hits FOR EACH ROW EXECUTE FUNCTION fail()"
AT_COMMIT = """
    CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON hits DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION fail()"""


@pytest.mark.own_database
@pytest.mark.parametrize("trigger", [AT_ONCE, AT_COMMIT])
async def test_answers_are_stored_and_what_was_assumed_is_forgotten_if_the_lease_or_the_commit_fails(engine, trigger):
    crowd = await create_crowd(engine)
    for statement in (FAIL, trigger):
        await execute_sql(engine, statement)
    outcomes = await crowd.answer_and_ask()
    assert all(outcome.request.answered.receipt.repeated is False for outcome in outcomes)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 3
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 3 * 5
    await execute_sql(engine, "DROP FUNCTION fail() CASCADE")
    assert await crowd.copy_is_that_of_the_database()


@pytest.mark.own_database
async def test_a_copy_forgets_the_posteriors_of_answers_that_could_not_be_stored(engine):
    crowd = await create_crowd(engine)
    await execute_sql(engine, "ALTER TABLE responses ADD CONSTRAINT unlucky CHECK (false) NOT VALID")
    async with borrow_autocommit_driver(engine) as connection:
        with pytest.raises(Exception, match="unlucky"):
            await crowd.answer_and_ask(connection=connection)
    assert await crowd.copy_is_that_of_the_database()
    await execute_sql(engine, "ALTER TABLE responses DROP CONSTRAINT unlucky")
    assert all(reply.next_hit.hit for reply in await crowd.answer_and_ask())
    assert await crowd.copy_is_that_of_the_database()


async def test_two_processes_neither_deadlock_nor_ask_for_more_judgments_than_wanted(engine):
    campaign = await create_running_campaign(engine, items=20, judgments_per_item=4, repeat_items=False)
    crowds = []
    for process in range(2):
        cache = PosteriorCache()
        people = [await create_annotator(engine, campaign, f"p{process} {k}") for k in range(6)]
        works = [(one, await find_or_lease_next_hit(engine, one, cache=cache)) for one in people]
        crowds.append(Crowd(engine, campaign, {one: work.hit for one, work in works if work.hit}, cache))

    async def work_until_nobody_gets_a_hit(crowd):
        while crowd.held:
            people = [*crowd.held]
            replies = await crowd.answer_and_ask(*people)
            for one, reply in zip(people, replies, strict=True):
                assert reply.receipt is not None
                if reply.next_hit.hit is None:
                    del crowd.held[one]

    await asyncio.gather(*(work_until_nobody_gets_a_hit(crowd) for crowd in crowds))
    rows = await fetch_rows(engine, "SELECT item, count(*) FROM responses, unnest(items) AS item GROUP BY 1")
    assert max(count for _, count in rows) <= 4
    held = await fetch_rows(engine, "SELECT annotator_id, item FROM hits, unnest(items) AS item")
    assert max(Counter(held).values()) == 1
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


@pytest.mark.parametrize(("seconds_left", "is_stored"), [(20, True), (-20, False)])
async def test_an_answer_in_the_last_moments_of_its_lease_is_stored_even_if_the_campaign_is_finished(
    engine, seconds_left, is_stored
):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await expire_leases(engine, seconds_ago=-seconds_left)
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished'")
    if is_stored:
        assert not (await submit_scores(engine, me, hit)).repeated
    else:
        with pytest.raises(Gone):
            await submit_scores(engine, me, hit)


async def test_no_next_hit_takes_the_items_of_a_late_answer_that_arrives_with_an_answer_in_time(engine):
    campaign = await create_running_campaign(engine, items=15, judgments_per_item=1, items_per_hit=5)
    cache = PosteriorCache()
    late, timely, third, newcomer = [await create_annotator(engine, campaign, f"p{k}") for k in range(4)]
    held = {one: await try_to_lease_hit(engine, one, cache=cache) for one in (late, timely, third)}
    crowd = Crowd(engine, campaign, held, cache)
    await execute_sql(engine, f"UPDATE hits SET expires_at = now() - interval '5 s' WHERE id = {held[late].id}")
    asking = VisitRequest(next_hit=NextHitRequest(AssignmentQuery(newcomer), NOW))
    replies = await crowd.serve(crowd.request_of(late), crowd.request_of(timely), asking)
    assert [reply.receipt is not None for reply in replies[:2]] == [True, True]
    assert replies[2].next_hit.hit is None


async def test_nobody_gets_the_items_of_an_answer_whose_lease_ends_while_it_is_stored(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    slow, quick = [await create_annotator(engine, campaign, name) for name in ("slow", "quick")]
    hit = await try_to_lease_hit(engine, slow)
    await expire_leases(engine, seconds_ago=-2)
    async with borrow_driver_in_transaction(engine) as holding:  # the answer has all its locks, and waits to be stored
        await holding.execute("LOCK TABLE responses IN SHARE MODE")
        answering = asyncio.create_task(submit_scores(engine, slow, hit))
        await wait_until(engine, requests_are_waiting_sql(1))
        await wait_until(engine, "SELECT min(expires_at) < clock_timestamp() FROM hits")
        asking = asyncio.create_task(find_or_lease_next_hit(engine, quick))
        await wait_until(engine, requests_are_waiting_sql(2))
    assert not (await answering).repeated
    assert (await asking).hit is None
