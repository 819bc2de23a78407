"""Comments and flags of annotators: stored beside the answer, told to the campaign owner, read by no law."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from app.annotation.hits import submission, undo
from app.database.bulk import open_snapshot
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, Form
from app.designs.item_names import item_names
from app.designs.remarks import Remark
from app.quality import decisions
from app.record import replay
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.remarks import are_remarks_asked_or_stored
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    form_fields,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.annotation.hits.test_checks import with_checks
from tests.annotation.hits.test_systems import ALIKE

BROKEN, RUDE = REASONS = ["It is broken", "It is <rude>"]
STATES = "SELECT number, state FROM current_posteriors WHERE campaign_id = :id"
ALERTS = "SELECT about, because FROM alerts WHERE kind = 'flagged' ORDER BY id"


@pytest.fixture
def engine(app):
    return app.state.database


async def asking(engine, **settings):
    chosen: dict[str, Any] = {"comment_on": "both", "flag_on": "both", "flag_reasons": REASONS, "items_per_hit": 3}
    return await create_running_campaign(engine, **chosen | {"items": 6} | settings)


async def page_of(client, campaign):
    """Somebody's address, and the page that they get there."""
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    return address, (await client.get(address)).text


async def test_remarks_are_offered_for_export_if_they_are_asked_for_or_were_left_earlier(engine):
    asked, silent = await asking(engine), await create_running_campaign(engine, items=6, items_per_hit=3)
    seen = []
    for campaign in (asked, silent):
        async with engine.connect() as connection:
            seen.append(await are_remarks_asked_or_stored(connection, campaign))
    await flag(engine, asked, "ann")
    async with engine.connect() as connection:
        no_longer_asked = replace(asked, flag_on="none", comment_on="none")
        seen.append(await are_remarks_asked_or_stored(connection, no_longer_asked))
    assert seen == [True, False, True]


async def flag(engine, campaign, name, item=2, *, reason=BROKEN, about=None):
    """Somebody who is shown an item flags it, or what else they flag."""
    me = await create_annotator(engine, campaign, name)
    hit = await try_to_lease_hit(engine, me)
    await execute_sql(engine, "UPDATE hits SET items = :items WHERE id = :hit", items=[0, 1, item], hit=hit.id)
    given = Answer({0: 1.0, 1: 2.0, item: 3.0}, remarks={about or str(item): Remark(flag=reason)}, source="page")
    async with borrow_autocommit_driver(engine) as connection:
        return await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, given, now=NOW)


async def test_what_a_page_says_is_stored_beside_the_answer_and_changes_no_posterior(client, engine):
    posteriors = []
    for said in ({}, {"flag": RUDE, "comment": "=1+1"}):
        campaign = await asking(engine, seed=7)
        address, page = await page_of(client, campaign)
        form = form_fields(page)
        hit = int(form["hit"])
        item = str(await fetch_value(engine, "SELECT items[1] FROM hits WHERE id = :hit", hit=hit))
        beside = {f"{what}-00": words for what, words in said.items()}
        beside |= {"comment-hit": "Line 1\r\nLine 2"} if said else {}
        assert "1 task done" in (await client.post(address, data=form | beside)).text
        posteriors.append(sorted(await fetch_rows(engine, STATES, id=campaign.id)))
        extra = await fetch_value(engine, "SELECT extra FROM responses WHERE campaign_id = :id", id=campaign.id)
        stored = {"remarks": {item: said, "hit": {"comment": "Line 1\nLine 2"}}} if said else None
        assert extra == stored
        async with open_snapshot(engine) as connection:
            assert (
                await replay.verify_by_replay_or_refuse(
                    connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
                )
            ).has_no_mismatches
    assert posteriors[0] == posteriors[1]


