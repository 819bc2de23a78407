"""An annotator changes what they answered last, until they have answered the next HIT."""

import asyncio
import re

import pytest
from sqlalchemy import text

from app.annotation.hits import undo
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, Form
from app.errors import Conflict, NotFound
from app.quality import decisions
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    find_or_lease_next_hit,
    form_fields,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)


@pytest.fixture
def engine(app):
    return app.state.database


async def by_link(client, campaign):
    return (await client.post(f"/link/{campaign.link_key}")).headers["location"]


async def rows(engine, statement, **values):
    async with engine.connect() as connection:
        return (await connection.execute(text(statement), values)).all()


async def change(engine, statement):
    async with engine.begin() as connection:
        await connection.execute(text(statement))


async def replaced(engine, someone, hit, answer, scores):
    sent = Answer(dict(zip(hit.items, scores, strict=True)))
    async with borrow_autocommit_driver(engine) as connection:
        return await undo.replace_answer_and_return_receipt_or_refuse(
            connection, someone, hit.id, answer, sent, now=NOW
        )


async def scores_of(engine, campaign):
    found = await rows(
        engine,
        "SELECT number, score, judgments FROM current_posteriors WHERE campaign_id = :id ORDER BY 1",
        id=campaign.id,
    )
    return [tuple(row) for row in found]


async def verified(engine, campaign):
    async with engine.connect() as connection:
        now = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return (await replay.verify_by_replay_or_refuse(connection, now)).has_no_mismatches


def again(html):
    """The fields of the form that is shown, as they are filled in."""
    fields = form_fields(html) | dict(re.findall(r'name="(score-\d+)".*?value="(\d*)"', html, re.DOTALL))
    return fields | dict(re.findall(r'name="(replaces)" value="(\d+)"', html))


async def test_the_page_shows_the_last_hit_again_as_it_was_filled_in(client, engine):
    campaign = await create_running_campaign(engine)
    address = await by_link(client, campaign)
    first = form_fields((await client.get(address)).text)
    assert "Change my last answers" not in (await client.get(address)).text
    following = (await client.post(address, data=first)).text
    assert "Change my last answers" in following
    page = (await client.post(address, data={"token": first["token"], "undo": "1"})).text
    shown = again(page)
    assert {name: shown[name] for name in first if name != "token"} == {k: v for k, v in first.items() if k != "token"}
    assert "These are the answers that you gave last." in page
    assert "Submit the change" in page


async def test_both_answers_stay_and_the_newer_one_counts(client, engine):
    campaign = await create_running_campaign(engine)
    address = await by_link(client, campaign)
    first = form_fields((await client.get(address)).text)
    following = (await client.post(address, data=first)).text
    page = (await client.post(address, data={"token": first["token"], "undo": "1"})).text
    scores = [name for name in first if name.startswith("score-")]
    reply = (await client.post(address, data=again(page) | dict.fromkeys(scores, "90"))).text
    assert form_fields(reply)["hit"] == form_fields(following)["hit"]  # the HIT that they hold stays theirs
    assert "1 task done" in reply
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await verified(engine, campaign)
    assert len(await rows(engine, "SELECT 1 FROM responses WHERE campaign_id = :id", id=campaign.id)) == 2
    judged = [score for _, score, judgments in await scores_of(engine, campaign) if judgments == 1]
    assert len(judged) == 5
    assert len(set(judged)) == 1


