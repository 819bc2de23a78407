"""The fixed set of items that every annotator judges once, next to the items that the rule draws."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.analysis.agreement_table import AGREEMENT_TABLE
from app.analysis.load_answers import load_campaign_answers
from app.analysis.result_types import Options
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.next_hit import is_last_hit_as_far_as_known
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.errors import Conflict
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)

SETTINGS: dict[str, Any] = {
    "fixed_set": "first",
    "fixed_items": ["v3", "v7", "v8", "v9"],
    "items_per_hit": 2,
    "repeat_items": False,
}
FIXED = {3, 7, 8, 9}


async def judge(engine, campaign, name, hits, *, cache=None, scores=None):
    """The items of each of an annotator's next HITs, which are answered."""
    assignment = await create_annotator(engine, campaign, name)
    seen = []
    for _ in range(hits):
        hit = await try_to_lease_hit(engine, assignment, cache=cache)
        seen.append({*hit.items})
        await submit_scores(engine, assignment, hit, scores=scores)
    return seen


async def test_every_annotator_judges_the_set_first_in_the_same_tasks(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    for name in ("ann", "bea", "cat", "dan", "eve"):  # more people than judgments per item
        first, second, third = await judge(engine, campaign, name, 3)
        assert (first, second) == ({3, 7}, {8, 9})
        assert not third & FIXED


async def test_a_set_that_does_not_fill_tasks_is_filled_with_other_items(engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"fixed_items": ["v3", "v7", "v8"]})
    first, second, third = await judge(engine, campaign, "ann", 3)
    assert first == {3, 7}
    assert len(second) == 2
    assert second & FIXED == {8}
    assert not third & {3, 7, 8}


async def test_a_mixed_set_has_one_item_in_each_task_until_all_are_judged(engine):
    campaign = await create_running_campaign(engine, **SETTINGS | {"fixed_set": "mixed"})
    shown = await judge(engine, campaign, "ann", 5)
    assert [len(items & FIXED) for items in shown] == [1, 1, 1, 1, 0]
    assert set.union(*shown) >= FIXED


async def test_tasks_of_one_item_mix_the_set_with_others(engine):
    campaign = await create_running_campaign(
        engine, items=30, **SETTINGS | {"fixed_set": "mixed", "items_per_hit": 1, "design": "rating"}
    )
    shown = [min(items) for items in await judge(engine, campaign, "ann", 20, scores=[1.0])]
    assert {*shown} >= FIXED
    assert len({*shown}) == 20
    assert not {*shown[:4]} <= FIXED


async def test_the_set_is_asked_although_nothing_else_is_left_for_a_person(engine):
    campaign = await create_running_campaign(
        engine, items=6, **SETTINGS | {"fixed_set": "mixed", "fixed_items": ["v0", "v1", "v2", "v3"]}
    )
    shown = await judge(engine, campaign, "ann", 3)
    assert set.union(*shown) == {*range(6)}
    assignment = await create_annotator(engine, campaign, "ann")
    assert (await find_or_lease_next_hit(engine, assignment)).reason == "seen_all"


async def test_the_campaign_ends_with_the_judgments_of_the_other_items(engine):
    campaign = await create_running_campaign(
        engine, items=6, judgments_per_item=1, **SETTINGS | {"fixed_items": ["v3", "v4"]}
    )
    await judge(engine, campaign, "ann", 3)
    await create_annotator(engine, campaign, "bea")
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    judgments = await fetch_rows(engine, "SELECT subject, judgments FROM posteriors ORDER BY subject")
    assert judgments == [(item, 1) for item in range(6)]


async def test_the_launch_adds_random_items_by_the_seed(engine):
    numbers = []
    for seed in (1, 1, 2):
        campaign = await create_running_campaign(engine, items=40, **SETTINGS | {"fixed_random": 6, "seed": seed})
        numbers.append(
            campaign.always_shown
            or await fetch_value(engine, "SELECT always_shown FROM campaigns WHERE id = :id", id=campaign.id)
        )
    assert numbers[0] == numbers[1] != numbers[2]
    assert all(len({*one}) == 10 and {*one} > FIXED for one in numbers)