async def test_a_refused_answer_shows_again_what_was_said(client, engine):
    campaign = await asking(engine)
    address, page = await page_of(client, campaign)
    form = form_fields(page)
    name = next(name for name in form if name.startswith("score-"))
    item = name.removeprefix("score-")
    said = {f"flag-{item}": RUDE, f"comment-{item}": "</textarea><b>", "comment-hit": "\nBoth."}
    shown = (await client.post(address, data=form | said | {name: "101"})).text
    assert '<details class="remarks" open>' in shown
    assert f'<option value="{RUDE}" selected>'.replace("<rude>", "&lt;rude&gt;") in shown
    assert "&lt;/textarea&gt;&lt;b&gt;</textarea>" in shown
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_a_draft_keeps_what_was_said(client, engine):
    campaign = await asking(engine)
    address, page = await page_of(client, campaign)
    form = form_fields(page)
    entries = {f"comment-{item}": {"value": "x\n" * 250} for item in ("00", "01", "02", "hit")}
    draft = {"token": form["token"], "hit": int(form["hit"]), "entries": entries}
    assert (await client.put(address, json=draft)).status_code == 204
    again = (await client.get(address)).text
    assert '<details class="remarks" open>' in again
    assert again.count("x\n" * 249) == 4


async def test_what_is_no_longer_asked_for_costs_nobody_their_answer(client, engine):
    campaign = await asking(engine)
    address, page = await page_of(client, campaign)
    form = form_fields(page)
    await execute_sql(engine, "UPDATE campaigns SET comment_on = 'none', flag_reasons = '{Another}'")
    item = next(name for name in form if name.startswith("score-")).removeprefix("score-")
    reply = await client.post(address, data=form | {f"flag-{item}": RUDE, "comment-hit": "All alike."})
    assert "1 task done" in reply.text
    assert await fetch_rows(engine, "SELECT extra FROM responses") == [(None,)]


async def statements_of(engine, campaign):
    """Return the statements that an answer without remarks sends to the database."""
    me = await create_annotator(engine, campaign)
    hit, sent = await try_to_lease_hit(engine, me), []
    async with borrow_autocommit_driver(engine) as connection:
        with connection.query_logger(lambda query: sent.append(query.query)):
            answer = Answer(dict.fromkeys(hit.items, 50.0), source="page")
            await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    return sent


async def test_a_campaign_that_does_not_ask_shows_nothing_and_pays_nothing(client, engine):
    silent, talking = await create_running_campaign(engine, items_per_hit=3, items=6), await asking(engine)
    await statements_of(engine, silent)  # a connection's first answer also asks for the types of columns
    assert await statements_of(engine, silent) == await statements_of(engine, talking)
    for campaign, there in ((silent, False), (talking, True)):
        _, page = await page_of(client, campaign)
        assert ('class="remarks"' in page) == there


async def test_so_many_different_people_are_an_alert_once(engine):
    campaign = await asking(engine, flag_people=2)
    await flag(engine, campaign, "ann")
    assert await fetch_rows(engine, ALERTS) == []
    await flag(engine, campaign, "bob", reason=RUDE)
    assert await fetch_rows(engine, ALERTS) == [("item v2", f"2 annotators: {RUDE}; {BROKEN}")]
    await flag(engine, campaign, "eve")
    assert len(await fetch_rows(engine, ALERTS)) == 1


async def test_one_person_alone_is_one_however_often(engine):
    campaign = await asking(engine, flag_people=2)
    await flag(engine, campaign, "ann")
    await flag(engine, campaign, "ann")
    assert await fetch_rows(engine, ALERTS) == []


async def test_two_at_once_are_two(engine):
    campaign = await asking(engine, flag_people=2)
    await asyncio.gather(flag(engine, campaign, "ann"), flag(engine, campaign, "bob"))
    assert [about for about, _ in await fetch_rows(engine, ALERTS)] == ["item v2"]


