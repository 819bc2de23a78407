"""Items under several conditions: blocks of tasks, lists of a Latin square, and how rows are given out."""

import asyncio
import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.condition_counts import ConditionCount, load_square_counts_or_none
from app.annotation.hits.next_hit import is_last_hit_as_far_as_known
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.dashboard.square_counts import RecentSquareCounts
from app.errors import Conflict
from app.imports.items import import_items_and_return_receipt
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.rehearsals import RehearsalCrowd, RehearsalCrowds, create_or_find_rehearsal_and_take_crowd_lead
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    find_or_lease_next_hit,
    form_fields,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.onboarding.visits import open_campaign_link
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.exports.test_export import written

CONDITIONS = ("human", "neural", "rules")
BLOCKS: dict[str, Any] = {
    "condition_column": "voice",
    "block_order": "balanced",
    "items_per_hit": 2,
    "repeat_items": False,
    "judgments_per_item": 100,
}
LISTS: dict[str, Any] = {
    "condition_column": "voice",
    "content_column": "sentence",
    "items_per_hit": 2,
    "repeat_items": False,
    "judgments_per_item": 100,
}


def voice(item, conditions=CONDITIONS):
    return conditions[item % len(conditions)]


def sentence(item, conditions=CONDITIONS):
    return item // len(conditions)


async def create_draft_with_conditions(engine, *, contents=4, conditions=CONDITIONS, **settings):
    """A draft in which each content has an item under each condition."""
    items = contents * len(conditions)
    draft = await create_running_campaign(engine, items=items, launched=False, **settings)
    for number in range(items):
        fields = {"voice": voice(number, conditions), "sentence": f"s{sentence(number, conditions)}"}
        await set_fields(engine, draft, number, **fields)
    return draft


async def set_fields(engine, campaign, number, **fields):
    await execute_sql(
        engine,
        "UPDATE items SET fields = CAST(:fields AS json) WHERE campaign_id = :campaign AND number = :number",
        fields=json.dumps(fields), campaign=campaign.id, number=number,
    )  # fmt: skip


async def launch(engine, draft):
    async with engine.begin() as connection:
        return await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=NOW)


async def create_campaign_with_conditions(engine, **settings):
    return await launch(engine, await create_draft_with_conditions(engine, **settings))


async def judge(engine, assignment, *, hits=None, cache=None, now=NOW):
    """The items of each of an annotator's next HITs, which are answered; all of them if no number is given."""
    shown: list[list[int]] = []
    while hits is None or len(shown) < hits:
        next_hit = await find_or_lease_next_hit(engine, assignment, cache=cache, now=now)
        if next_hit.hit is None:
            assert hits is None, next_hit.reason
            break
        shown.append(next_hit.hit.items)
        await submit_scores(engine, assignment, next_hit.hit, now=now)
    return shown


def blocks_of(shown):
    """The conditions of HITs, each once for all HITs of it that follow each other."""
    conditions = [{voice(item) for item in items} for items in shown]
    assert all(len(names) == 1 for names in conditions)
    order = [next(iter(names)) for names in conditions]
    return [name for place, name in enumerate(order) if place == 0 or order[place - 1] != name]


async def test_annotators_judge_one_condition_after_another_in_the_orders_of_the_square(engine):
    campaign, cache = await create_campaign_with_conditions(engine, **BLOCKS), PosteriorCache()
    orders = []
    for name in "abcdef":
        shown = await judge(engine, await create_annotator(engine, campaign, name), cache=cache)
        assert sorted(item for items in shown for item in items) == [*range(12)]
        orders.append(tuple(blocks_of(shown)))
    assert len({*orders}) == 6


async def test_a_fixed_order_is_the_same_for_everyone_and_a_random_one_is_not(engine):
    for block_order, fewest, most in (("fixed", 1, 1), ("random", 2, 6)):
        campaign = await create_campaign_with_conditions(engine, **BLOCKS | {"block_order": block_order})
        orders = {
            tuple(blocks_of(await judge(engine, await create_annotator(engine, campaign, name)))) for name in "abcdefgh"
        }
        assert fewest <= len(orders) <= most
        assert block_order == "random" or orders == {CONDITIONS}


