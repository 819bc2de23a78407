"""An answer that is shown again to be changed is filled in as it was given: sent back unchanged, it says the same."""

from typing import Any

import pytest
from sqlalchemy import text

from app.annotation.hits import submission, undo
from app.database.bulk import open_snapshot
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, Form
from app.designs.item_names import item_names
from app.designs.registry import DESIGNS
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import answer_all_hits, create_campaign_with_criteria
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.annotation.hits.test_checks import with_checks

SAID = "SELECT items, values, extra, segment FROM responses ORDER BY seq DESC LIMIT 2"
ITEM = "It is broken or incomplete"


async def sent_back(engine, someone):
    """Reopen the last answer and send the form as it is filled in; what was reopened."""
    async with borrow_autocommit_driver(engine) as connection:
        last = await undo.load_last_answer_for_change_or_refuse(connection, someone, now=NOW)
        told = await undo.replace_answer_and_return_receipt_or_refuse(
            connection, someone, last.hit.id, last.seq, Form(last.form, source="form"), now=NOW
        )
    assert told.seq > last.seq
    return last


async def says_the_same(engine, campaign):
    newer, older = await fetch_rows(engine, SAID)
    assert repr(newer) == repr(older)  # NaN stands for what nobody judged
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    async with open_snapshot(engine) as connection:
        verified = await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )
    assert (verified.responses, verified.has_no_mismatches) == (1, True)


async def give_answer(engine, someone, answer):
    hit = await try_to_lease_hit(engine, someone)
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, someone, hit.id, answer(hit), now=NOW)
    return hit


ITS_OWN: dict[str, dict[str, Any]] = {
    "categories": {"design_settings": {"labels": ["noun", "verb", "other"]}},
    "baseline": {"design_settings": {"baseline": "v0"}},
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("shares", [(0.9, 0.1, 0.4, 0.2, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)], ids=["apart", "alike"])
async def test_of_every_design(engine, name, shares):
    campaign = await create_running_campaign(engine, design=name, **ITS_OWN.get(name, {}))
    design, me = campaign.design, await create_annotator(engine, campaign)
    hit = await give_answer(engine, me, lambda hit: answer_of(design, hit.items, shares))
    assert (await sent_back(engine, me)).hit.texts == hit.texts
    await says_the_same(engine, campaign)


def answer_of(design, items, shares):
    return Answer(dict(zip(items, design.simulate_answer_values(shares[: len(items)]), strict=True)))


async def test_of_several_criteria(engine):
    campaign = await create_campaign_with_criteria(engine, 3)
    (me,) = await answer_all_hits(engine, campaign, people=1, hits=1)
    await sent_back(engine, me)
    await says_the_same(engine, campaign)


@pytest.mark.parametrize("reason", [ITEM, ""])
async def test_of_what_cannot_be_judged(engine, reason):
    reasons = [reason] if reason else []
    campaign = await create_running_campaign(engine, items_per_hit=3, cannot_be_judged=True, unjudged_reasons=reasons)
    me = await create_annotator(engine, campaign)
    await give_answer(
        engine, me, lambda hit: Answer({hit.items[0]: 3.0, hit.items[2]: 77.0}, unjudged={hit.items[1]: reason})
    )
    await sent_back(engine, me)
    await says_the_same(engine, campaign)


async def test_of_outputs_of_systems(engine):
    content = "system,segment,output\nape,s0,same\nbee,s0,same\ncat,s0,another\n"
    campaign = await create_campaign_of_systems(engine, content, items_per_hit=3)
    me = await create_annotator(engine, campaign)
    hit = await give_answer(engine, me, lambda hit: Answer(dict(zip(hit.items, (20.0, 70.0), strict=True))))
    assert len(hit.items) == 2  # the same output is shown once
    assert (await sent_back(engine, me)).hit.texts == hit.texts
    await says_the_same(engine, campaign)


async def test_of_a_hit_with_checks_and_what_was_said_of_these_stays_as_it_was_first(engine):
    campaign = await with_checks(engine, checks_percent=50, judgments_per_item=50)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while all(name.startswith("v") for name in hit.ids):
        await submit_scores(engine, me, hit)
        hit = await try_to_lease_hit(engine, me)
    told = await submit_scores(engine, me, hit, scores=[30.0, 40.0, 50.0, 60.0, 70.0])
    last = await sent_back(engine, me)
    assert (last.hit.ids, last.hit.texts) == (hit.ids, hit.texts)
    names = item_names(len(hit.items))
    assert [last.form[f"score-{name}"] for name in names] == ["30", "40", "50", "60", "70"]
    changed = Form({**last.form, **{f"score-{name}": "1" for name in names}}, source="form")
    before = await fetch_rows(engine, "SELECT check_number, value FROM check_answers")
    async with borrow_autocommit_driver(engine) as connection:
        again = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
        await undo.replace_answer_and_return_receipt_or_refuse(connection, me, hit.id, again.seq, changed, now=NOW)
    assert await fetch_rows(engine, "SELECT check_number, value FROM check_answers") == before
    ((stored,),) = await fetch_rows(engine, "SELECT values FROM responses ORDER BY seq DESC LIMIT 1")
    assert stored == [1.0] * 4
    assert told.seq == last.seq
    async with engine.connect() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM decisions WHERE kind = 'withdraw'"))).scalar() == 2