async def test_who_is_excluded_raises_no_alert(engine):
    campaign = await asking(engine, flag_people=2)
    await flag(engine, campaign, "ann")
    (number,) = (await fetch_rows(engine, "SELECT id FROM annotators"))[0]
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, number, reason="flags everything", now=NOW)
    await flag(engine, campaign, "bob")
    assert await fetch_rows(engine, ALERTS) == []


async def test_who_changes_their_answer_finds_what_they_said_and_can_take_it_back(client, engine):
    campaign = await asking(engine, flag_people=1)
    address, page = await page_of(client, campaign)
    form = form_fields(page)
    item = next(name for name in form if name.startswith("score-")).removeprefix("score-")
    await client.post(address, data=form | {f"flag-{item}": RUDE, "comment-hit": "First\nthought"})
    again = (await client.post(address, data={"token": form["token"], "undo": "1"})).text
    assert '<details class="remarks" open>' in again
    assert "First\nthought</textarea>" in again
    assert re.search(rf'name="flag-{item}".*?selected>It is &lt;rude&gt;</option>', again, re.DOTALL)
    replaces = dict(re.findall(r'name="(replaces)" value="(\d+)"', again))
    await client.post(address, data=form | replaces | {"comment-hit": "On second thought"})
    stored = await fetch_rows(engine, "SELECT extra FROM responses ORDER BY seq")
    assert stored[1] == ({"remarks": {"hit": {"comment": "On second thought"}}},)
    assert len(await fetch_rows(engine, ALERTS)) == 1


async def test_a_flag_that_was_taken_back_counts_for_nobody(client, engine):
    campaign = await asking(engine, flag_people=2)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    flagged = Answer(dict.fromkeys(hit.items, 5.0), remarks={str(hit.items[0]): Remark(flag=BROKEN)}, source="page")
    async with borrow_autocommit_driver(engine) as connection:
        told = await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, flagged, now=NOW)
        await undo.replace_answer_and_return_receipt_or_refuse(
            connection, me, hit.id, told.seq, Answer(flagged.values), now=NOW
        )
    await flag(engine, campaign, "bob", item=hit.items[0] if hit.items[0] > 1 else 2)
    assert await fetch_rows(engine, ALERTS) == []


async def test_a_flag_in_a_changed_answer_is_an_alert(engine):
    campaign = await asking(engine, flag_people=1)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    first = Answer(dict.fromkeys(hit.items, 5.0), source="page")
    changed = replace(first, remarks={str(hit.items[1]): Remark(flag=BROKEN)})
    async with borrow_autocommit_driver(engine) as connection:
        told = await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, first, now=NOW)
        assert await fetch_rows(engine, ALERTS) == []
        await undo.replace_answer_and_return_receipt_or_refuse(connection, me, hit.id, told.seq, changed, now=NOW)
    assert await fetch_rows(engine, ALERTS) == [(f"item v{hit.items[1]}", f"1 annotator: {BROKEN}")]


async def test_a_remark_on_a_check_is_kept_as_that_and_its_alert_names_the_check(engine):
    campaign = await with_checks(engine, comment_on="items", flag_on="both", flag_people=1, flag_reasons=REASONS)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while all(name.startswith("v") for name in hit.ids):
        await submit_scores(engine, me, hit)
        hit = await try_to_lease_hit(engine, me)
    place = next(place for place, name in enumerate(hit.ids) if not name.startswith("v"))
    said = {str(hit.items[place]): Remark("Why?", BROKEN)}
    answer = Answer(dict.fromkeys(hit.items, 5.0), remarks=said, source="page")
    async with borrow_autocommit_driver(engine) as connection:
        told = await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    stored = await fetch_value(engine, "SELECT extra FROM responses WHERE seq = :seq", seq=told.seq)
    number = await fetch_value(engine, "SELECT check_number FROM check_answers")
    assert stored == {"remarks": {f"check {number}": {"comment": "Why?", "flag": BROKEN}}}
    assert await fetch_rows(engine, ALERTS) == [(f"item {hit.ids[place]}", f"1 annotator: {BROKEN}")]
    async with borrow_autocommit_driver(engine) as connection:
        shown = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
    assert shown.form[f"comment-0{place}"] == "Why?"


