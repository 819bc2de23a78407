"""Where blocks of conditions end, whose list is given again, and when a campaign with conditions is finished."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from pydantic import ValidationError

from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.condition_counts import load_square_counts_or_none
from app.annotation.hits.next_hit import is_last_hit_as_far_as_known
from app.campaigns import empty_campaigns, settings_edits
from app.campaigns.settings import CampaignSettings
from app.errors import Conflict
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.test_condition_blocks import (
    BLOCKS,
    CONDITIONS,
    LISTS,
    blocks_of,
    create_campaign_with_conditions,
    create_draft_with_conditions,
    judge,
    launch,
    voice,
)
from tests.campaigns.drafts import create_launched_campaign

FOUR = ("human", "neural", "rules", "mixed")
ONE_BY_ONE = BLOCKS | {"design": "magnitude", "items_per_hit": 1, "block_order": "fixed"}
LATER = NOW + timedelta(hours=2)


async def change_settings(engine, campaign, **changes):
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda settings: settings.model_copy(update=changes)
        )


@pytest.mark.parametrize(("limit", "expected"), [(5, [1, 1, 1, 2]), (6, [1, 2, 1, 2]), (8, [2, 2, 2, 2])])
async def test_a_limit_that_is_no_multiple_of_the_conditions_is_spread_over_all_blocks(engine, limit, expected):
    settings = ONE_BY_ONE | {"hits_per_annotator": limit}
    campaign = await create_campaign_with_conditions(engine, conditions=FOUR, **settings)
    shown = await judge(engine, await create_annotator(engine, campaign))
    counts = Counter(voice(items[0], FOUR) for items in shown)
    assert [counts[name] for name in FOUR] == expected


@pytest.mark.parametrize(("limit", "per_block"), [(20, 10), (3, None)])
async def test_a_launch_whose_limit_ends_before_the_last_block_is_refused(engine, limit, per_block):
    settings = ONE_BY_ONE | {"hits_per_annotator": limit, "tasks_per_block": per_block}
    draft = await create_draft_with_conditions(engine, conditions=FOUR, **settings)
    with pytest.raises(Conflict) as refusal:
        await launch(engine, draft)
    assert refusal.value.code == "too_few_tasks_for_blocks"


async def test_a_later_limit_may_not_cut_blocks_of_a_given_length(engine):
    settings = ONE_BY_ONE | {"hits_per_annotator": 20, "tasks_per_block": 2}
    campaign = await create_campaign_with_conditions(engine, **settings)
    with pytest.raises(Conflict, match="at least 6") as refusal:
        await change_settings(engine, campaign, hits_per_annotator=5)
    assert refusal.value.code == "too_few_tasks_for_blocks"
    for limit in (6, None):
        await change_settings(engine, campaign, hits_per_annotator=limit)


@pytest.mark.parametrize(("old", "new"), [(6, 9), (9, 6), (6, None), (None, 6)])
async def test_a_limit_that_divides_the_blocks_is_fixed_by_the_launch(engine, old, new):
    campaign = await create_campaign_with_conditions(engine, **ONE_BY_ONE | {"hits_per_annotator": old})
    with pytest.raises(Conflict) as refusal:
        await change_settings(engine, campaign, hits_per_annotator=new)
    assert refusal.value.code == "blocks_are_fixed"
    await change_settings(engine, campaign, block_pause="Rest.")


async def test_a_draft_and_a_campaign_with_lists_alone_may_change_their_limit(engine):
    draft = await create_draft_with_conditions(engine, **ONE_BY_ONE | {"hits_per_annotator": 6})
    campaign = await create_campaign_with_conditions(engine, **LISTS | {"hits_per_annotator": 2})
    for one in (draft, campaign):
        await change_settings(engine, one, hits_per_annotator=1)


async def test_a_launch_with_fewer_conditions_after_a_return_to_draft_gives_new_rows(engine):
    campaign, cache = await create_campaign_with_conditions(engine, conditions=FOUR, **BLOCKS), PosteriorCache()
    people = [await create_annotator(engine, campaign, name) for name in "abcd"]
    for one in people:
        await try_to_lease_hit(engine, one, cache=cache)
    async with engine.begin() as connection:
        await empty_campaigns.revert_unanswered_to_draft_or_refuse(connection, campaign.slug)
    two_voices = "UPDATE items SET fields = json_build_object('voice', number % 2) WHERE campaign_id = :campaign"
    await execute_sql(engine, two_voices, campaign=campaign.id)
    campaign = await launch(engine, campaign)
    async with engine.connect() as connection:
        counts = await load_square_counts_or_none(connection, campaign, now=NOW)
    assert counts is not None
    assert [one.at_work_or_done + one.left_early for one in counts.orders] == [0, 0]
    for one in people:
        assert (await find_or_lease_next_hit(engine, one, cache=cache)).hit is not None


async def test_a_request_during_a_return_to_draft_stores_no_row_of_the_former_conditions(engine):
    campaign, cache = await create_campaign_with_conditions(engine, conditions=FOUR, **BLOCKS), PosteriorCache()
    annotator = await create_annotator(engine, campaign, "a")
    async with engine.begin() as connection:
        await empty_campaigns.revert_unanswered_to_draft_or_refuse(connection, campaign.slug)
        request = asyncio.create_task(find_or_lease_next_hit(engine, annotator, cache=cache))
        await wait_until(engine, requests_are_waiting_sql(1))
    assert (await request).hit is None
    assert await fetch_value(engine, "SELECT square_row FROM annotators") is None


async def create_mturk_assignment(engine, campaign, number):
    return await create_annotator(
        engine, campaign, "w1", "mturk", assignment=f"a{number}", hitId="h", assignmentId=f"a{number}"
    )


async def test_tasks_that_a_person_holds_in_other_assignments_count_for_their_own_block_only(engine):
    campaign = await create_campaign_with_conditions(engine, **ONE_BY_ONE | {"tasks_per_block": 2})
    cache, notices, shown = PosteriorCache(), list[bool](), list[str]()
    for number in range(6):
        assignment = await create_mturk_assignment(engine, campaign, number)
        next_hit = await find_or_lease_next_hit(engine, assignment, cache=cache)
        assert next_hit.hit is not None
        shown += map(voice, next_hit.hit.items)
        notices.append(next_hit.assignment.place_in_blocks.is_first_task)
    assert shown == [name for name in CONDITIONS for _ in range(2)]
    assert notices == [False, False, True, False, True, False]


async def test_a_block_that_was_shown_is_not_left_for_an_earlier_one_whose_items_are_open_again(engine):
    campaign = await create_campaign_with_conditions(engine, **ONE_BY_ONE | {"judgments_per_item": 1})
    other = await create_annotator(engine, campaign, "other")
    await judge(engine, other, hits=1)
    assignment = await create_annotator(engine, campaign)
    await judge(engine, assignment, hits=3)
    second = await try_to_lease_hit(engine, assignment)
    await execute_sql(engine, "UPDATE hits SET closed_at = now() WHERE id = :hit", hit=second.id)
    reopened = "UPDATE posteriors SET judgments = 0 WHERE campaign_id = :campaign"
    await execute_sql(engine, reopened, campaign=campaign.id)
    again = await try_to_lease_hit(engine, assignment)
    assert {voice(item) for item in (*second.items, *again.items)} == {"neural"}


async def test_checks_of_their_own_count_for_the_block_in_which_they_are_shown(engine):
    rows = "".join(f"v{k},verb {k},,,{voice(k)}\n" for k in range(30))
    gold = "".join(f"g{k},to walk {k},gold,80,\n" for k in range(3))
    settings = ONE_BY_ONE | {"hits_per_annotator": 12, "checks_percent": 50}
    table = f"id,text,check,expected,voice\n{rows}{gold}"
    campaign = await create_launched_campaign(engine, table, **settings)
    assignment, shown = await create_annotator(engine, campaign), []
    while (next_hit := await find_or_lease_next_hit(engine, assignment)).hit is not None:
        name = next_hit.hit.ids[0]
        shown.append(voice(int(name[1:])) if name.startswith("v") else "check")
        await submit_scores(engine, assignment, next_hit.hit)
    assert next_hit.reason == "limit"
    assert shown.count("check") == 3
    for place, condition in enumerate(CONDITIONS):
        assert {*shown[4 * place : 4 * place + 4]} <= {condition, "check"}


async def rows_of_counts(engine, campaign):
    """For each order of blocks, people at work or done, and those who left early."""
    async with engine.connect() as connection:
        counts = await load_square_counts_or_none(connection, campaign, now=LATER)
    assert counts is not None
    return [(one.at_work_or_done, one.left_early) for one in counts.orders if one.at_work_or_done + one.left_early]


async def test_a_person_who_judged_all_that_there_is_for_them_has_not_left_early(engine):
    settings = ONE_BY_ONE | {"tasks_per_block": 2, "hits_per_annotator": 20}
    campaign = await create_campaign_with_conditions(engine, **settings)
    assert len(await judge(engine, await create_annotator(engine, campaign))) == 6
    await expire_leases(engine)
    assert await rows_of_counts(engine, campaign) == [(1, 0)]


async def test_a_person_who_answered_as_often_as_the_limit_says_has_not_left_early(engine):
    campaign = await create_campaign_with_conditions(engine, **ONE_BY_ONE | {"hits_per_annotator": 3})
    await judge(engine, await create_annotator(engine, campaign), hits=3)
    assert await rows_of_counts(engine, campaign) == [(1, 0)]


async def test_a_person_who_stops_after_a_task_has_left_early(engine):
    campaign = await create_campaign_with_conditions(engine, **ONE_BY_ONE)
    assignment = await create_annotator(engine, campaign)
    await judge(engine, assignment, hits=1)
    done = "UPDATE assignments SET completed_at = :now WHERE campaign_id = :campaign"
    await execute_sql(engine, done, now=NOW, campaign=campaign.id)  # as a visit that the annotator ends
    assert await rows_of_counts(engine, campaign) == [(0, 1)]


async def test_a_person_who_came_when_nothing_was_left_has_not_done_their_tasks(engine):
    campaign = await create_campaign_with_conditions(engine, **ONE_BY_ONE | {"judgments_per_item": 1})
    nothing_left = "UPDATE posteriors SET settled = true WHERE campaign_id = :campaign"
    await execute_sql(engine, nothing_left, campaign=campaign.id)
    next_hit = await find_or_lease_next_hit(engine, await create_annotator(engine, campaign))
    assert next_hit.hit is None
    assert await rows_of_counts(engine, campaign) == [(0, 1)]


@pytest.mark.parametrize("contents", [3, 5])
async def test_a_campaign_ends_when_no_list_has_enough_open_items_for_a_task(engine, contents):
    settings = LISTS | {"design": "pairwise", "judgments_per_item": 1}
    campaign, cache = await create_campaign_with_conditions(engine, contents=contents, **settings), PosteriorCache()
    for name in "abcdef":
        assignment = await create_annotator(engine, campaign, name)
        while (next_hit := await find_or_lease_next_hit(engine, assignment, cache=cache)).hit is not None:
            await submit_scores(engine, assignment, next_hit.hit, scores=[1.0, 2.0])
    assert await fetch_value(engine, "SELECT status FROM campaigns WHERE id = :campaign", campaign=campaign.id) == (
        "finished"
    )
    left = "SELECT subject FROM posteriors WHERE campaign_id = :campaign AND judgments = 0"
    assert len(await fetch_rows(engine, left, campaign=campaign.id)) == 3


async def test_a_campaign_goes_on_while_another_list_has_enough_open_items(engine):
    settings = LISTS | {"design": "pairwise", "judgments_per_item": 1}
    campaign = await create_campaign_with_conditions(engine, contents=3, **settings)
    assignment = await create_annotator(engine, campaign)
    while (next_hit := await find_or_lease_next_hit(engine, assignment)).hit is not None:
        await submit_scores(engine, assignment, next_hit.hit, scores=[1.0, 2.0])
    assert next_hit.reason == "seen_all"


@pytest.mark.parametrize(
    "settings",
    [
        {"design": "pairwise"},
        {"design": "ranking", "items_per_hit": 3},
        {"design": "best_worst", "items_per_hit": 4},
        {"design": "slider", "update_law": "trueskill", "items_per_hit": 3},
    ],
)
def test_blocks_that_nothing_links_are_refused(settings):
    with pytest.raises(ValidationError, match="compare") as refusal:
        CampaignSettings.model_validate({"name": "Voices", "question": "Which?"} | BLOCKS | settings)
    assert [error["ctx"]["field"] for error in refusal.value.errors()] == ["block_order"]


async def test_comparisons_with_a_baseline_can_have_blocks(engine):
    settings = BLOCKS | {"design": "baseline", "design_settings": {"baseline": "v0"}}
    campaign = await create_campaign_with_conditions(engine, contents=4, **settings)
    assignment, shown = await create_annotator(engine, campaign), []
    while (next_hit := await find_or_lease_next_hit(engine, assignment)).hit is not None:
        assert 0 in next_hit.hit.items
        shown.append([item for item in next_hit.hit.items if item])
        await submit_scores(engine, assignment, next_hit.hit, scores=[1.0, 2.0])
    assert len(blocks_of(shown)) == 3
    assert len(shown) == 11


async def test_the_last_task_is_known_when_tasks_are_not_divided_evenly(engine):
    settings = ONE_BY_ONE | {"hits_per_annotator": 5}
    campaign, cache = await create_campaign_with_conditions(engine, **settings), PosteriorCache()
    assignment, last = await create_annotator(engine, campaign), []
    for _ in range(5):
        next_hit = await find_or_lease_next_hit(engine, assignment, cache=cache)
        assert next_hit.hit is not None
        last.append(is_last_hit_as_far_as_known(cache, next_hit))
        await submit_scores(engine, assignment, next_hit.hit)
    assert last == [False] * 4 + [True]