async def test_each_annotator_sees_each_content_under_one_condition_and_lists_rotate(engine):
    campaign, cache = await create_campaign_with_conditions(engine, contents=6, **LISTS), PosteriorCache()
    seen: Counter[int] = Counter()
    for name in "abcdef":
        shown = await judge(engine, await create_annotator(engine, campaign, name), cache=cache)
        items = [item for hit in shown for item in hit]
        assert sorted(map(sentence, items)) == [0, 1, 2, 3, 4, 5]
        assert {*Counter(map(voice, items)).values()} == {2}
        seen.update(items)
    assert seen == dict.fromkeys(range(18), 2)


async def test_blocks_and_lists_hold_together(engine):
    campaign = await create_campaign_with_conditions(engine, contents=6, **LISTS | {"block_order": "balanced"})
    for name in "abc":
        shown = await judge(engine, await create_annotator(engine, campaign, name))
        assert len(blocks_of(shown)) == 3
        assert sorted(sentence(item) for hit in shown for item in hit) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("design", "items_per_hit", "more"),
    [("rating", 3, {}), ("magnitude", 2, {}), ("categories", 1, {"design_settings": {"labels": ["a", "b"]}})],
)
async def test_blocks_hold_for_ratings_magnitudes_and_labels(engine, design, items_per_hit, more):
    settings = BLOCKS | {"design": design, "items_per_hit": items_per_hit} | more
    campaign = await create_campaign_with_conditions(engine, contents=6, **settings)
    assignment = await create_annotator(engine, campaign)
    shown = []
    values = {"rating": [1.0, 2.0, 3.0], "magnitude": [1.0, 2.0], "categories": [0.0]}[design]
    while (next_hit := await find_or_lease_next_hit(engine, assignment)).hit is not None:
        shown.append(next_hit.hit.items)
        await submit_scores(engine, assignment, next_hit.hit, scores=values)
    assert len(blocks_of(shown)) == 3
    assert sum(map(len, shown)) == 18


async def test_tasks_per_annotator_are_divided_among_the_blocks(engine):
    settings = BLOCKS | {"hits_per_annotator": 6, "repeat_items": True, "items_per_hit": 1, "design": "rating"}
    campaign = await create_campaign_with_conditions(engine, contents=20, **settings)
    assignment = await create_annotator(engine, campaign)
    shown = []
    while (next_hit := await find_or_lease_next_hit(engine, assignment)).hit is not None:
        shown += next_hit.hit.items
        await submit_scores(engine, assignment, next_hit.hit, scores=[3.0])
    assert {*Counter(map(voice, shown)).values()} == {2}
    assert len(blocks_of([[item] for item in shown])) == 3


async def test_a_block_has_as_many_tasks_as_the_setting_says(engine):
    campaign = await create_campaign_with_conditions(engine, contents=8, **BLOCKS | {"tasks_per_block": 2})
    assignment, cache = await create_annotator(engine, campaign), PosteriorCache()
    assert len(await judge(engine, assignment, hits=5, cache=cache)) == 5
    last = await find_or_lease_next_hit(engine, assignment, cache=cache)
    assert last.hit is not None
    assert is_last_hit_as_far_as_known(cache, last)
    await submit_scores(engine, assignment, last.hit)
    assert (await find_or_lease_next_hit(engine, assignment, cache=cache)).reason == "seen_all"


async def test_only_the_last_task_of_the_last_block_is_the_last_one(engine):
    campaign, cache = await create_campaign_with_conditions(engine, **BLOCKS), PosteriorCache()
    assignment = await create_annotator(engine, campaign)
    last = []
    for _ in range(6):
        next_hit = await find_or_lease_next_hit(engine, assignment, cache=cache)
        assert next_hit.hit is not None
        last.append(is_last_hit_as_far_as_known(cache, next_hit))
        held = await find_or_lease_next_hit(engine, assignment, cache=cache)
        assert is_last_hit_as_far_as_known(cache, held) == last[-1]
        await submit_scores(engine, assignment, next_hit.hit)
    assert last == [False] * 5 + [True]


