"""Limits for those who have nothing to show but a campaign's public link."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest
from starlette.requests import Request

from app.annotation.hits import drafts, leases
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.assignments import find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.visit_limit import VisitLimiter
from app.database.session import borrow_autocommit_driver
from app.errors import TooManyVisits
from app.http.dependencies import client_network_or_empty
from app.settings import Settings
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.conftest import http_client

KEY = "k" * 32
CLASS = 40


def doors(**limits):
    return VisitLimiter(KEY, Settings(**limits))


async def visit(engine, campaign, name, visitor, *, now=NOW):
    async with borrow_autocommit_driver(engine) as connection:
        return await find_or_create_assignment(
            connection, campaign.id, "link", Arrival(name, "visit"), now=now, visitor=visitor
        )


async def ask(engine, assignment, visitor):
    async with borrow_autocommit_driver(engine) as connection:
        return await leases.find_or_lease_next_hit(
            connection, PosteriorCache(), AssignmentQuery(assignment, visitor), now=NOW
        )


async def touch(engine, assignment, hit):
    async with borrow_autocommit_driver(engine) as connection:
        await drafts.try_to_save_draft_of_open_hit(connection, assignment, hit.id, {str(hit.items[0]): {"score": 1}})


async def minutes_left(engine, hit):
    left = "SELECT round(extract(epoch FROM expires_at - clock_timestamp()) / 60) FROM hits WHERE id = :hit"
    return await fetch_value(engine, left, hit=hit.id)


# New visits


async def test_an_address_has_an_hours_visits_at_once_and_then_one_at_a_time(engine):
    campaign, visitor = (
        await create_running_campaign(engine),
        doors(visits_per_address=6).visitor_of_ip_address("192.0.2.1"),
    )
    for k in range(6):
        await visit(engine, campaign, f"a{k}", visitor)
    with pytest.raises(TooManyVisits) as refusal:
        await visit(engine, campaign, "late", visitor)
    assert (refusal.value.status, refusal.value.details) == (429, {"retry_after_seconds": 600})
    later = NOW + timedelta(seconds=600)
    await visit(engine, campaign, "late", visitor, now=later)
    with pytest.raises(TooManyVisits):
        await visit(engine, campaign, "too late", visitor, now=later)


async def test_a_class_behind_one_address_comes_in_at_once_where_the_researcher_said_so(engine):
    campaign, visitor = (
        await create_running_campaign(engine, people_per_address=8),
        doors(visits_per_address=2).visitor_of_ip_address("192.0.2.1"),
    )
    for k in range(8):
        await visit(engine, campaign, f"a{k}", visitor)
    with pytest.raises(TooManyVisits) as refusal:
        await visit(engine, campaign, "late", visitor)
    assert refusal.value.details == {"retry_after_seconds": 450}  # an eighth of an hour, not a half
    await visit(engine, campaign, "late", visitor, now=NOW + timedelta(seconds=450))
    other = await create_running_campaign(engine, name="Other")
    for k in range(2):
        await visit(engine, other, f"a{k}", visitor)
    with pytest.raises(TooManyVisits):
        await visit(engine, other, "a2", visitor)


async def let_in(engine, campaign, visitor, people, *, now=NOW):
    """Let new people arrive and return how many are admitted."""
    admitted = 0
    for _ in range(people):
        try:
            await visit(engine, campaign, str(uuid4()), visitor, now=now)
            admitted += 1
        except TooManyVisits:
            break
    return admitted


@pytest.mark.parametrize("people", [7, 11, 13, 23])
async def test_as_many_people_come_in_at_once_as_the_researcher_said(engine, people):
    campaign = await create_running_campaign(engine, people_per_address=people)
    assert await let_in(engine, campaign, doors().visitor_of_ip_address("192.0.2.1"), 30) == people


async def test_a_raised_number_of_people_counts_at_once(engine):
    campaign = await create_running_campaign(engine, people_per_address=3)
    visitor = doors(visits_per_address=1).visitor_of_ip_address("192.0.2.1")
    assert await let_in(engine, campaign, visitor, 30) == 3
    for raised in (7, 13):
        await execute_sql(engine, "UPDATE campaigns SET people_per_address = :raised", raised=raised)
        before = await fetch_value(engine, "SELECT count(*) FROM annotators")
        assert before + await let_in(engine, campaign, visitor, 30) == raised
    with pytest.raises(TooManyVisits) as refusal:
        await visit(engine, campaign, "late", visitor)
    assert refusal.value.details == {"retry_after_seconds": -(-3600 // 13)}


async def test_a_lowered_number_of_people_does_not_close_the_door_for_longer_than_an_hour(engine):
    campaign = await create_running_campaign(engine, people_per_address=12)
    visitor = doors().visitor_of_ip_address("192.0.2.1")
    assert await let_in(engine, campaign, visitor, 30) == 12
    await execute_sql(engine, "UPDATE campaigns SET people_per_address = 2")
    with pytest.raises(TooManyVisits) as refusal:
        await visit(engine, campaign, "late", visitor)
    assert refusal.value.details == {"retry_after_seconds": 1800}
    assert await let_in(engine, campaign, visitor, 5, now=NOW + timedelta(hours=1)) == 2


async def test_the_whole_class_gets_hits_before_anybody_has_touched_one(engine):
    open_doors = doors(visits_per_address=2, untouched_per_address=2)
    campaign = await create_running_campaign(engine, people_per_address=5, judgments_per_item=50)
    visitor = open_doors.visitor_of_ip_address("192.0.2.1")
    visits = [await visit(engine, campaign, f"a{k}", visitor) for k in range(5)]
    works = [await ask(engine, one, visitor) for one in visits]
    assert all(work.hit is not None for work in works)


async def test_the_researcher_is_told_how_many_visits_were_turned_away(engine, researcher):
    campaign, visitor = (
        await create_running_campaign(engine),
        doors(visits_per_address=1).visitor_of_ip_address("192.0.2.1"),
    )
    now = datetime.now(UTC)
    await visit(engine, campaign, "first", visitor, now=now)
    for k in range(12):
        with pytest.raises(TooManyVisits):
            await visit(engine, campaign, f"a{k}", visitor, now=now)
    assert await fetch_rows(engine, "SELECT kind, about FROM alerts ORDER BY id") == [
        ("turned_away", "1 so far today"),
        ("turned_away", "10 so far today"),
    ]
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert "Visitors were turned away: 10 so far today." in page
    assert "Visitors were turned away: 1 so far today." not in page  # the newer number says more
    assert "12 visits have been turned away since yesterday" in page
    assert f"/admin/campaigns/{campaign.slug}/settings?setting=people_per_address" in page


async def test_seeing_the_newest_number_of_visits_turned_away_is_seeing_the_older_ones(engine, researcher):
    campaign = await create_running_campaign(engine)
    visitor = doors(visits_per_address=1).visitor_of_ip_address("192.0.2.1")
    await let_in(engine, campaign, visitor, 2)
    for _ in range(9):
        assert await let_in(engine, campaign, visitor, 1) == 0
    address = f"/admin/campaigns/{campaign.slug}"
    (newest,) = await fetch_rows(engine, "SELECT max(id) FROM alerts")
    seen = await researcher.post(f"{address}/alerts/{newest[0]}/seen")
    assert seen.status_code == 303
    assert "Visitors were turned away" not in (await researcher.get(address)).text


async def test_visits_that_come_at_once_are_counted_one_after_another(engine):
    campaign, visitor = (
        await create_running_campaign(engine),
        doors(visits_per_address=5).visitor_of_ip_address("192.0.2.1"),
    )
    visits = [visit(engine, campaign, f"a{k}", visitor) for k in range(12)]
    outcomes = await asyncio.gather(*visits, return_exceptions=True)
    assert sum(isinstance(outcome, TooManyVisits) for outcome in outcomes) == 7
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 5


async def test_a_full_address_keeps_nobody_else_out_and_no_other_campaign(engine):
    campaign, other = await create_running_campaign(engine), await create_running_campaign(engine, name="Other")
    here, there = (doors(visits_per_address=1).visitor_of_ip_address(address) for address in ("192.0.2.1", "192.0.2.2"))
    await visit(engine, campaign, "first", here)
    await visit(engine, campaign, "second", there)
    await visit(engine, other, "first", here)


async def test_a_campaign_takes_a_limited_number_of_new_visits_from_everywhere(engine):
    campaign, limited = await create_running_campaign(engine), doors(visits_per_campaign=3)
    for k in range(3):
        await visit(engine, campaign, f"a{k}", limited.visitor_of_ip_address(f"192.0.2.{k}"))
    with pytest.raises(TooManyVisits) as refusal:
        await visit(engine, campaign, "a3", limited.visitor_of_ip_address("192.0.2.3"))
    assert refusal.value.details == {"retry_after_seconds": 1200}


async def test_whoever_is_refused_for_the_campaigns_sake_is_not_charged_for_it(engine):
    campaign, limited = await create_running_campaign(engine), doors(visits_per_address=2, visits_per_campaign=1)
    await visit(engine, campaign, "first", limited.visitor_of_ip_address("192.0.2.1"))
    visitor = limited.visitor_of_ip_address("192.0.2.2")
    for name in ("a", "b", "c"):
        with pytest.raises(TooManyVisits):
            await visit(engine, campaign, name, visitor)
    counted = "SELECT count(*) FROM visit_allowances WHERE address <> ''"
    assert await fetch_value(engine, counted) == 1


async def test_whoever_comes_back_is_not_counted(engine):
    campaign, visitor = (
        await create_running_campaign(engine),
        doors(visits_per_address=1).visitor_of_ip_address("192.0.2.1"),
    )
    assert await visit(engine, campaign, "me", visitor) == await visit(engine, campaign, "me", visitor)


async def visit_again(engine, campaign, visitor, assignment, *, worker="W1"):
    async with borrow_autocommit_driver(engine) as connection:
        arrival = Arrival(worker, assignment)
        return await find_or_create_assignment(
            connection, campaign.id, "mturk", arrival, now=datetime.now(UTC), visitor=visitor
        )


async def test_a_worker_with_one_assignment_for_each_task_is_one_new_person(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    visitor = doors(visits_per_address=1).visitor_of_ip_address("192.0.2.1")
    for k in range(5):
        assignment = await visit_again(engine, campaign, visitor, f"assignment {k}")
        await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    with pytest.raises(TooManyVisits):
        await visit_again(engine, campaign, visitor, "assignment", worker="W2")


async def test_a_worker_who_answered_nothing_in_the_latest_assignment_is_counted_again(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    visitor = doors(visits_per_address=2).visitor_of_ip_address("192.0.2.1")
    assignment = await visit_again(engine, campaign, visitor, "answered")
    await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    await visit_again(engine, campaign, visitor, "returned")
    await visit_again(engine, campaign, visitor, "returned again")
    with pytest.raises(TooManyVisits):
        await visit_again(engine, campaign, visitor, "returned once more")


async def test_those_whom_a_program_names_are_not_counted(engine):
    campaign = await create_running_campaign(engine)
    await create_annotator(engine, campaign, "theirs", "api")
    assert await fetch_value(engine, "SELECT count(*) FROM visit_allowances") == 0


async def test_no_address_is_kept_and_what_counts_nothing_any_more_is_swept_out(engine):
    campaign, open_doors = await create_running_campaign(engine), doors()
    for k in range(3):
        await visit(engine, campaign, f"a{k}", open_doors.visitor_of_ip_address(f"192.0.2.{k}"))
    kept = [bytes(address) for (address,) in await fetch_rows(engine, "SELECT address FROM visit_allowances")]
    assert not any(b"192" in address for address in kept)
    await visit(engine, campaign, "next", open_doors.visitor_of_ip_address("192.0.2.9"), now=NOW + timedelta(hours=1))
    assert await fetch_value(engine, "SELECT count(*) FROM visit_allowances WHERE address <> ''") == 1


def test_one_line_to_the_internet_is_one_place(subtests):
    for one, other, same in (
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("made up", "x" * 5000, True),
    ):
        with subtests.test(one=one, other=other, same=same):
            places = [client_network_or_empty(Request({"type": "http", "client": (host, 1)})) for host in (one, other)]
            assert (places[0] == places[1]) is same


# HITs that nobody has touched


async def test_a_visitors_lease_is_short_until_the_first_touch(engine):
    visitor = doors(untouched_minutes=5).visitor_of_ip_address("192.0.2.1")
    me = await visit(engine, await create_running_campaign(engine), "me", visitor)
    hit = (await ask(engine, me, visitor)).hit
    assert await minutes_left(engine, hit) == 5
    await touch(engine, me, hit)
    assert await minutes_left(engine, hit) == 30
    await expire_leases(engine, hit, seconds_ago=-600)
    await touch(engine, me, hit)
    assert await minutes_left(engine, hit) == 10  # only the first one counts


async def test_a_lease_is_never_longer_than_the_campaigns(engine):
    visitor = doors(untouched_minutes=60).visitor_of_ip_address("192.0.2.1")
    me = await visit(engine, await create_running_campaign(engine), "me", visitor)
    assert await minutes_left(engine, (await ask(engine, me, visitor)).hit) == 30


async def test_whoever_reads_for_long_gets_the_whole_lease_at_the_first_touch_all_the_same(engine):
    visitor = doors(untouched_minutes=5).visitor_of_ip_address("192.0.2.1")
    me = await visit(engine, await create_running_campaign(engine), "me", visitor)
    hit = (await ask(engine, me, visitor)).hit
    await expire_leases(engine, hit)
    await touch(engine, me, hit)
    assert (await ask(engine, me, visitor)).hit.id == hit.id
    assert await minutes_left(engine, hit) == 30


async def test_a_late_touch_does_not_take_items_from_someone_else(engine):
    visitor = doors(untouched_minutes=5).visitor_of_ip_address("192.0.2.1")
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    me, other = [await visit(engine, campaign, name, visitor) for name in ("me", "other")]
    hit = (await ask(engine, me, visitor)).hit
    await expire_leases(engine, hit)
    assert (await ask(engine, other, visitor)).hit
    await touch(engine, me, hit)
    assert (await ask(engine, me, visitor)).reason == "wait"


async def test_an_address_holds_a_limited_number_of_untouched_hits(engine):
    limited = doors(untouched_per_address=2)
    campaign, here = await create_running_campaign(engine, items=60), limited.visitor_of_ip_address("192.0.2.1")
    people = [await visit(engine, campaign, f"a{k}", here) for k in range(3)]
    first, second, third = [await ask(engine, someone, here) for someone in people]
    assert third.reason == "crowded"
    assert (await ask(engine, people[1], here)).hit.id == second.hit.id  # what one holds, one keeps
    elsewhere = limited.visitor_of_ip_address("192.0.2.2")
    assert (await ask(engine, await visit(engine, campaign, "b", elsewhere), elsewhere)).hit
    await touch(engine, people[0], first.hit)
    assert (await ask(engine, people[2], here)).hit


async def test_a_campaign_holds_a_limited_number_of_untouched_hits_which_go_back_soon(engine):
    limited = doors(untouched_per_campaign=2)
    campaign = await create_running_campaign(engine, items=60)
    visitors = [limited.visitor_of_ip_address(f"192.0.2.{k}") for k in range(3)]
    people = [await visit(engine, campaign, f"a{k}", visitor) for k, visitor in enumerate(visitors)]
    pairs = list(zip(people, visitors, strict=True))
    assert [(await ask(engine, *pair)).reason for pair in pairs] == [None, None, "crowded"]
    await expire_leases(engine)
    assert (await ask(engine, *pairs[2])).hit
    assert (await ask(engine, *pairs[0])).hit
    assert (await ask(engine, *pairs[1])).reason == "crowded"  # an expired one is not renewed past the limit


# Over HTTP


async def test_a_class_behind_one_address_can_begin_together(app):
    campaign = await create_running_campaign(app.state.database, items=80)

    async def begin():
        async with http_client(app) as client:
            reply = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
            return reply.status_code, 'name="hit"' in reply.text

    assert set(await asyncio.gather(*(begin() for _ in range(CLASS)))) == {(200, True)}


async def test_too_many_visits_get_calm_words_and_are_told_when_to_come_back(app, client):
    app.state.visit_limiter = doors(visits_per_address=1)
    campaign = await create_running_campaign(app.state.database)
    link = f"/link/{campaign.link_key}"
    known = (await client.post(link)).headers["location"]
    refused = await client.post(link)
    assert (refused.status_code, 3590 <= int(refused.headers["retry-after"]) <= 3600) == (429, True)
    assert "Please open the link again in 60 min" in refused.text
    assert "too_many_visits" in refused.text
    assert (await client.get(known)).status_code == 200
    prolific = f"/prolific/{campaign.link_key}?PROLIFIC_PID=a&STUDY_ID=b&SESSION_ID=c"
    assert (await client.get(prolific)).status_code == 429  # ids in an address are easily made up


async def test_whoever_finds_too_many_untouched_hits_is_asked_to_wait(app, client):
    app.state.visit_limiter = doors(untouched_per_address=1)
    link = f"/link/{(await create_running_campaign(app.state.database)).link_key}"
    assert (await client.post(link, follow_redirects=True)).status_code == 200
    waiting = await client.post(link, follow_redirects=True)
    assert (waiting.status_code, waiting.headers["retry-after"]) == (429, "30")
    assert "Please wait a moment" in waiting.text
    assert "This page looks again every 30 seconds." in waiting.text
    assert "kept" not in waiting.text  # nobody stands in a queue
    part = await client.get(waiting.url, headers={"x-easel": "fetch"})
    assert (part.status_code, 'data-retry-seconds="30"' in part.text) == (200, True)


async def test_a_token_of_one_campaign_or_platform_opens_no_other(app, client):
    one, other = [await create_running_campaign(app.state.database, name=name) for name in ("one", "other")]
    token = httpx.URL((await client.post(f"/link/{one.link_key}")).headers["location"]).params["t"]
    assert (await client.get(f"/link/{one.link_key}", params={"t": token})).status_code == 200
    for address in (f"/link/{other.link_key}", f"/prolific/{one.link_key}", f"/mturk/{one.link_key}"):
        draft = {"token": token, "hit": 1, "entries": {}}
        replies = (
            await client.get(address, params={"t": token}),
            await client.post(address, data={"token": token, "hit": "1"}),
            await client.put(address, json=draft),
        )
        assert [reply.status_code for reply in replies] == [422, 422, 422]
