"""Several criteria: an answer by each is stored once, and changes the posteriors of each as if it were asked alone."""

import asyncio
import math

import numpy as np
import pytest

from app.annotation.hits import submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.bulk import open_snapshot
from app.database.session import borrow_autocommit_driver, create_engine
from app.designs.answer import Answer, AnswerByCriterion, Form, Touch
from app.designs.registry import DESIGNS
from app.errors import Invalid
from app.inference.online.laws import ONLINE_LAWS
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.campaign_law import convert_response_to_hit_of_law as read_by_law
from app.record.responses import Response
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import (
    NAMES,
    answer_all_hits,
    create_campaign_with_criteria,
    criteria_settings,
    settings_for_law,
    simulate_answers,
    submit_by_criterion,
)
from tests.annotation.hits.systems import outputs_table
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.inference.beliefs import posteriors_after

BROKEN = "It is broken or incomplete"


async def verified(engine, campaign) -> replay.Verification:
    async with open_snapshot(engine) as connection:
        return await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )


async def states_of(engine, criterion):
    statement = "SELECT state FROM current_posteriors WHERE criterion = :criterion ORDER BY number"
    return [state for (state,) in await fetch_rows(engine, statement, criterion=criterion)]


async def responses(engine):
    return await fetch_rows(engine, "SELECT seq, annotator_id, items, values, extra FROM responses ORDER BY seq")


@pytest.mark.parametrize("count", [2, 3])
async def test_an_answer_is_one_row_with_its_values_by_one_criterion_after_another(engine, count):
    campaign = await create_campaign_with_criteria(engine, count)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    said = simulate_answers(campaign, hit.items, np.random.default_rng(3))
    first = await submit_by_criterion(engine, me, hit, said)
    again = await submit_by_criterion(engine, me, hit, said)
    assert (again.seq, again.repeated) == (first.seq, True)
    ((_, who, items, stored, extra),) = await responses(engine)
    assert items == hit.items
    assert stored == [value for name in NAMES[:count] for value in said[name]]
    assert extra == {"criteria_order": [one.name for one in campaign.shuffled_criteria_for_annotator(who)]}
    judged = "SELECT criterion, sum(judgments), count(*) FROM current_posteriors GROUP BY 1 ORDER BY 1"
    assert await fetch_rows(engine, judged) == [(k, len(items), 12) for k in range(count)]


@pytest.mark.parametrize("law", ONLINE_LAWS)
async def test_posteriors_by_each_criterion_are_those_of_a_campaign_that_asks_it_alone(engine, law):
    campaign = await create_campaign_with_criteria(engine, 3, **settings_for_law(law))
    await answer_all_hits(engine, campaign)
    rows = await responses(engine)
    assert len(rows) == 12
    for number, view in enumerate(campaign.criteria):
        one = view.law
        parts = [np.split(np.array(stored), 3)[number].tolist() for _, _, _, stored, _ in rows]
        hits = [
            read_by_law(view, Response.from_stored(seq, who, items, part))
            for (seq, who, items, _, _), part in zip(rows, parts, strict=True)
        ]
        assert await states_of(engine, number) == posteriors_after(one, 12, hits, view.law_parameters).T.tolist()
    found = await verified(engine, campaign)
    assert (found.has_no_mismatches, found.responses, found.items) == (True, 12, 12)


@pytest.mark.parametrize("design", DESIGNS)
async def test_every_design_asks_by_two_criteria(engine, design):
    own = {"baseline": {"baseline": "v0"}}.get(design, {})
    campaign = await create_campaign_with_criteria(engine, design=design, design_settings=own)
    await answer_all_hits(engine, campaign, people=2, hits=3)
    rows = await responses(engine)
    assert len(rows) == 6
    assert all(len(stored) == 2 * len(items) for _, _, items, stored, _ in rows)
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_verification_says_by_which_criterion_something_is_wrong(engine):
    campaign = await create_campaign_with_criteria(engine)
    await answer_all_hits(engine, campaign)
    await execute_sql(engine, "UPDATE posteriors SET score = 0.123 WHERE criterion = 1 AND subject = 4")
    found = await verified(engine, campaign)
    assert [(one.criterion, one.external_id, one.column) for one in found.mismatches] == [("fluency", "v4", "score")]


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_an_excluded_annotator_is_left_out_by_every_criterion(engine, law):
    campaign = await create_campaign_with_criteria(engine, update_law=law)
    await answer_all_hits(engine, campaign)
    before = [await states_of(engine, criterion) for criterion in (0, 1)]
    somebody = await fetch_value(engine, "SELECT min(annotator_id) FROM responses")
    for kind in ("exclude", "include"):
        async with engine.begin() as connection:
            await revisions.store_decision_and_return_number(
                connection, campaign, kind, "annotator", somebody, reason="", actor="ada", now=NOW
            )
        await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
        assert (await verified(engine, campaign)).has_no_mismatches
        after = [await states_of(engine, criterion) for criterion in (0, 1)]
        assert [one == other for one, other in zip(before, after, strict=True)] == [kind == "include"] * 2
    assert await fetch_rows(engine, "SELECT DISTINCT revision FROM posteriors") == [(2,)]