async def test_the_text_between_blocks_is_on_the_first_task_of_later_blocks_also_when_shown_again(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS | {"block_pause": "Take a break."})
    assignment, notices = await create_annotator(engine, campaign), []
    for _ in range(6):
        next_hit = await find_or_lease_next_hit(engine, assignment)
        assert next_hit.hit is not None
        again = await find_or_lease_next_hit(engine, assignment)
        assert again.block_notice == next_hit.block_notice
        notices.append(next_hit.block_notice)
        await submit_scores(engine, assignment, next_hit.hit)
    assert notices == ["", "", "Take a break.", "", "Take a break.", ""]


async def test_an_expired_task_is_drawn_again_from_the_same_block(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    assignment = await create_annotator(engine, campaign)
    ((first, _),) = await judge(engine, assignment, hits=1)
    held = await try_to_lease_hit(engine, assignment)
    await expire_leases(engine)
    for hit in (held, await try_to_lease_hit(engine, assignment)):
        assert {voice(item) for item in hit.items} == {voice(first)}


async def rows_by_name(engine):
    return dict(await fetch_rows(engine, "SELECT worker_id, square_row FROM annotators ORDER BY id"))


async def test_annotators_who_arrive_at_the_same_time_get_rows_in_balance(engine):
    campaign, cache = await create_campaign_with_conditions(engine, **BLOCKS), PosteriorCache()
    arrivals = [await create_annotator(engine, campaign, f"w{number}") for number in range(32)]
    await asyncio.gather(*(find_or_lease_next_hit(engine, one, cache=cache) for one in arrivals))
    counts = Counter((await rows_by_name(engine)).values())
    assert sorted(counts) == [0, 1, 2, 3, 4, 5]
    assert max(counts.values()) - min(counts.values()) <= 1


async def test_rows_stay_in_balance_when_people_leave_and_many_others_arrive(engine):
    campaign, cache = await create_campaign_with_conditions(engine, **BLOCKS), PosteriorCache()
    first = [await create_annotator(engine, campaign, f"w{number}") for number in range(16)]
    await asyncio.gather(*(find_or_lease_next_hit(engine, one, cache=cache) for one in first))
    for one in first[:5]:
        await judge(engine, one, cache=cache)
    await expire_leases(engine)
    later = NOW + timedelta(hours=2)
    second = [await create_annotator(engine, campaign, f"x{number}") for number in range(13)]
    await asyncio.gather(*(find_or_lease_next_hit(engine, one, cache=cache, now=later) for one in second))
    rows = await rows_by_name(engine)
    staying = Counter(rows[name] for name in [*(f"w{k}" for k in range(5)), *(f"x{k}" for k in range(13))])
    assert staying == dict.fromkeys(range(6), 3)


async def test_an_assignment_that_is_one_task_continues_in_the_block_of_the_person(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    shown = []
    for number in range(4):
        one = await create_annotator(
            engine, campaign, "w1", "mturk", assignment=f"a{number}", hitId="h", assignmentId=f"a{number}"
        )
        shown += await judge(engine, one, hits=1)
    assert len(blocks_of(shown)) == 2
    assert [len({voice(item) for hit in shown[place : place + 2] for item in hit}) for place in (0, 2)] == [1, 1]


async def test_a_changed_answer_does_not_count_as_another_task_of_the_block(client, app):
    campaign = await create_campaign_with_conditions(app.state.database, **BLOCKS | {"block_pause": "Rest."})
    page, address = await open_campaign_link(client, campaign)
    page = (await client.post(address, data=form_fields(page))).text
    token = form_fields(page)["token"]
    changing = (await client.post(address, data={"token": token, "undo": "1"})).text
    replaces = re.search(r'name="replaces" value="(\d+)"', changing)
    assert replaces is not None
    page = (await client.post(address, data=form_fields(changing) | {"replaces": replaces[1]})).text
    assert "Rest." not in page
    assert "Rest." in (await client.post(address, data=form_fields(page))).text


async def test_the_row_of_a_person_who_left_early_is_given_again_first(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    for name in "abcdef":
        await judge(engine, await create_annotator(engine, campaign, name), hits=1 if name == "d" else None)
    await expire_leases(engine)
    later = NOW + timedelta(hours=2)
    await judge(engine, await create_annotator(engine, campaign, "g"), now=later, hits=1)
    rows = await rows_by_name(engine)
    assert rows["g"] == rows["d"]


async def test_who_has_left_is_counted_once_a_minute_and_not_for_each_newcomer(engine):
    campaign, cache = await create_campaign_with_conditions(engine, **BLOCKS), PosteriorCache()
    later = NOW + timedelta(hours=2)
    leaves_at = later + timedelta(seconds=30)
    for name in "abcdef":
        one = await create_annotator(engine, campaign, name)
        if name == "d":
            await judge(engine, one, hits=1, cache=cache, now=leaves_at - timedelta(minutes=campaign.lease_minutes))
        else:
            await judge(engine, one, cache=cache)
    for name, seconds in (("g", 0), ("h", 45), ("i", 61)):
        await judge(
            engine,
            await create_annotator(engine, campaign, name),
            hits=1,
            cache=cache,
            now=later + timedelta(seconds=seconds),
        )
    rows = await rows_by_name(engine)
    assert (rows["g"], rows["h"], rows["i"]) == (rows["a"], rows["b"], rows["d"])


async def test_a_person_at_work_and_one_who_comes_back_keep_their_row(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    assignment = await create_annotator(engine, campaign, "a")
    first = await judge(engine, assignment, hits=1)
    before = await rows_by_name(engine)
    rest = await judge(engine, assignment, now=NOW + timedelta(days=1))
    assert await rows_by_name(engine) == before
    assert len(blocks_of([*first, *rest])) == 3


async def test_the_row_of_an_excluded_person_is_given_again(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    for name in "abcdef":
        await judge(engine, await create_annotator(engine, campaign, name))
    await execute_sql(engine, "UPDATE annotators SET barred = 'excluded' WHERE worker_id = 'c'")
    await judge(engine, await create_annotator(engine, campaign, "g"), hits=1)
    rows = await rows_by_name(engine)
    assert rows["g"] == rows["c"]


async def test_a_block_whose_items_others_hold_is_waited_for(engine):
    campaign = await create_campaign_with_conditions(
        engine, **BLOCKS | {"judgments_per_item": 1, "block_order": "fixed"}
    )
    for name in "ab":
        await try_to_lease_hit(engine, await create_annotator(engine, campaign, name))
    third = await create_annotator(engine, campaign, "c")
    assert (await find_or_lease_next_hit(engine, third)).reason == "wait"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"block_order": "balanced"}, "condition_column"),
        ({"content_column": "sentence"}, "condition_column"),
        ({"condition_column": "voice"}, "condition_column"),
        ({"condition_column": "voice", "content_column": "voice"}, "content_column"),
        (BLOCKS | {"selection": "iterations"}, "condition_column"),
        (BLOCKS | {"assigned_column": "for"}, "condition_column"),
        (BLOCKS | {"fixed_set": "first", "fixed_random": 2}, "condition_column"),
        (BLOCKS | {"design": "pairwise", "repeat_items": True, "implied_asked_percent": 5}, "condition_column"),
        (BLOCKS | {"repeat_items": True}, "tasks_per_block"),
        (LISTS | {"tasks_per_block": 3}, "tasks_per_block"),
        (LISTS | {"block_pause": "Rest."}, "block_pause"),
    ],
)
def test_impossible_settings_are_refused_at_their_field(settings, field):
    with pytest.raises(ValidationError) as refusal:
        CampaignSettings.model_validate({"name": "Verbs", "question": "How?"} | settings)
    assert [error["ctx"]["field"] for error in refusal.value.errors()] == [field]


@pytest.mark.parametrize(
    ("settings", "fields_by_item", "code"),
    [
        (BLOCKS | {"condition_column": "other"}, {}, "condition_column_missing"),
        (BLOCKS, {4: {"voice": " "}}, "condition_cell_missing"),
        (BLOCKS, {number: {"voice": "human"} for number in range(12)}, "one_condition"),
        (BLOCKS | {"items_per_hit": 5}, {}, "too_few_items_in_block"),
        (BLOCKS | {"hits_per_annotator": 2}, {}, "too_few_tasks_for_blocks"),
        (LISTS | {"content_column": "other"}, {}, "content_column_missing"),
        (LISTS, {4: {"voice": "neural"}}, "content_cell_missing"),
        (LISTS, {4: {"voice": "human", "sentence": "s1"}}, "content_incomplete"),
        (LISTS | {"items_per_hit": 5}, {}, "too_few_items_in_block"),
        (LISTS | {"block_order": "balanced"}, {}, "too_few_items_in_block"),
    ],
)
async def test_a_launch_with_wrong_columns_is_refused(engine, settings, fields_by_item, code):
    draft = await create_draft_with_conditions(engine, **settings)
    for number, fields in fields_by_item.items():
        await set_fields(engine, draft, number, **fields)
    with pytest.raises(Conflict) as refusal:
        await launch(engine, draft)
    assert refusal.value.code == code


async def test_too_many_conditions_are_refused(engine):
    draft = await create_draft_with_conditions(engine, contents=2, conditions=[f"c{k}" for k in range(25)], **BLOCKS)
    with pytest.raises(Conflict, match="25") as refusal:
        await launch(engine, draft)
    assert refusal.value.code == "too_many_conditions"


async def test_cells_that_look_alike_are_one_condition(engine):
    conditions = ("caf\u00e9", "tea")
    draft = await create_draft_with_conditions(engine, conditions=conditions, **BLOCKS)
    await set_fields(engine, draft, 0, voice="cafe\u0301")  # a letter and its accent
    await set_fields(engine, draft, 1, voice="\u00a0tea\u200b")
    await launch(engine, draft)
    async with engine.begin() as connection:
        counts = await load_square_counts_or_none(connection, draft, now=NOW)
    assert counts is not None
    assert [(one.condition, one.items) for one in counts.conditions] == [("caf\u00e9", 4), ("tea", 4)]


async def test_counts_of_people_by_list_and_order_and_of_judgments_by_condition(engine):
    campaign = await create_campaign_with_conditions(engine, contents=6, **LISTS | {"block_order": "balanced"})
    await judge(engine, await create_annotator(engine, campaign, "a"))
    await judge(engine, await create_annotator(engine, campaign, "b"), hits=1)
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "c"))
    await expire_leases(engine)
    async with engine.connect() as connection:
        counts = await load_square_counts_or_none(connection, campaign, now=NOW + timedelta(hours=2))
    assert counts is not None
    assert [(one.condition, one.items) for one in counts.conditions] == [(name, 6) for name in CONDITIONS]
    assert sum(one.judgments for one in counts.conditions) == 6 + 2
    assert [(one.number, one.at_work_or_done, one.left_early) for one in counts.lists] == [
        (1, 1, 0),
        (2, 0, 1),
        (3, 0, 1),
    ]
    assert [one.at_work_or_done for one in counts.orders] == [1, 0, 0, 0, 0, 0]
    assert [one.left_early for one in counts.orders] == [0, 1, 1, 0, 0, 0]
    assert counts.orders[1].conditions == ["neural", "rules", "human"]


