import asyncio
import json
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.annotation.hits import submission
from app.campaigns.lifecycle import change_campaign_status_or_refuse
from app.database.session import borrow_driver_in_transaction
from app.designs.answer import Answer, Touch
from app.errors import Gone, Invalid, NotFound
from tests.annotation.hits.campaigns import (
    LOCK_ROOM_OF_EACH_CAMPAIGN,
    NOW,
    create_annotator,
    create_running_campaign,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    form_fields,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.laws import SCORE_LAWS


async def posteriors(engine):
    return await fetch_rows(
        engine, "SELECT number, state, score, variance, judgments FROM current_posteriors ORDER BY number"
    )


async def test_an_answer_updates_the_posteriors_of_its_items_only(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    await submit_scores(engine, me, hit, scores=[0, 25, 50, 75, 100])
    after = {number: rest for number, *rest in await posteriors(engine)}
    for item, score in zip(hit.items, [0, 0.25, 0.5, 0.75, 1], strict=True):
        state, mode, _, judgments = after.pop(item)
        assert (state, mode, judgments) == ([1 + score, 2 - score], score, 1)
    assert all((state, mode, judgments) == ([1, 1], 0.5, 0) for state, mode, _, judgments in after.values())


async def test_second_post_changes_nothing_and_gets_the_first_receipt(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    first = await submit_scores(engine, me, hit, scores=[10, 20, 30, 40, 50])
    before = await posteriors(engine)
    second = await submit_scores(engine, me, hit, scores=[90, 80, 70, 60, 50])
    assert (second.seq, second.repeated) == (first.seq, True)
    assert await posteriors(engine) == before
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_of_many_posts_at_once_one_counts(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    receipts = await asyncio.gather(*(submit_scores(engine, me, hit) for _ in range(8)))
    assert sum(not receipt.repeated for receipt in receipts) == 1
    assert len({receipt.seq for receipt in receipts}) == 1
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 5


async def test_an_answer_says_whether_the_page_or_its_bare_form_sent_it(engine, client):
    campaign = await create_running_campaign(engine)
    page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
    for headers in ({}, {"x-easel": "fetch"}):
        reply = await client.post(f"/link/{campaign.link_key}", data=form_fields(page), headers=headers)
        page = reply.text
    assert await fetch_rows(engine, "SELECT source FROM responses ORDER BY seq") == [("form",), ("page",)]


async def test_touches_are_stored_in_the_order_of_the_items(engine):
    campaign = await create_running_campaign(engine, items_per_hit=2)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    touches = {hit.items[1]: Touch(1200, 3, "keyboard")}
    async with borrow_driver_in_transaction(engine) as connection:
        answer = Answer(dict.fromkeys(hit.items, 50.0), touches, "390x844", "page")
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    ((telemetry, *rest),) = await fetch_rows(engine, "SELECT telemetry::text, source, items FROM responses")
    assert json.loads(telemetry) == {
        "first_touch_ms": [None, 1200],
        "changes": [None, 3],
        "input_kinds": [None, "keyboard"],
        "viewport": "390x844",
    }
    assert rest == ["page", hit.items]


@pytest.mark.parametrize(
    ("scores", "code"),
    [
        ([10, 20, 30, 40], "scores_missing"),
        ([10, 20, 30, 40, 101], "score_out_of_range"),
        ([10, 20, 30, 40, -1], "score_out_of_range"),
        ([10, 20, 30, 40, float("nan")], "score_out_of_range"),
    ],
)
async def test_a_bad_answer_leaves_the_lease_open(engine, scores, code):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    with pytest.raises(Invalid) as refusal:
        async with borrow_driver_in_transaction(engine) as connection:
            await submission.store_answer_of_hit_and_return_receipt(
                connection, me, hit.id, Answer(dict(zip(hit.items, scores, strict=False))), now=NOW
            )
    assert refusal.value.code == code
    assert (await try_to_lease_hit(engine, me)).id == hit.id
    assert (await submit_scores(engine, me, hit)).repeated is False


async def test_scores_for_items_of_another_hit_are_refused(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    with pytest.raises(Invalid, match="not in this HIT"):
        async with borrow_driver_in_transaction(engine) as connection:
            await submission.store_answer_of_hit_and_return_receipt(
                connection, me, hit.id, Answer(dict.fromkeys([*hit.items, 99], 1.0)), now=NOW
            )


async def test_nobody_answers_the_hit_of_someone_else(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "owner"))
    stranger = await create_annotator(engine, campaign, "stranger")
    with pytest.raises(NotFound):
        await submit_scores(engine, stranger, hit)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_a_late_answer_is_taken_while_its_items_are_wanted(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    await expire_leases(engine)
    assert (await submit_scores(engine, me, hit)).repeated is False
    assert (await submit_scores(engine, me, hit)).repeated is True


async def test_a_late_answer_is_refused_when_others_hold_its_items(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    late = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign, "slow"))
    await expire_leases(engine)
    quick = await try_to_lease_hit(engine, other := await create_annotator(engine, campaign, "quick"))
    assert sorted(quick.items) == sorted(late.items)
    with pytest.raises(Gone) as refusal:
        await submit_scores(engine, me, late)
    assert refusal.value.code == "lease_expired"
    await submit_scores(engine, other, quick)
    assert await fetch_value(engine, "SELECT max(judgments) FROM posteriors") == 1


async def test_a_late_answer_to_a_finished_campaign_is_refused(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    async with engine.begin() as connection:
        await change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    await expire_leases(engine)
    with pytest.raises(Gone):
        await submit_scores(engine, me, hit)


async def test_a_held_hit_is_still_taken_after_the_campaign_is_paused(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    async with engine.begin() as connection:
        await change_campaign_status_or_refuse(connection, campaign.slug, "pause", now=NOW)
    assert (await submit_scores(engine, me, hit)).repeated is False
    assert (await find_or_lease_next_hit(engine, me)).reason == "paused"


async def test_the_last_wanted_judgment_closes_the_campaign(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=2)
    both = [await create_annotator(engine, campaign, name) for name in ("ann", "bob")]
    for someone in both:
        await submit_scores(engine, someone, await try_to_lease_hit(engine, someone))
    assert await fetch_rows(engine, "SELECT status, finished_at FROM campaigns") == [("finished", NOW)]
    assert (await find_or_lease_next_hit(engine, both[-1])).reason == "all_done"


async def test_a_single_remaining_item_makes_a_hit_of_one(engine):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=1)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    last = await try_to_lease_hit(engine, me)
    assert len(last.items) == 1
    await submit_scores(engine, me, last, scores=[70])
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_each_update_law_answers_and_stores_what_it_computes(engine, law):
    campaign = await create_running_campaign(engine, update_law=law)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    await submit_scores(engine, me, hit, scores=[0, 25, 50, 75, 100])
    after = {number: score for number, _, score, *_ in await posteriors(engine)}
    scores = [after[item] for item in hit.items]
    assert scores == sorted(scores)
    assert len(set(scores)) == 5


async def test_the_tie_margin_is_in_points(engine):
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, update_law="ra", tie_margin_points=5)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    await submit_scores(engine, me, hit, scores=[50, 55])
    (_, first, *_), (_, second, *_) = await posteriors(engine)
    assert first == second == pytest.approx([1.1832432566842859] * 2, abs=1e-15)
    assert first[0] == first[1]


LEASE_IS_OVER = "SELECT min(expires_at) < clock_timestamp() FROM hits"


async def test_an_answer_whose_lease_ends_while_it_waits_does_not_go_over_the_wanted_number(engine):
    """Somebody holds its row for longer than the lease had left, and another annotator gets the items meanwhile."""
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, judgments_per_item=1)
    slow, quick = [await create_annotator(engine, campaign, name) for name in ("slow", "quick")]
    hit = await try_to_lease_hit(engine, slow)
    await expire_leases(engine, seconds_ago=-0.5)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM hits FOR NO KEY UPDATE")
        answering = asyncio.create_task(submit_scores(engine, slow, hit))
        await wait_until(engine, requests_are_waiting_sql(1))
        await wait_until(engine, LEASE_IS_OVER)
        other = await try_to_lease_hit(engine, quick)
    with pytest.raises(Gone, match="Your time for these items had run out"):
        await answering
    await submit_scores(engine, quick, other)
    assert await fetch_rows(engine, "SELECT judgments FROM posteriors") == [(1,), (1,)]


async def test_an_answer_whose_lease_ends_while_it_waits_for_its_items_is_taken_if_nobody_has_them(engine):
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, judgments_per_item=1)
    slow, quick = [await create_annotator(engine, campaign, name) for name in ("slow", "quick")]
    hit = await try_to_lease_hit(engine, slow)
    await expire_leases(engine, seconds_ago=-0.5)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM posteriors WHERE subject = 0 FOR NO KEY UPDATE")
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        answering = asyncio.create_task(submit_scores(engine, slow, hit))
        await wait_until(engine, requests_are_waiting_sql(1))
        await wait_until(engine, LEASE_IS_OVER)
        leasing = asyncio.create_task(find_or_lease_next_hit(engine, quick))
        await wait_until(engine, requests_are_waiting_sql(2))
    work = await leasing
    if work.hit is None:
        assert not (await answering).repeated
    else:
        with pytest.raises(Gone):
            await answering
        await submit_scores(engine, quick, work.hit)
    assert await fetch_rows(engine, "SELECT judgments FROM posteriors") == [(1,), (1,)]


async def test_an_answer_in_time_does_not_go_over_what_an_import_has_filled(engine):
    """Nor when a clock that went back makes an old lease look open."""
    campaign = await create_running_campaign(engine, items=7, judgments_per_item=1)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE posteriors SET judgments = 1 WHERE subject = :n"), {"n": hit.items[2]})
    with pytest.raises(Gone):
        await submit_scores(engine, me, hit)
    instead = await try_to_lease_hit(engine, me)
    assert hit.items[2] not in instead.items
    await submit_scores(engine, me, instead)
    assert await fetch_value(engine, "SELECT max(judgments) FROM posteriors") == 1


@pytest.mark.parametrize("clock", [timedelta(days=-400), timedelta(days=400)])
async def test_the_clock_of_the_serving_machine_decides_over_no_lease(engine, clock):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    me, other = [await create_annotator(engine, campaign, name) for name in ("me", "other")]
    hit = await try_to_lease_hit(engine, me)
    assert (await find_or_lease_next_hit(engine, other, now=NOW + clock)).reason == "wait"
    assert (await try_to_lease_hit(engine, me, now=NOW + clock)).id == hit.id
    await expire_leases(engine)
    await try_to_lease_hit(engine, other, now=NOW + clock)
    with pytest.raises(Gone):
        await submit_scores(engine, me, hit, now=NOW + clock)


async def test_an_answer_in_time_is_taken_although_the_campaign_was_finished_by_hand(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    await expire_leases(engine, seconds_ago=-5)
    async with engine.begin() as connection:
        await change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    assert not (await submit_scores(engine, me, hit)).repeated


async def test_a_late_answer_that_the_design_refuses_is_not_stored(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, me := await create_annotator(engine, campaign))
    await expire_leases(engine)
    with pytest.raises(Invalid):
        await submit_scores(engine, me, hit, scores=[101.0] * 5)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0
    assert not (await submit_scores(engine, me, hit)).repeated
