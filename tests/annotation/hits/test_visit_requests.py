"""Answers and requests for HITs that are served together."""

import asyncio
import re

from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import NextHitRequest
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.visit_requests import VisitReply, VisitRequest, VisitServer
from app.annotation.platforms.assignments import AssignmentId
from app.database.batch_queue import BatchQueue, Unserved
from app.database.connections import TimeLimits
from app.database.session import (
    ServingConnections,
    borrow_autocommit_driver,
    borrow_driver_in_transaction,
    create_engine,
    sqlstate_of_error_or_empty,
)
from app.designs.answer import Answer
from app.errors import Gone, Invalid, NotFound
from tests.annotation.hits.campaigns import (
    NOW,
    begin_session_with_short_lock_timeout,
    create_annotator,
    create_running_campaign,
    expire_leases,
    fetch_value,
    try_to_lease_hit,
)
from tests.annotation.hits.observer import HitForm
from tests.campaigns.drafts import create_launched_campaign


async def serve(engine, campaign, requests):
    async with borrow_autocommit_driver(engine) as connection:
        return await VisitServer(PosteriorCache()).serve(connection, campaign.id, requests)


def next_of(assignment):
    return NextHitRequest(AssignmentQuery(assignment), NOW)


def answer_of(assignment, hit, scores=None):
    return SubmittedAnswer(
        assignment, hit.id, Answer(dict.fromkeys(hit.items, 50.0) if scores is None else scores), NOW
    )


async def test_each_request_gets_what_it_asks_for(engine):
    campaign = await create_running_campaign(engine, items=40)
    page, program, newcomer = [await create_annotator(engine, campaign, name) for name in ("a", "b", "c")]
    held, held_by_program = [await try_to_lease_hit(engine, one) for one in (page, program)]
    gone = AssignmentId(campaign.id, 2**40)
    both, nothing, answered, asked = await serve(
        engine,
        campaign,
        [
            VisitRequest(answer_of(page, held), next_of(page)),
            VisitRequest(next_hit=next_of(gone)),
            VisitRequest(answer_of(program, held_by_program)),
            VisitRequest(next_hit=next_of(newcomer)),
        ],
    )
    assert both.receipt_or_raise_refusal().hit_id == held.id != both.next_hit_or_raise_refusal().hit.id
    assert isinstance(nothing, NotFound)
    assert (answered.receipt_or_raise_refusal().hit_id, answered.next_hit) == (held_by_program.id, None)
    assert (asked.receipt, asked.next_hit_or_raise_refusal().assignment.assignment_id) == (None, newcomer.assignment_id)
    assert both.next_hit.assignment.hits_answered == 1