async def test_exported_responses_have_the_condition_its_block_and_the_list(engine):
    campaign = await create_campaign_with_conditions(engine, contents=6, **LISTS | {"block_order": "balanced"})
    for name in "ab":
        await judge(engine, await create_annotator(engine, campaign, name))
    rows = await export_rows(engine, campaign.slug)
    blocks = [(row["condition"], row["block"], row["condition_list"]) for row in rows]
    assert {*blocks} == {
        *(("human", "1", "1"), ("neural", "2", "1"), ("rules", "3", "1")),
        *(("neural", "1", "2"), ("rules", "2", "2"), ("human", "3", "2")),
    }


async def test_a_condition_like_a_number_keeps_its_last_zero_in_an_export_for_spreadsheets(engine):
    campaign = await create_campaign_with_conditions(engine, conditions=("1.1", "1.10"), **BLOCKS)
    await judge(engine, await create_annotator(engine, campaign))
    table = (await written(engine, campaign.slug, "responses", spreadsheet=True)).removeprefix("\ufeff")
    assert {row["condition"] for row in csv.DictReader(table.splitlines())} == {"1.1", "'1.10"}


async def export_rows(engine, slug):
    return [*csv.DictReader((await written(engine, slug, "responses")).splitlines())]


async def test_items_added_later_must_keep_the_square(engine):
    campaign = await create_campaign_with_conditions(engine, contents=4, **LISTS)
    added = {
        "voice,sentence\nhuman,s9\nneural,s9\nrules,s9": None,
        "voice,sentence\nhuman,s8\nneural,s8": "content_incomplete",
        "voice,sentence\nhuman,s8\nneural,s8\nrules,": "content_cell_missing",
        "voice,sentence\nhuman,s8\nneural,s8\n,s8": "condition_cell_missing",
    }
    for number, (table, code) in enumerate(added.items()):
        lines = table.split("\n")
        text = "\n".join(
            [f"id,text,{lines[0]}", *(f"n{number}-{place},Hello.,{line}" for place, line in enumerate(lines[1:]))]
        )
        assert await import_or_code(engine, campaign, text) == code