async def test_until_the_decision_is_acted_on_the_older_answer_counts_and_the_record_is_right(engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    before = await scores_of(engine, campaign)
    await replaced(engine, ann, hit, told.seq, [90.0] * 5)
    assert await scores_of(engine, campaign) == before
    assert await verified(engine, campaign)


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_the_posteriors_are_those_of_a_campaign_that_got_the_newer_answer_alone(engine, law):
    scores = {}
    for way in ("changed", "plain"):
        campaign = await create_running_campaign(engine, items=5, update_law=law)
        for name in ("ann", "bob"):
            someone = await create_annotator(engine, campaign, name)
            await try_to_lease_hit(engine, someone)
            await change(engine, "UPDATE hits SET items = '{0,1,2,3,4}' WHERE closed_at IS NULL")
            hit = await try_to_lease_hit(engine, someone)
            meant = [float(17 * item + len(name + name[0])) for item in range(5)]
            if (way, name) == ("changed", "ann"):
                told = await submit_scores(engine, someone, hit, scores=[3.0, 80.0, 4.0, 1.0, 50.0])
                await replaced(engine, someone, hit, told.seq, meant)
            else:
                await submit_scores(engine, someone, hit, scores=meant)
        await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
        scores[way] = await scores_of(engine, campaign)
    assert scores["changed"] == scores["plain"]


async def test_sent_twice_it_is_stored_once(engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    receipts = await asyncio.gather(*(replaced(engine, ann, hit, told.seq, [90.0] * 5) for _ in range(4)))
    assert len({receipt.seq for receipt in receipts}) == 1
    assert sorted(receipt.repeated for receipt in receipts) == [False, True, True, True]
    assert len(await rows(engine, "SELECT 1 FROM decisions WHERE kind = 'withdraw'")) == 1


async def test_a_change_can_be_changed(engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    for score in (20.0, 70.0):
        told = await replaced(engine, ann, hit, told.seq, [score] * 5)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await verified(engine, campaign)
    counting = [row for row in await scores_of(engine, campaign) if row[2]]
    assert [row[2] for row in counting] == [1] * 5
    assert all(row[1] > 0.5 for row in counting)


async def final(engine, someone, hit, seq):
    with pytest.raises(Conflict) as refusal:
        await replaced(engine, someone, hit, seq, [90.0] * 5)
    return refusal.value.code == "answer_final"


async def test_after_the_next_answer_it_is_too_late(engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    first = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, first)
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann))
    assert await final(engine, ann, first, told.seq)
    assert len(await rows(engine, "SELECT 1 FROM responses")) == 2


@pytest.mark.parametrize(
    "so_that",
    [
        "UPDATE campaigns SET undo = false",
        "UPDATE campaigns SET status = 'finished'",
        "UPDATE annotators SET barred = 'held'",
        "UPDATE annotators SET platform = 'mturk'",
    ],
)
async def test_where_it_is_not_offered_it_is_refused_and_the_answer_stays(engine, so_that):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    await change(engine, so_that)
    assert await final(engine, ann, hit, told.seq)
    assert len(await rows(engine, "SELECT 1 FROM responses")) == 1


async def test_an_answer_that_a_researcher_left_out_is_not_brought_back(engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    async with engine.begin() as connection:
        await decisions.exclude_answer(connection, campaign, told.seq, reason="Nonsense.", now=NOW)
    assert await final(engine, ann, hit, told.seq)


async def test_an_answer_that_is_left_out_in_that_very_moment_is_not_brought_back(engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    async with engine.begin() as connection:
        await decisions.exclude_answer(connection, campaign, told.seq, reason="Seen.", now=NOW)
        changing = asyncio.create_task(replaced(engine, ann, hit, told.seq, [90.0] * 5))
        await wait_until(engine, requests_are_waiting_sql(1))
    with pytest.raises(Conflict) as refused:
        await changing
    assert refused.value.code == "answer_final"
    assert len(await rows(engine, "SELECT 1 FROM responses WHERE campaign_id = :id", id=campaign.id)) == 1


async def test_nobody_changes_the_answers_of_others(engine):
    campaign = await create_running_campaign(engine)
    ann, bob = [await create_annotator(engine, campaign, name) for name in ("ann", "bob")]
    hit = await try_to_lease_hit(engine, ann)
    told = await submit_scores(engine, ann, hit)
    with pytest.raises(NotFound, match="not yours"):
        await replaced(engine, bob, hit, told.seq, [90.0] * 5)


async def test_a_limit_is_neither_passed_nor_lost(engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=2)
    ann = await create_annotator(engine, campaign)
    for _ in range(2):
        hit = await try_to_lease_hit(engine, ann)
        told = await submit_scores(engine, ann, hit)
        await replaced(engine, ann, hit, told.seq, [90.0] * 5)
    assert (await find_or_lease_next_hit(engine, ann)).reason == "limit"


async def test_a_campaign_whose_items_have_all_judgments_still_takes_a_change_before_it_is_finished(engine):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=1)
    ann, bob = [await create_annotator(engine, campaign, name) for name in ("ann", "bob")]
    hit, others = await try_to_lease_hit(engine, ann), await try_to_lease_hit(engine, bob)
    told = await submit_scores(engine, ann, hit)
    await replaced(engine, ann, hit, told.seq, [90.0] * 5)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert [row[2] for row in await scores_of(engine, campaign)].count(1) == 5
    await submit_scores(engine, bob, others)
    ((status,),) = await rows(engine, "SELECT status FROM campaigns")
    assert status == "finished"
    assert await verified(engine, campaign)


async def test_a_refused_change_is_shown_again_with_what_was_entered(client, engine):
    campaign = await create_running_campaign(engine)
    address = await by_link(client, campaign)
    first = form_fields((await client.get(address)).text)
    await client.post(address, data=first)
    page = again((await client.post(address, data={"token": first["token"], "undo": "1"})).text)
    name = next(name for name in page if name.startswith("score-"))
    reply = (await client.post(address, data=page | {name: "101"})).text
    assert "What you entered is kept." in reply
    assert again(reply) | {"token": ""} == page | {"token": "", name: "101"}  # a token has the second of its page
    assert len(await rows(engine, "SELECT 1 FROM responses")) == 1


async def test_a_form_of_another_campaigns_answer_changes_nothing(engine):
    campaign, other = await create_running_campaign(engine), await create_running_campaign(engine, name="Other")
    ann, bob = await create_annotator(engine, campaign), await create_annotator(engine, other)
    hit, theirs = await try_to_lease_hit(engine, ann), await try_to_lease_hit(engine, bob)
    await submit_scores(engine, ann, hit)
    told = await submit_scores(engine, bob, theirs)
    sent = Form({f"score-{item}": "3" for item in hit.items}, source="form")
    async with borrow_autocommit_driver(engine) as connection:
        with pytest.raises(Conflict):
            await undo.replace_answer_and_return_receipt_or_refuse(connection, ann, hit.id, told.seq, sent, now=NOW)
        with pytest.raises(NotFound):
            await undo.replace_answer_and_return_receipt_or_refuse(connection, ann, theirs.id, told.seq, sent, now=NOW)


async def test_an_answer_is_changed_twenty_times_and_then_it_stays_as_it_was_given_last(client, engine):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, ann)
    told = [(await submit_scores(engine, ann, hit)).seq]
    for k in range(20):
        told.append((await replaced(engine, ann, hit, told[-1], [float(k)] * 5)).seq)
    with pytest.raises(Conflict, match="many times") as refusal:
        await replaced(engine, ann, hit, told[-1], [99.0] * 5)
    assert refusal.value.code == "answer_changed_often"
    assert (await replaced(engine, ann, hit, told[-2], [19.0] * 5)).repeated  # its reply was lost, and it is sent again
    with pytest.raises(Conflict, match="many times"):
        async with borrow_autocommit_driver(engine) as connection:
            await undo.load_last_answer_for_change_or_refuse(connection, ann, now=NOW)
    assert len(await rows(engine, "SELECT 1 FROM responses")) == 21
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await verified(engine, campaign)
    after = await try_to_lease_hit(engine, ann)
    seq = (await submit_scores(engine, ann, after)).seq
    assert not (await replaced(engine, ann, after, seq, [1.0] * 5)).repeated  # each answer has its own


async def test_a_page_that_changes_an_answer_too_often_goes_on_kindly(client, engine):
    campaign = await create_running_campaign(engine)
    address = await by_link(client, campaign)
    first = form_fields((await client.get(address)).text)
    following = (await client.post(address, data=first)).text
    insert = """
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at, replaces)
        SELECT campaign_id, hit_id, annotator_id, source, items, values, received_at, seq + n
        FROM responses, generate_series(0, 19) AS n ORDER BY n
    """
    await change(engine, insert)
    page = (await client.post(address, data={"token": first["token"], "undo": "1"})).text
    assert "You have changed these answers many times" in page
    assert form_fields(page)["hit"] == form_fields(following)["hit"]
