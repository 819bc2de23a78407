"""Items that annotators say they cannot judge: stored with a reason, never a score, and asked no more in the end."""

import math

import pytest

from app.annotation.hits import lease_functions_sql, leases, submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import summaries
from app.database.bulk import open_snapshot
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, Form
from app.errors import Invalid
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    try_to_lease_hit,
)
from tests.laws import SCORE_LAWS

BROKEN = "It is broken or incomplete"


async def asking(engine, **settings):
    """A campaign that offers it, of HITs of two items."""
    chosen = {"items_per_hit": 2, "items": 6, "judgments_per_item": 3, "cannot_be_judged": True}
    return await create_running_campaign(engine, **chosen | settings)


async def answer(engine, assignment, hit, unjudged, reason=BROKEN):
    """An answer that cannot judge these items, and gives the others places or points in their order."""
    others = [item for item in hit.items if item not in unjudged]
    given = Answer({item: float(1 + k) for k, item in enumerate(others)}, unjudged=dict.fromkeys(unjudged, reason))
    async with borrow_autocommit_driver(engine) as connection:
        return await submission.store_answer_of_hit_and_return_receipt(connection, assignment, hit.id, given, now=NOW)


async def is_clean(engine, campaign) -> bool:
    async with open_snapshot(engine) as connection:
        return (
            await replay.verify_by_replay_or_refuse(
                connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
            )
        ).has_no_mismatches