async def test_a_condition_added_later_is_refused(engine):
    campaign = await create_campaign_with_conditions(engine, contents=4, **BLOCKS)
    table = "id,text,voice\nx1,Hello.,whispered\nx2,Hello.,whispered\nx3,Hello.,whispered"
    assert await import_or_code(engine, campaign, table) == "condition_added"


async def test_items_can_be_added_when_each_person_gets_fewer_tasks_than_there_are_blocks(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS | {"hits_per_annotator": 6})
    await execute_sql(
        engine, "UPDATE campaigns SET hits_per_annotator = 2 WHERE id = :campaign", campaign=campaign.id
    )  # fmt: skip
    assert await import_or_code(engine, campaign, "id,text,voice\nx1,Hello.,human") is None


async def import_or_code(engine, campaign, table):
    """None if the items were imported, else the code of the refusal."""
    try:
        async with engine.begin() as connection:
            await import_items_and_return_receipt(
                connection, campaign.slug, io.BytesIO(table.encode()), "more.csv", max_mb=1
            )
    except Conflict as refusal:
        return refusal.code
    return None


async def test_the_page_shows_the_text_between_blocks_once(client, app):
    engine = app.state.database
    campaign = await create_campaign_with_conditions(engine, **BLOCKS | {"block_pause": "Rest a <minute>."})
    shown = []
    page, address = await open_campaign_link(client, campaign)
    for _ in range(3):
        shown.append("Rest a &lt;minute&gt;." in page)
        page = (await client.post(address, data=form_fields(page), follow_redirects=True)).text
    assert shown == [False, False, True]


