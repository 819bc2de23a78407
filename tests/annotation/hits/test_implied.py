"""Pairs that an annotator's own answers imply, on real PostgreSQL: which are asked, and how the campaign ends."""

import asyncio
from typing import Any

import pytest

from app.annotation.hits import draw_context, submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import borrow_autocommit_driver, create_engine
from app.designs.answer import Answer
from app.inference.preferences.implied_pairs import Implications
from app.record.revisions import store_decision_and_return_number, switch_revision_if_it_misses_decisions
from app.selection.implied_pairs import mask_of_implied_pairs_asked_anyway
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)

ITEMS = 9
PAIRS = ITEMS * (ITEMS - 1) // 2
SKIPPING: dict[str, Any] = {"design": "pairwise", "judgments_per_item": 100, "implied_asked_percent": 10}


async def create_pairwise_campaign(engine, *, items=ITEMS, percent=10, **more):
    return await create_running_campaign(engine, items=items, **(SKIPPING | {"implied_asked_percent": percent} | more))


async def judge(engine, assignment, cache, hits=1000):
    """Prefer the item of the higher number, until nothing is left; the reason."""
    for _ in range(hits):
        work = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if work.hit is None:
            return work.reason
        await submit_scores(engine, assignment, work.hit, scores=places(work.hit.items))
    return None


def places(items):
    first, second = items
    return [1.0, 2.0] if first > second else [2.0, 1.0]


async def answers_of(engine, campaign):
    return await fetch_rows(
        engine,
        "SELECT annotator_id, items, values FROM responses WHERE campaign_id = :campaign ORDER BY seq",
        campaign=campaign.id,
    )


async def test_what_an_annotators_answers_imply_is_not_asked_but_for_the_set_share(engine):
    campaign = await create_pairwise_campaign(engine)
    me = await create_annotator(engine, campaign)
    assert await judge(engine, me, PosteriorCache()) == "seen_all"
    known = Implications()
    for who, (first, second), given in await answers_of(engine, campaign):
        anyway = mask_of_implied_pairs_asked_anyway(campaign.seed, who, first, [second], 10).item()
        assert (
            known.add_outcome_and_return_implied_or_none(first, second, 1 if given[0] < given[1] else -1) is None
            or anyway
        )
    assert known.tally.answered + known.tally.not_asked == PAIRS
    assert known.tally.not_asked > PAIRS // 3
    assert known.tally.answered_otherwise == 0


async def test_with_a_share_of_100_every_pair_is_asked_once(engine):
    campaign = await create_pairwise_campaign(engine, percent=100)
    assert await judge(engine, await create_annotator(engine, campaign), PosteriorCache()) == "seen_all"
    pairs = [tuple(sorted(pair)) for _, pair, _ in await answers_of(engine, campaign)]
    assert len(pairs) == len(set(pairs)) == PAIRS


async def test_what_one_annotators_answers_imply_is_asked_of_another(engine):
    campaign, cache = await create_pairwise_campaign(engine, items=3, percent=1), PosteriorCache()
    counts = []
    for name in ("ann", "bob"):
        assert await judge(engine, await create_annotator(engine, campaign, name), cache) == "seen_all"
        counts.append(len(await answers_of(engine, campaign)))
    assert counts[0] >= 2
    assert counts[1] - counts[0] >= 2


async def test_the_cap_counts_answers_and_ends_the_campaign(engine):
    campaign = await create_pairwise_campaign(engine, items=6, judgments_per_item=2)
    cache, reasons = PosteriorCache(), set()
    for name in "abcd":
        reasons.add(await judge(engine, await create_annotator(engine, campaign, name), cache))
    assert "all_done" in reasons
    judgments = await fetch_rows(
        engine, "SELECT judgments FROM current_posteriors WHERE campaign_id = :c", c=campaign.id
    )
    assert max(judgments)[0] == 2


async def test_every_process_that_serves_asks_the_same_annotator_what_is_left(engine):
    campaign = await create_pairwise_campaign(engine)
    me, caches = await create_annotator(engine, campaign), [PosteriorCache(), PosteriorCache()]
    reasons = [await judge(engine, me, caches[turn % 2], hits=1) for turn in range(PAIRS)]
    assert await judge(engine, me, PosteriorCache()) == "seen_all"
    assert reasons[-1] == "seen_all"
    pairs = [tuple(sorted(pair)) for _, pair, _ in await answers_of(engine, campaign)]
    assert len(pairs) == len(set(pairs)) < PAIRS