async def test_an_output_is_flagged_for_its_segment_alone(engine):
    campaign = await create_campaign_of_systems(engine, flag_on="both", flag_people=2, flag_reasons=[])
    for name, segment in (("ann", 0), ("bob", 1), ("eve", 0)):
        me = await create_annotator(engine, campaign, name)
        hit = await try_to_lease_hit(engine, me)
        await execute_sql(
            engine, "UPDATE hits SET items = '{0,1}', segment = :segment WHERE id = :hit", segment=segment, hit=hit.id
        )
        given = Answer({0: 1.0, 1: 2.0}, remarks={"0": Remark(flag="wrong")}, source="page")
        async with borrow_autocommit_driver(engine) as connection:
            await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, given, now=NOW)
    assert await fetch_rows(engine, ALERTS) == [("item ape for s0", "2 annotators")]


async def test_of_several_criteria_it_is_said_once(client, engine):
    criteria = [{"name": name, "question": f"How {name}?"} for name in ("adequate", "fluent")]
    campaign = await asking(engine, criteria=criteria)
    address, page = await page_of(client, campaign)
    assert page.count('name="comment-hit"') == 1
    token, hit = re.findall(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', page, re.DOTALL)[0]
    scores = dict.fromkeys(re.findall(r'name="(c\d-score-\d+)"', page), "50")
    await client.post(address, data={"token": token, "hit": hit, "comment-hit": "Both.", **scores})
    assert (await fetch_value(engine, "SELECT extra FROM responses"))["remarks"] == {"hit": {"comment": "Both."}}


async def test_whoever_tries_a_campaign_out_sees_it(engine, researcher):
    campaign = await asking(engine)
    assert 'class="remarks"' in (await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit")).text


async def test_a_flag_on_an_output_that_two_systems_have_is_on_both(engine):
    campaign = await create_campaign_of_systems(
        engine, ALIKE, items_per_hit=3, flag_on="both", comment_on="HIT", flag_reasons=[]
    )
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    names = item_names(len(hit.items))
    same = names[[text.startswith("same") for text in hit.texts].index(True)]
    form = {f"score-{name}": "50" for name in names} | {f"flag-{same}": "wrong", "comment-hit": "Hm."}
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, Form(form, "form"), now=NOW)
        again = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
    extra = await fetch_value(engine, "SELECT extra FROM responses")
    assert extra == {"remarks": {"0": {"flag": ""}, "1": {"flag": ""}, "hit": {"comment": "Hm."}}}
    assert {name: again.form[name] for name in form} == form


async def test_hits_are_flagged_as_such_and_one_alert_says_so(engine):
    campaign = await asking(engine, flag_people=2, judgments_per_item=9)
    for name in ("ann", "ann", "bob", "eve"):
        await flag(engine, campaign, name, about="hit")
    assert await fetch_rows(engine, ALERTS) == [("HITs", f"2 annotators: {BROKEN}")]


async def test_a_comment_that_is_too_long_is_refused_with_the_limit_and_nothing_of_it_is_lost(engine, client):
    campaign = await asking(engine)
    address, page = await page_of(client, campaign)
    long = {"comment-hit": "x" * 501}
    refused = await client.post(address, data=form_fields(page) | long)
    assert "at most 500 characters, and one of yours has 501" in refused.text
    assert long["comment-hit"] in refused.text
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0
    stored = await client.post(address, data=form_fields(page) | {"comment-hit": "  " + "y" * 500 + "\r\n"})
    assert stored.status_code == 200
    kept = "SELECT length(extra #>> '{remarks,hit,comment}') FROM responses"
    assert await fetch_value(engine, kept) == 500