async def test_programs_read_the_text_between_blocks_and_the_counts(app, api_client):  # noqa: F811  (a fixture)
    engine = app.state.database
    campaign = await create_campaign_with_conditions(engine, **BLOCKS | {"block_pause": "Rest."})
    address, notices = f"{API}/campaigns/{campaign.slug}", []
    for _ in range(3):
        hit = (await api_client.post(f"{address}/hits", json={"annotator": "p1"})).json()["hit"]
        notices.append(hit["block_notice"])
        answer = {"annotator": "p1", "scores": {item["id"]: 50 for item in hit["items"]}}
        assert (await api_client.post(f"{API}/hits/{hit['id']}/response", json=answer)).status_code == 200
    assert notices == ["", "", "Rest."]
    counts = (await api_client.get(f"{address}/conditions")).json()
    assert [one["at_work_or_done"] for one in counts["orders"]] == [1, 0, 0, 0, 0, 0]
    assert sum(one["judgments"] for one in counts["conditions"]) == 6
    assert counts["lists"] == []


async def test_a_campaign_without_conditions_has_no_counts(app, api_client):  # noqa: F811  (a fixture)
    campaign = await create_running_campaign(app.state.database)
    refusal = await api_client.get(f"{API}/campaigns/{campaign.slug}/conditions")
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (409, "no_conditions")


async def test_the_overview_shows_people_by_list_and_order(app, researcher):
    engine = app.state.database
    campaign = await create_campaign_with_conditions(engine, contents=6, **LISTS | {"block_order": "balanced"})
    await judge(engine, await create_annotator(engine, campaign))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    section = page.partition('id="conditions"')[2].partition("</section>")[0]
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", section)]
    assert cells[cells.index("List 1") :][:3] == ["List 1", "1", "0"]
    assert cells[cells.index("human → neural → rules") :][:3] == ["human → neural → rules", "1", "0"]
    assert cells[cells.index("neural") :][:3] == ["neural", "6", "2"]


