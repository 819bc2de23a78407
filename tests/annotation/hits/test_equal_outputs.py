"""Systems whose outputs are the same as others': which of them a HIT compares."""

from app.annotation.hits import submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    fetch_rows,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import create_campaign_of_systems

# Bee says what ape says, and cat says something else.
SAME_AS_BASELINE = "system,segment,output\n" + "".join(
    f"{system},s{k},{words} {k}\n"
    for k in range(3)
    for system, words in (("ape", "same"), ("bee", "same"), ("cat", "other"))
)


async def test_a_system_with_the_outputs_of_the_baseline_is_never_compared_with_it(engine):
    campaign = await create_campaign_of_systems(
        engine, SAME_AS_BASELINE, design="baseline", design_settings={"baseline": "ape"}, judgments_per_item=6
    )
    await execute_sql(
        engine,
        "UPDATE posteriors SET variance = CASE external_id WHEN 'bee' THEN 9 ELSE .01 END "
        "FROM items WHERE items.number = subject",
    )
    cache = PosteriorCache()
    for name in ("ann", "bob", "eve"):
        hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, name), cache=cache)
        assert sorted(hit.ids) == ["ape", "cat"]


async def test_a_hit_of_several_systems_shows_as_many_different_outputs_as_it_has_places(engine):
    """Six systems, of which each two say the same: a HIT of three shows three different outputs."""
    rows = [f"{system},s{k},{'pqr'[n // 2]} {k}\n" for k in range(3) for n, system in enumerate("abcdef")]
    campaign = await create_campaign_of_systems(
        engine, "system,segment,output\n" + "".join(rows), items_per_hit=3, judgments_per_item=8
    )
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    for _ in range(3):
        hit = await try_to_lease_hit(engine, me, cache=cache)
        assert len({*hit.texts}) == len(hit.texts) >= 2
        await submit_scores(engine, me, hit, scores=[float(10 * place) for place in range(len(hit.items))])
    stored = await fetch_rows(engine, "SELECT items, shown_as FROM hits")
    assert all(len(items) == len(shown or items) for items, shown in stored)


async def test_a_process_that_follows_asks_nobody_again_about_outputs_that_they_could_not_judge(engine):
    campaign = await create_campaign_of_systems(
        engine, SAME_AS_BASELINE, judgments_per_item=40, cannot_be_judged=True, items_per_hit=2
    )
    me, cache, segments = await create_annotator(engine, campaign), PosteriorCache(), []
    for _ in range(3):
        hit = await try_to_lease_hit(engine, me, cache=cache)
        segments.append(hit.segment)
        answer = Answer({}, unjudged=dict.fromkeys(hit.items, campaign.unjudged_reasons[0]))
        async with borrow_autocommit_driver(engine) as connection:
            await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    assert {*segments} == {0, 1, 2}
    assert (await find_or_lease_next_hit(engine, me, cache=cache)).reason == "seen_all"
    other = await create_annotator(engine, campaign, "other")
    assert (await find_or_lease_next_hit(engine, other, cache=cache)).hit is not None