async def test_who_is_left_out_changes_no_posterior_by_any_criterion(engine):
    campaign = await create_campaign_with_criteria(engine)
    (me, *_) = await answer_all_hits(engine, campaign, hits=1)
    somebody = await fetch_value(engine, "SELECT annotator_id FROM assignments WHERE id = :assignment", **me.parameters)
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", somebody, reason="", actor="ada", now=NOW
        )
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    before = [await states_of(engine, criterion) for criterion in (0, 1)]
    hit = await try_to_lease_hit(engine, me)
    await submit_by_criterion(engine, me, hit, simulate_answers(campaign, hit.items, np.random.default_rng(1)))
    assert [await states_of(engine, criterion) for criterion in (0, 1)] == before
    assert (await verified(engine, campaign)).has_no_mismatches


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (lambda a: a["adequacy"], "criteria_missing"),
        (lambda a: AnswerByCriterion({"adequacy": a["adequacy"]}), "criteria_missing"),
        (lambda a: AnswerByCriterion(a | {"style": a["fluency"]}), "criterion_unknown"),
        (lambda a: AnswerByCriterion(a | {"fluency": Answer({})}), "scores_missing"),
        (lambda a: AnswerByCriterion(a | {"fluency": Answer({}, unjudged={0: BROKEN})}), "judged_in_part"),
    ],
)
async def test_an_answer_that_does_not_say_all_is_refused_and_nothing_is_stored(engine, sent, code):
    campaign = await create_campaign_with_criteria(engine, cannot_be_judged=True)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    answers = {name: Answer(dict.fromkeys(hit.items, 50.0)) for name in NAMES[:2]}
    async with borrow_autocommit_driver(engine) as connection:
        with pytest.raises(Invalid) as refused:
            await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, sent(answers), now=NOW)
    assert refused.value.code == code
    assert await responses(engine) == []
    assert (await verified(engine, campaign)).has_no_mismatches
    said = simulate_answers(campaign, hit.items, np.random.default_rng(3))
    assert not (await submit_by_criterion(engine, me, hit, said)).repeated