async def test_the_overview_cuts_long_names_of_conditions_and_unfolds_the_whole_ones(app, researcher):
    names = ("a" * 400, "Voice of a speaker whose name is long, version 1", "c")
    campaign = await create_campaign_with_conditions(app.state.database, conditions=names, **BLOCKS)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    section = html.unescape(page.partition('id="conditions"')[2].partition("</section>")[0])
    assert f'<summary dir="auto">{"a" * 59}…</summary><p dir="auto">{"a" * 400}</p>' in section
    assert f'<summary dir="auto">{"a" * 23}… → ' in section
    assert f">{names[1]}</th>" in section


async def test_the_overview_counts_people_again_after_some_seconds(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    square_counts = RecentSquareCounts(PosteriorCache())
    judgments = []
    for name, seconds in (("a", 0), ("b", 5), ("c", 15)):
        await judge(engine, await create_annotator(engine, campaign, name), hits=1)
        async with engine.connect() as connection:
            counts = await square_counts.load_counts_or_none(connection, campaign, now=NOW + timedelta(seconds=seconds))
        assert counts is not None
        judgments.append(sum(one.judgments for one in counts.conditions))
    assert judgments == [2, 2, 6]


async def test_the_overview_reads_the_conditions_of_items_once(engine):
    """Its later counts are restricted to what changed, however many items there are."""
    campaign, cache = await create_campaign_with_conditions(engine, **BLOCKS), PosteriorCache()
    square_counts, counts = RecentSquareCounts(cache), list[Sequence[ConditionCount]]()
    for name in "abc":
        await judge(engine, await create_annotator(engine, campaign, name), hits=1, cache=cache)
        now = NOW + timedelta(minutes=len(counts))
        async with engine.connect() as connection:
            newest = await square_counts.load_counts_or_none(connection, campaign, now=now)
            assert newest is not None
            if name != "c":
                assert newest == await load_square_counts_or_none(connection, campaign, now=now)
            counts.append(newest.conditions)
        if name == "b":
            await execute_sql(engine, "UPDATE items SET fields = '{}'")
    assert [sum(one.judgments for one in conditions) for conditions in counts] == [2, 4, 6]
    assert [one.items for one in counts[2]] == [one.items for one in counts[0]]


async def test_viewers_of_the_overview_at_the_same_time_share_the_counts(engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    square_counts = RecentSquareCounts(PosteriorCache())

    async def load():
        async with engine.connect() as connection:
            return await square_counts.load_counts_or_none(connection, campaign, now=NOW)

    first, second = await asyncio.gather(load(), load())
    assert first is second


async def test_a_rehearsal_keeps_to_the_blocks_and_lists(engine):
    settings = LISTS | {"block_order": "balanced", "judgments_per_item": 2}
    campaign = await create_campaign_with_conditions(engine, contents=6, **settings)
    population = population_with_random_bias_only(0.1, 0.25)
    crowd = RehearsalCrowd(annotators=6, population=population, truth_column=None)
    async with engine.begin() as connection:
        copy, _ = await create_or_find_rehearsal_and_take_crowd_lead(connection, campaign.slug, crowd, now=NOW)
    crowds = RehearsalCrowds(engine, lambda: NOW, pause=0)
    crowds.start_crowd_of_rehearsal(copy, crowd)
    await wait_until(
        engine, "SELECT EXISTS (SELECT FROM campaigns WHERE rehearsal_of IS NOT NULL AND status = 'finished')"
    )
    shown: dict[int, list[list[int]]] = {}
    statement = "SELECT annotator_id, items FROM responses WHERE campaign_id = :campaign ORDER BY seq"
    for annotator, items in await fetch_rows(engine, statement, campaign=copy.id):
        shown.setdefault(annotator, []).append(items)
    for hits in shown.values():
        order = blocks_of(hits)
        assert len(order) == len({*order})
        sentences = [sentence(item) for hit in hits for item in hit]
        assert len(sentences) == len({*sentences})