async def test_one_person_with_two_visits_gets_no_item_of_the_set_twice(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    visits = [await create_annotator(engine, campaign, "ann", "mturk", assignment=f"a{k}") for k in range(2)]
    hits = [await try_to_lease_hit(engine, visit) for visit in visits]
    assert [{*hit.items} for hit in hits] == [{3, 7}, {8, 9}]


async def test_a_remembered_history_serves_the_same_tasks(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    cache = PosteriorCache()
    for name in ("ann", "bea"):
        assert (await judge(engine, campaign, name, 2, cache=cache)) == [{3, 7}, {8, 9}]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"fixed_items": ["v3", "nothing"]}, "fixed_item_unknown"),
        ({"fixed_items": [], "fixed_random": 12}, "fixed_set_too_large"),
    ],
)
async def test_a_launch_without_the_items_of_the_set_is_refused(engine, settings, code):
    draft = await create_running_campaign(engine, launched=False, **SETTINGS | settings)
    with pytest.raises(Conflict) as refused:
        async with engine.begin() as connection:
            await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=NOW)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fixed_set": "none"}, "choose first or mixed"),
        ({"fixed_items": []}, "name the items"),
        ({"fixed_items": ["a", "a"]}, "only once"),
        ({"selection": "iterations"}, "use streaming"),
        ({"design": "baseline", "design_settings": {"baseline": "v1"}}, "same item already"),
        ({"design": "pairwise", "fixed_items": ["a", "b", "c"]}, "fill whole tasks"),
        ({"design": "pairwise", "fixed_set": "mixed"}, "fill whole tasks"),
        ({"design": "pairwise", "implied_asked_percent": 10, "repeat_items": True}, "implied pairs"),
    ],
)
def test_settings_that_cannot_have_the_set_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        CampaignSettings.model_validate({"name": "Verbs", "question": "How?"} | SETTINGS | settings)


async def test_agreement_is_also_estimated_on_the_set_alone(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    for name in ("ann", "bea", "cat"):
        await judge(engine, campaign, name, 3)
    async with engine.connect() as connection:
        row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        table = AGREEMENT_TABLE.fit(await load_campaign_answers(connection, row.criteria[0]), Options())
    names = [column.name for column in table.columns]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in table.rows}
    assert rows["alpha_interval_fixed_set"]["items"] == 4
    assert rows["alpha_interval_fixed_set"]["pairs"] == 4 * 3
    assert "Krippendorff’s alpha, interval, fixed set" in {row["title"] for row in rows.values()}


async def test_agreement_of_preferences_is_also_estimated_on_the_set_alone(engine):
    settings: dict[str, Any] = {"design": "pairwise", "fixed_set": "first", "fixed_items": ["v3", "v7"]}
    campaign = await create_running_campaign(engine, **settings)
    for name in ("ann", "bea", "cat"):
        assert (await judge(engine, campaign, name, 2, scores=[1, 2]))[0] == {3, 7}
    async with engine.connect() as connection:
        row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        table = AGREEMENT_TABLE.fit(await load_campaign_answers(connection, row.criteria[0]), Options())
    pairs = {row[0]: row for row in table.rows}
    assert pairs["pair_agreement_fixed_set"][[column.name for column in table.columns].index("pairs")] == 3


async def test_a_hit_is_the_last_if_it_completes_the_set_and_all_other_items_have_their_judgments(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    await execute_sql(engine, "UPDATE posteriors SET judgments = 3 WHERE NOT subject = ANY('{3,7,8,9}')")
    cache, me = PosteriorCache(), await create_annotator(engine, campaign)
    are_last = []
    for _ in range(2):
        next_hit = await find_or_lease_next_hit(engine, me, cache=cache)
        are_last.append(is_last_hit_as_far_as_known(cache, next_hit))
        assert next_hit.hit is not None
        await submit_scores(engine, me, next_hit.hit)
    assert are_last == [False, True]