async def test_a_campaign_without_criteria_takes_none(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    with pytest.raises(Invalid) as refused:
        await submit_by_criterion(engine, me, hit, {"adequacy": [50.0] * len(hit.items)})
    assert refused.value.code == "criterion_unknown"


async def test_a_field_of_no_criterion_says_nothing_by_any(engine):
    campaign = await create_campaign_with_criteria(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    bare = Form({f"score-{item}": "40" for item in hit.items}, source="form")
    async with borrow_autocommit_driver(engine) as connection:
        with pytest.raises(Invalid) as refused:
            await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, bare, now=NOW)
    assert refused.value.code == "scores_missing"
    assert await responses(engine) == []


async def test_the_fields_of_a_form_are_read_by_their_criterion(engine):
    campaign = await create_campaign_with_criteria(engine, cannot_be_judged=True)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    fields = {f"c{k}-score-{item}": str(10 * item + k) for k in (0, 1) for item in hit.items}
    fields |= {f"c1-changes-{hit.items[1]}": "4", f"unjudged-{hit.items[0]}": BROKEN, "viewport": "390x844"}
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, Form(fields, "form"), now=NOW)
    ((_, _, items, stored, extra),) = await responses(engine)
    count = len(items)
    assert [math.isnan(number) for number in stored] == [k % count == 0 for k in range(2 * count)]
    assert stored[1:count] == [10.0 * item for item in items[1:]]
    assert stored[count + 1 :] == [10.0 * item + 1 for item in items[1:]]
    assert extra["cannot_be_judged"] == {str(items[0]): BROKEN}
    assert await fetch_value(engine, "SELECT telemetry FROM responses") == {
        "changes": [None] * (count + 1) + [4] + [None] * (count - 2),
        "viewport": "390x844",
    }
    assert await fetch_rows(engine, "SELECT number, unjudged FROM current_posteriors WHERE unjudged > 0") == [
        (items[0], 1)
    ]
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_an_item_that_nobody_can_judge_leaves_the_pool_for_all_criteria(engine):
    campaign = await create_campaign_with_criteria(
        engine, items=4, items_per_hit=2, judgments_per_item=2, cannot_be_judged=True
    )
    cache, rng, asked = PosteriorCache(), np.random.default_rng(2), 0
    for name in ("ann", "bob", "cem", "dan"):
        me = await create_annotator(engine, campaign, name)
        while (work := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
            hit = work.hit
            judged = [item for item in hit.items if item != 3]
            said = {
                view.name: Answer(
                    dict(zip(judged, rng.uniform(0, 100, len(judged)).tolist(), strict=True)),
                    unjudged={3: BROKEN} if 3 in hit.items else {},
                )
                for view in campaign.criteria
            }
            async with borrow_autocommit_driver(engine) as connection:
                await submission.store_answer_of_hit_and_return_receipt(
                    connection, me, hit.id, AnswerByCriterion(said), now=NOW
                )
            asked += 3 in hit.items
    assert asked == 2
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await fetch_rows(
        engine, "SELECT DISTINCT criterion, judgments FROM current_posteriors WHERE number < 3"
    ) == [
        (0, 2),
        (1, 2),
    ]
    assert (await verified(engine, campaign)).has_no_mismatches


async def answer_until_done(engine, campaign, me, cache, rng):
    while True:
        work = await find_or_lease_next_hit(engine, me, cache=cache)
        if work.reason == "wait":
            await asyncio.sleep(0.01)
        elif work.hit is None:
            return work.reason
        else:
            said = simulate_answers(campaign, work.hit.items, rng)
            await asyncio.gather(*(submit_by_criterion(engine, me, work.hit, said) for _ in range(2)))


@pytest.mark.parametrize(("selection", "law"), [("streaming", "ra"), ("iterations", "ra"), ("streaming", "easl-aware")])
async def test_many_who_share_items_give_every_wanted_judgment_once_by_each_criterion(database_url, selection, law):
    engine = create_engine(database_url, pool_size=12)
    try:
        campaign = await create_campaign_with_criteria(
            engine, 3, items=20, judgments_per_item=4, selection=selection, update_law=law
        )
        crowd = [await create_annotator(engine, campaign, f"a{k}") for k in range(12)]
        caches = [PosteriorCache(), PosteriorCache()]
        reasons = await asyncio.gather(
            *(
                answer_until_done(engine, campaign, me, caches[k % 2], np.random.default_rng(k))
                for k, me in enumerate(crowd)
            )
        )
        assert set(reasons) == {"all_done"}
        assert set(await fetch_rows(engine, "SELECT criterion, judgments FROM posteriors")) == {(0, 4), (1, 4), (2, 4)}
        assert await fetch_value(engine, "SELECT sum(cardinality(items)) FROM responses") == 20 * 4
        assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
        assert (await verified(engine, campaign)).has_no_mismatches
    finally:
        await engine.dispose()


async def test_answers_go_on_while_somebody_is_left_out(engine):
    campaign = await create_campaign_with_criteria(engine, 2, items=30)
    (me, *_) = await answer_all_hits(engine, campaign, hits=2)
    somebody = await fetch_value(engine, "SELECT annotator_id FROM assignments WHERE id = :assignment", **me.parameters)
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", somebody, reason="", actor="ada", now=NOW
        )
    other = await create_annotator(engine, campaign, "other")
    hit = await try_to_lease_hit(engine, other)
    said = simulate_answers(campaign, hit.items, np.random.default_rng(5))
    await asyncio.gather(
        revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW),
        submit_by_criterion(engine, other, hit, said),
    )
    assert (await verified(engine, campaign)).has_no_mismatches
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 7