async def test_a_refused_answer_shows_the_held_hit_or_leaves_the_page_as_it_is(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    empty = answer_of(me, hit, {})
    form, script = await serve(
        engine,
        campaign,
        [VisitRequest(empty, next_of(me)), VisitRequest(empty, next_of(me), shows_invalid_answer=True)],
    )
    assert (form.refusal.code, form.next_hit_or_raise_refusal().hit.id) == ("scores_missing", hit.id)
    assert isinstance(script.refusal, Invalid)
    assert script.next_hit is None


async def test_an_answer_that_is_too_late_is_followed_by_another_hit(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    slow, quick = [await create_annotator(engine, campaign, name) for name in ("slow", "quick")]
    hit = await try_to_lease_hit(engine, slow)
    await expire_leases(engine)
    await try_to_lease_hit(engine, quick)
    (reply,) = await serve(
        engine, campaign, [VisitRequest(answer_of(slow, hit), next_of(slow), shows_invalid_answer=True)]
    )
    assert isinstance(reply.refusal, Gone)
    assert reply.next_hit_or_raise_refusal().reason == "wait"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_an_answer_keeps_its_first_receipt_if_the_next_hit_cannot_be_leased(engine):
    """It is stored by then: what is left of its request is the HIT."""
    campaign = await create_running_campaign(engine, items=40, hits_per_annotator=5)
    page, program = [await create_annotator(engine, campaign, name) for name in ("page", "program")]
    held, held_by_program = [await try_to_lease_hit(engine, one) for one in (page, program)]
    requests = [
        VisitRequest(answer_of(page, held), next_of(page)),
        VisitRequest(answer_of(program, held_by_program)),
    ]
    server = VisitServer(PosteriorCache())
    async with borrow_driver_in_transaction(engine) as holding:  # the lease counts the annotator's HITs under this lock
        await holding.execute("SELECT FROM annotators FOR NO KEY UPDATE")
        async with begin_session_with_short_lock_timeout(engine) as connection:
            waiting, stored = await server.serve(connection, campaign.id, requests)
    assert isinstance(stored, VisitReply)
    assert not stored.receipt_or_raise_refusal().repeated
    assert isinstance(waiting, Unserved)
    assert sqlstate_of_error_or_empty(waiting.problem) == "55P03"
    (reply,) = await serve(engine, campaign, [waiting.request])
    assert (reply.receipt_or_raise_refusal().hit_id, reply.receipt_or_raise_refusal().repeated) == (held.id, False)
    assert reply.next_hit_or_raise_refusal().hit.id != held.id
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


async def test_a_hit_that_cannot_be_leased_for_one_annotator_is_leased_for_others(database_url):
    impatient = create_engine(database_url, pool_size=4, lock_seconds=0.2)
    campaign = await create_running_campaign(impatient, items=40, hits_per_annotator=5)
    people = [await create_annotator(impatient, campaign, f"a{k}") for k in range(3)]
    connections = ServingConnections(impatient, 2)
    queue = BatchQueue(connections, VisitServer(PosteriorCache()).serve)
    async with borrow_driver_in_transaction(impatient) as holding:
        second = await holding.fetchval("SELECT annotator_id FROM assignments WHERE id = $1", people[1].assignment_id)
        await holding.execute("SELECT FROM annotators WHERE id = $1 FOR NO KEY UPDATE", second)
        requests = [queue.submit_and_await_reply(campaign.id, VisitRequest(next_hit=next_of(one))) for one in people]
        first, waiting, third = await asyncio.gather(*requests, return_exceptions=True)
    assert isinstance(first, VisitReply)
    assert first.next_hit_or_raise_refusal().hit
    assert isinstance(waiting, Exception)
    assert sqlstate_of_error_or_empty(waiting) == "55P03"
    assert isinstance(third, VisitReply)
    assert third.next_hit_or_raise_refusal().hit
    await connections.close()
    await impatient.dispose()


async def test_the_page_says_that_an_answer_is_stored_if_there_is_no_next_hit(app, client, database_url):
    impatient = create_engine(database_url, pool_size=4, lock_seconds=0.2)
    connections = ServingConnections(impatient, 2)
    app.state.visit_requests = BatchQueue(
        connections, VisitServer(PosteriorCache()).serve, VisitRequest.reply_to_failure
    )
    campaign = await create_launched_campaign(
        impatient, "id,text\n" + "".join(f"v{k},verb {k:03d}\n" for k in range(40)), hits_per_annotator=1
    )
    link = f"/link/{campaign.link_key}"
    parts = []
    for headers in ({"x-easel": "fetch"}, {}):
        page = (await client.post(link, follow_redirects=True)).text
        async with borrow_driver_in_transaction(impatient) as holding:
            await holding.execute("SELECT FROM assignments FOR NO KEY UPDATE")
            reply = await client.post(link, data=HitForm(page, re.compile(r"verb \d{3}")).filled_in(), headers=headers)
        assert reply.status_code == 200, reply.text
        parts.append(reply.text)
        assert "Your answer is stored" in reply.text
        assert 'data-reason="stored"' in reply.text
        assert 'data-retry-seconds="10"' in reply.text
    assert ["<html" in part for part in parts] == [False, True]
    assert await fetch_value(impatient, "SELECT count(*) FROM responses") == 2
    await connections.close()
    await impatient.dispose()


async def test_people_who_open_their_pages_at_once_get_their_first_hits_by_two_statements_at_most(app, client, engine):
    campaign = await create_running_campaign(engine, items=60)
    people = [await create_annotator(engine, campaign, f"a{k}") for k in range(8)]
    tokens = [app.state.worker_tokens.issue_or_reuse_token("link", campaign.link_key, one) for one in people]
    pages = await asyncio.gather(*(client.get(f"/link/{campaign.link_key}", params={"t": token}) for token in tokens))
    assert all('name="hit"' in page.text for page in pages)
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 8
    assert await fetch_value(engine, "SELECT count(DISTINCT CAST(xmin AS text)) FROM hits") <= 2


async def test_an_answer_keeps_its_receipt_if_its_annotator_alone_gets_no_next_hit(database_url):
    impatient = create_engine(database_url, pool_size=4, lock_seconds=0.2)
    campaign = await create_running_campaign(impatient, items=40, hits_per_annotator=1)
    page, other = [await create_annotator(impatient, campaign, name) for name in ("page", "other")]
    held, held_by_other = [await try_to_lease_hit(impatient, one) for one in (page, other)]
    connections = ServingConnections(impatient, 2)
    queue = BatchQueue(connections, VisitServer(PosteriorCache()).serve, VisitRequest.reply_to_failure)
    async with borrow_driver_in_transaction(
        impatient
    ) as holding:  # the annotator's last answer completes the assignment
        await holding.execute("SELECT FROM assignments WHERE id = $1 FOR NO KEY UPDATE", page.assignment_id)
        requests = [
            VisitRequest(answer_of(one, hit), next_of(one)) for one, hit in ((page, held), (other, held_by_other))
        ]
        stored, served = await asyncio.gather(*(queue.submit_and_await_reply(campaign.id, one) for one in requests))
    assert (stored.receipt_or_raise_refusal().hit_id, stored.receipt_or_raise_refusal().repeated) == (held.id, False)
    assert isinstance(stored.problem, Exception)
    assert sqlstate_of_error_or_empty(stored.problem) == "55P03"
    assert served.next_hit_or_raise_refusal().reason == "limit"
    await connections.close()
    await impatient.dispose()


async def test_a_connection_that_fell_silent_in_the_search_for_a_hit_is_closed(engine, database_url):
    """No other request gets it, and its own can be served on another one."""
    campaign = await create_running_campaign(engine, items=40, hits_per_annotator=5)
    request = VisitRequest(next_hit=next_of(await create_annotator(engine, campaign)))
    limited = create_engine(database_url, pool_size=1, limits=TimeLimits(statement=0.3))
    async with borrow_driver_in_transaction(engine) as holding:  # the lease counts the annotator's HITs under this lock
        await holding.execute("SELECT FROM annotators FOR NO KEY UPDATE")
        async with borrow_autocommit_driver(limited) as connection:
            (unserved,) = await VisitServer(PosteriorCache()).serve(connection, campaign.id, [request])
            assert connection.is_closed()
    await limited.dispose()
    assert isinstance(unserved, Unserved)
    assert isinstance(unserved.problem, TimeoutError)
    (reply,) = await serve(engine, campaign, [unserved.request])
    assert reply.next_hit_or_raise_refusal().hit