async def test_many_at_once_pass_no_cap_and_end(database_url):
    engine = create_engine(database_url, pool_size=8)
    campaign = await create_pairwise_campaign(engine, judgments_per_item=4)

    async def until_done(name):
        me, cache = await create_annotator(engine, campaign, name), PosteriorCache()
        while True:
            reason = await judge(engine, me, cache)
            if reason != "wait":
                return reason
            await asyncio.sleep(0.01)

    reasons = await asyncio.gather(*(until_done(f"ann {k}") for k in range(8)))
    most = await fetch_value(
        engine, "SELECT max(judgments) FROM current_posteriors WHERE campaign_id = :c", c=campaign.id
    )
    assert set(reasons) <= {"all_done", "seen_all"}
    assert most <= 4
    await engine.dispose()


async def test_an_answer_that_was_withdrawn_implies_nothing_any_more(engine):
    campaign, cache = await create_pairwise_campaign(engine, items=3, percent=1), PosteriorCache()
    me = await create_annotator(engine, campaign)
    await judge(engine, me, cache)
    before = await answers_of(engine, campaign)
    first = await fetch_value(engine, "SELECT min(seq) FROM responses")
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "withdraw", "response", first, reason="a slip", actor="ada", now=NOW
        )
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    await judge(engine, me, cache)
    again = (await answers_of(engine, campaign))[len(before) :]
    assert tuple(sorted(before[0][1])) in {tuple(sorted(pair)) for _, pair, _ in again}


async def test_without_the_option_nobodys_answers_are_read(engine):
    campaign, cache = await create_pairwise_campaign(engine, percent=None), PosteriorCache()
    await judge(engine, await create_annotator(engine, campaign), cache, hits=3)
    assert cache.indexes[campaign.id].own_answers == {}


@pytest.mark.parametrize("items", [2, 3])
async def test_who_has_answered_all_pairs_is_not_asked_to_wait(engine, items):
    campaign = await create_pairwise_campaign(engine, items=items, percent=100)
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    assert await judge(engine, me, cache) == "seen_all"
    assert (await find_or_lease_next_hit(engine, me, cache=cache)).reason == "seen_all"
    assert (
        len((await try_to_lease_hit(engine, await create_annotator(engine, campaign, "bob"), cache=cache)).items) == 2
    )


async def test_implied_pairs_and_items_that_were_not_judged_leave_an_annotator_nothing_to_wait_for(engine):
    """Items 0 and 1 are compared, and item 2 cannot be judged: no pair is left, though all three want judgments."""
    campaign = await create_pairwise_campaign(engine, items=3, percent=100, cannot_be_judged=True, unjudged_people=9)
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    while (hit := (await find_or_lease_next_hit(engine, me, cache=cache)).hit) is not None:
        unjudged = dict.fromkeys({2} & {*hit.items}, campaign.unjudged_reasons[0])
        values = {} if unjudged else dict(zip(hit.items, places(hit.items), strict=True))
        async with borrow_autocommit_driver(engine) as connection:
            await submission.store_answer_of_hit_and_return_receipt(
                connection, me, hit.id, Answer(values, unjudged=unjudged), now=NOW
            )
    assert await fetch_value(engine, "SELECT count(*) FROM responses") <= 3
    assert (await find_or_lease_next_hit(engine, me, cache=cache)).reason == "seen_all"


async def test_an_own_answer_that_was_missed_is_read_again_with_all_others(engine):
    """Of two answers at once, the one with the higher number may be stored first."""
    campaign = await create_pairwise_campaign(engine)
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    await judge(engine, me, cache, hits=3)
    hit = await try_to_lease_hit(engine, me, cache=cache)
    (annotator, history), *others = cache.indexes[campaign.id].own_answers.items()
    assert (history.answer_count, others) == (3, [])
    history.last_seq += 1000  # as if such an answer had come first
    await submit_scores(engine, me, hit, scores=places(hit.items))
    await try_to_lease_hit(engine, me, cache=cache)
    read = cache.indexes[campaign.id].own_answers[annotator]
    assert (read.answer_count, read.last_seq) == (4, await fetch_value(engine, "SELECT max(seq) FROM responses"))


async def test_many_own_answers_are_read_in_a_thread_and_imply_the_same(engine, monkeypatch):
    campaign = await create_pairwise_campaign(engine, percent=1, items=5)
    me = await create_annotator(engine, campaign)
    await judge(engine, me, PosteriorCache(), hits=3)
    monkeypatch.setattr(draw_context, "MAX_ANSWERS_ON_EVENT_LOOP", 0)
    assert await judge(engine, me, PosteriorCache()) == "seen_all"
    known = Implications()
    for who, (first, second), given in await answers_of(engine, campaign):
        anyway = mask_of_implied_pairs_asked_anyway(campaign.seed, who, first, [second], 1).item()
        implied = known.add_outcome_and_return_implied_or_none(first, second, 1 if given[0] < given[1] else -1)
        assert implied is None or anyway