async def people(engine) -> dict[int, int]:
    return dict(await fetch_rows(engine, "SELECT number, unjudged FROM current_posteriors WHERE unjudged > 0"))


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_it_is_stored_as_no_value_with_its_reason_and_changes_nothing_of_the_item(engine, law):
    campaign = await asking(engine, update_law=law)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    first, second = hit.items
    before = dict(await fetch_rows(engine, "SELECT number, state FROM current_posteriors"))
    await answer(engine, me, hit, [first])
    ((items, given, extra),) = await fetch_rows(engine, "SELECT items, values, extra FROM responses")
    assert items == hit.items
    assert math.isnan(given[0])
    assert given[1] == 1.0
    assert extra == {"cannot_be_judged": {str(first): BROKEN}}
    judgments = dict(await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors"))
    assert (judgments[first], judgments[second]) == (0, 1)
    after = dict(await fetch_rows(engine, "SELECT number, state FROM current_posteriors"))
    assert after[first] == before[first]
    assert await people(engine) == {first: 1}
    assert await is_clean(engine, campaign)


async def test_an_answer_that_judges_nothing_is_an_answer(engine):
    campaign = await asking(engine, update_law="easl-aware")
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await answer(engine, me, hit, hit.items)
    assert (await find_or_lease_next_hit(engine, me)).assignment.hits_answered == 1
    assert await fetch_value(engine, "SELECT max(judgments) FROM current_posteriors") == 0
    assert await people(engine) == dict.fromkeys(hit.items, 1)
    assert await is_clean(engine, campaign)


async def test_an_excluded_annotators_word_no_longer_counts_and_the_item_is_asked_again(engine):
    campaign = await asking(engine, items=2, unjudged_people=2)
    them = [await create_annotator(engine, campaign, f"ann {k}") for k in range(3)]
    for me in them[:2]:
        await answer(engine, me, await try_to_lease_hit(engine, me), [0, 1])
    assert (await find_or_lease_next_hit(engine, them[2])).reason == "all_done"
    await execute_sql(engine, "UPDATE campaigns SET status = 'running'")
    first = await fetch_value(engine, "SELECT min(annotator_id) FROM responses")
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", first, reason="", actor="ada", now=NOW
        )
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await people(engine) == {0: 1, 1: 1}
    assert await is_clean(engine, campaign)
    hit = await try_to_lease_hit(engine, them[2])
    await answer(engine, them[2], hit, [0])
    assert await people(engine) == {0: 2, 1: 1}
    assert await is_clean(engine, campaign)


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
@pytest.mark.parametrize("repeat_items", [True, False])
async def test_an_item_leaves_the_pool_and_the_campaign_ends_without_it(engine, selection, repeat_items):
    campaign = await asking(engine, selection=selection, repeat_items=repeat_items, judgments_per_item=2)
    cache, asked = PosteriorCache(), []
    for k in range(12):
        me = await create_annotator(engine, campaign, f"ann {k}")
        while (work := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
            asked += [k] * (0 in work.hit.items)
            await answer(engine, me, work.hit, [0] if 0 in work.hit.items else [])
    assert len(asked) == len({*asked}) == 2  # nobody twice
    assert await people(engine) == {0: 2}
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    judgments = await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors ORDER BY number")
    assert judgments == [(0, 0)] + [(number, 2) for number in range(1, 6)]
    assert await is_clean(engine, campaign)


async def test_who_can_judge_nothing_is_asked_about_each_item_once(engine):
    campaign = await asking(engine, unjudged_people=5)
    me, seen = await create_annotator(engine, campaign), []
    while (work := await find_or_lease_next_hit(engine, me)).hit is not None:
        seen += work.hit.items
        await answer(engine, me, work.hit, work.hit.items)
    assert sorted(seen) == list(range(6))
    assert work.reason == "seen_all"
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "running"


async def test_one_person_counts_once_however_often_they_say_so(engine):
    campaign = await asking(engine, items=2, unjudged_people=2)
    hits = []
    for visit in ("first", "second"):
        me = await create_annotator(engine, campaign, assignment=visit, platform="mturk")
        hits.append((me, await try_to_lease_hit(engine, me)))
    for me, hit in hits:
        await answer(engine, me, hit, [0])
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2
    assert await people(engine) == {0: 1}
    assert await is_clean(engine, campaign)


async def test_who_had_an_item_before_it_left_the_pool_can_still_judge_it(engine):
    campaign = await asking(engine, items=2, judgments_per_item=3)
    people_ = [await create_annotator(engine, campaign, f"ann {k}") for k in range(3)]
    hits = [await try_to_lease_hit(engine, me) for me in people_]
    for me, hit in zip(people_[:2], hits, strict=False):
        await answer(engine, me, hit, [0])
    await answer(engine, people_[2], hits[2], [])
    assert await fetch_value(engine, "SELECT judgments FROM current_posteriors WHERE number = 0") == 1
    assert await is_clean(engine, campaign)


async def test_a_hit_that_ran_out_is_not_held_again_for_an_item_that_left_the_pool_meanwhile(engine):
    campaign = await asking(engine, items=4, judgments_per_item=9)
    people_ = [await create_annotator(engine, campaign, f"ann {k}") for k in range(4)]
    hits = [await try_to_lease_hit(engine, me) for me in people_]
    late = next(k for k, hit in enumerate(hits) if 0 in hit.items)
    await execute_sql(engine, "UPDATE posteriors SET unjudged = 2 WHERE subject = 0")
    assert (await try_to_lease_hit(engine, people_[late])).id == hits[late].id
    await expire_leases(engine, hits[late])
    assert 0 not in (await try_to_lease_hit(engine, people_[late])).items


async def test_a_late_answer_about_an_item_that_left_the_pool_is_taken(engine):
    campaign = await asking(engine, items=2)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await execute_sql(engine, "UPDATE posteriors SET unjudged = 2 WHERE subject = 0")
    await expire_leases(engine)
    await answer(engine, me, hit, [])
    assert await fetch_value(engine, "SELECT min(judgments) FROM current_posteriors") == 1


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
async def test_an_item_that_leaves_the_pool_between_draw_and_lease_is_not_asked_about(engine, selection, monkeypatch):
    campaign = await asking(engine, items=3, judgments_per_item=9, selection=selection)
    me = await create_annotator(engine, campaign)
    drawn: list[int] = []

    async def leaving(connection, campaign_id, proposed, **more):
        leader = proposed[0].proposal.leader
        if not drawn:
            await execute_sql(engine, "UPDATE posteriors SET unjudged = 2 WHERE subject = :item", item=leader)
        drawn.append(leader)
        return await lease_functions_sql.try_to_lease_hits_and_return_them_by_place(
            connection, campaign_id, proposed, **more
        )

    monkeypatch.setattr(leases, "try_to_lease_hits_and_return_them_by_place", leaving)
    work = await find_or_lease_next_hit(engine, me)
    assert work.hit is None or drawn[0] not in work.hit.items
    assert await fetch_value(engine, "SELECT count(*) FROM hits WHERE :item = ANY(items)", item=drawn[0]) == 0


async def test_judgments_beyond_those_wanted_of_an_item_that_left_the_pool_are_none_to_take_away(engine):
    campaign = await asking(engine, items=2, judgments_per_item=3)
    await execute_sql(engine, "UPDATE posteriors SET unjudged = 2, judgments = 5 WHERE subject = 0")
    async with engine.begin() as connection:
        assert (await summaries.load_campaign_with_progress_or_refuse(connection, campaign.slug)).judgments_wanted == 6


@pytest.mark.parametrize("design", ["pairwise", "baseline"])
async def test_of_a_pair_of_which_one_cannot_be_judged_nothing_is_said(engine, design):
    settings = {"design_settings": {"baseline": "v5"}} if design == "baseline" else {}
    campaign = await asking(engine, design=design, **settings)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await answer(engine, me, hit, [hit.items[0]])
    assert await fetch_value(engine, "SELECT values::text FROM responses") == "{NaN,NaN}"
    assert await fetch_value(engine, "SELECT max(judgments) FROM current_posteriors") == 0
    assert await people(engine) == {hit.items[0]: 1}
    assert await is_clean(engine, campaign)


@pytest.mark.parametrize("implied", [None, 10])
async def test_the_other_of_a_pair_is_asked_about_again_beside_others(engine, implied):
    campaign = await asking(engine, design="pairwise", items=3, judgments_per_item=9, implied_asked_percent=implied)
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    first = await try_to_lease_hit(engine, me, cache=cache)
    broken, innocent = first.items
    await answer(engine, me, first, [broken])
    (third,) = {0, 1, 2} - {*first.items}
    hit = await try_to_lease_hit(engine, me, cache=cache)
    assert {*hit.items} == {innocent, third}


async def test_two_that_cannot_be_compared_imply_nothing_about_others(engine):
    campaign = await asking(engine, design="pairwise", items=3, judgments_per_item=9, implied_asked_percent=1)
    me, cache, pairs = await create_annotator(engine, campaign), PosteriorCache(), []
    while (work := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
        pairs.append({*work.hit.items})
        await answer(engine, me, work.hit, work.hit.items[:1] if len(pairs) == 1 else [])
    assert len(pairs) == 2
    assert pairs[0] != pairs[1]
    known = cache.indexes[campaign.id].own_answers[1].implied_pairs.implications
    assert known.tally.answered == 1


@pytest.mark.parametrize("repeat_items", [True, False])
async def test_a_baseline_stays_in_every_hit_and_nobody_is_asked_for_ever(engine, repeat_items):
    settings = {"design": "baseline", "design_settings": {"baseline": "v5"}, "repeat_items": repeat_items}
    campaign = await asking(engine, **settings)
    for k in range(3):
        me, hits = await create_annotator(engine, campaign, f"ann {k}"), 0
        while (work := await find_or_lease_next_hit(engine, me)).hit is not None:
            hits += 1
            assert 5 in work.hit.items
            await answer(engine, me, work.hit, [5])
        assert (hits, work.reason) == (5, "seen_all")
    assert await people(engine) == {5: 3}
    assert await is_clean(engine, campaign)


async def test_of_a_ranking_the_others_keep_their_order(engine):
    campaign = await asking(engine, design="ranking", items_per_hit=4)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    a, b, c, d = hit.items
    form = {f"score-{a}": "4", f"score-{b}": "1", f"score-{c}": "3", f"score-{d}": "2", f"unjudged-{b}": BROKEN}
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, Form(form, "form"), now=NOW)
    assert await fetch_value(engine, "SELECT values::text FROM responses") == "{3,NaN,2,1}"
    assert await is_clean(engine, campaign)


async def test_of_best_and_worst_the_others_have_theirs(engine):
    campaign = await asking(engine, design="best_worst", items_per_hit=4)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    a, b, c, _ = hit.items
    async with borrow_autocommit_driver(engine) as connection:
        for best, refused in ((str(b), True), (str(a), False)):
            form = Form({"best": best, "worst": str(c), f"unjudged-{b}": BROKEN}, "form")
            if refused:
                with pytest.raises(Invalid) as problem:
                    await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, form, now=NOW)
                assert problem.value.code == "answer_impossible"
            else:
                await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, form, now=NOW)
    assert await fetch_value(engine, "SELECT values::text FROM responses") == "{1,NaN,3,2}"
    assert await is_clean(engine, campaign)