@pytest.mark.parametrize(("asked_by", "criterion"), [("adequacy", 0), ("fluency", 1)])
async def test_what_is_asked_next_follows_the_criterion_that_decides(engine, asked_by, criterion):
    campaign = await create_campaign_with_criteria(engine, asked_by=asked_by)
    await answer_all_hits(engine, campaign)
    cache = PosteriorCache()
    async with borrow_autocommit_driver(engine) as connection:
        copy = await cache.load_current_index(connection, campaign)
    mine = "SELECT score, variance FROM current_posteriors WHERE criterion = :criterion ORDER BY number"
    known = await fetch_rows(engine, mine, criterion=criterion)
    assert [*zip(copy.index.score.tolist(), copy.index.variance.tolist(), strict=True)] == known


async def test_without_one_that_decides_the_variances_of_all_are_added(engine):
    campaign = await create_campaign_with_criteria(engine, 3)
    cache = PosteriorCache()
    async with borrow_autocommit_driver(engine) as connection:
        await cache.load_current_index(connection, campaign)
    await answer_all_hits(engine, campaign)
    async with borrow_autocommit_driver(engine) as connection:
        copy = await cache.load_current_index(connection, campaign)  # by news
        fresh = await PosteriorCache().load_current_index(connection, campaign)
    rows = await fetch_rows(
        engine, "SELECT criterion, score, variance FROM current_posteriors ORDER BY criterion, number"
    )
    by_criterion = np.array(rows).reshape(3, 12, 3)
    for one in (copy, fresh):
        assert one.index.score.tolist() == by_criterion[0, :, 1].tolist()
        assert one.index.variance.tolist() == pytest.approx(by_criterion[:, :, 2].sum(axis=0), rel=1e-15)


async def test_iterations_are_planned_for_all_criteria_at_once(engine):
    campaign = await create_campaign_with_criteria(engine, items=20, selection="iterations", judgments_per_item=3)
    cache = PosteriorCache()
    for k in range(3):
        me = await create_annotator(engine, campaign, f"ann {k}")
        assert await answer_until_done_by_one(engine, campaign, me, cache) in ("wait", "seen_all", "all_done")
    assert await fetch_value(engine, "SELECT count(DISTINCT iteration) FROM planned_hits") > 1
    assert (await verified(engine, campaign)).has_no_mismatches


async def answer_until_done_by_one(engine, campaign, me, cache):
    rng = np.random.default_rng(1)
    while (work := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
        await submit_by_criterion(engine, me, work.hit, simulate_answers(campaign, work.hit.items, rng))
    return work.reason


async def test_systems_are_scored_by_each_criterion_and_equal_outputs_count_for_both(engine):
    chosen = {"items_per_hit": 2, "judgments_per_item": 6, "criteria": criteria_settings(2)}
    campaign = await create_draft(engine, **chosen)
    same = outputs_table().replace("bee on", "ape on")
    await import_items(engine, campaign, same)
    campaign = await apply_action(engine, campaign)
    cache, rng = PosteriorCache(), np.random.default_rng(4)
    for k in range(3):
        me = await create_annotator(engine, campaign, f"ann {k}")
        while (work := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
            answers = {
                name: Answer(dict(zip(work.hit.items, rng.uniform(0, 100, len(work.hit.items)).tolist(), strict=True)))
                for name in NAMES[:2]
            }
            async with borrow_autocommit_driver(engine) as connection:
                await submission.store_answer_of_hit_and_return_receipt(
                    connection, me, work.hit.id, AnswerByCriterion(answers), now=NOW
                )
    lengths = "SELECT DISTINCT cardinality(values) / cardinality(items) FROM responses"
    assert await fetch_rows(engine, lengths) == [(2,)]
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_each_annotator_keeps_an_order_of_their_own(engine):
    campaign = await create_campaign_with_criteria(engine, 3)

    def order(annotator_id):
        return tuple(one.number for one in campaign.shuffled_criteria_for_annotator(annotator_id))

    orders = [order(annotator_id) for annotator_id in range(1, 40)]
    assert len(set(orders)) == 6
    assert orders == [order(annotator_id) for annotator_id in range(1, 40)]


async def test_touches_are_kept_by_criterion(engine):
    campaign = await create_campaign_with_criteria(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    touch = {hit.items[0]: Touch(700, 2, "mouse")}
    await submit_by_criterion(
        engine, me, hit, simulate_answers(campaign, hit.items, np.random.default_rng(1)), touches=touch
    )
    told = await fetch_value(engine, "SELECT telemetry -> 'changes' FROM responses")
    assert told == ([2] + [None] * (len(hit.items) - 1)) * 2