async def test_what_the_campaign_does_not_offer_is_refused_and_nothing_stored(engine, subtests):
    for settings, reason, code in (
        ({"cannot_be_judged": False}, BROKEN, "invalid"),
        ({}, "", "reason_missing"),
        ({}, "I am tired", "reason_unknown"),
        ({"unjudged_reasons": []}, "I am tired", "reason_unknown"),
    ):
        with subtests.test(settings=settings, reason=reason, code=code):
            campaign = await asking(engine, **settings)
            me = await create_annotator(engine, campaign)
            hit = await try_to_lease_hit(engine, me)
            with pytest.raises(Invalid) as refused:
                await answer(engine, me, hit, [hit.items[0]], reason)
            assert refused.value.code == code
            assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0
            assert (await try_to_lease_hit(engine, me)).id == hit.id


@pytest.mark.parametrize("reason", ["", "yes"])
async def test_without_a_list_of_reasons_none_is_asked_for(engine, reason):
    campaign = await asking(engine, unjudged_reasons=[])
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await answer(engine, me, hit, [hit.items[0]], reason)
    assert await fetch_value(engine, "SELECT extra FROM responses") == {"cannot_be_judged": {str(hit.items[0]): ""}}


async def test_the_answer_that_takes_the_last_items_out_of_the_pool_finishes_the_campaign(engine):
    campaign = await asking(engine, items=2, unjudged_people=2)
    for name, status in (("ann", "running"), ("bob", "finished")):
        me = await create_annotator(engine, campaign, name)
        hit = await try_to_lease_hit(engine, me)
        await answer(engine, me, hit, hit.items)
        assert await fetch_value(engine, "SELECT status FROM campaigns") == status
