"""Items that only some people judge: groups of people, and people who gave an answer to a question."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.item_audiences import build_item_audiences, parse_audiences
from app.annotation.hits.next_hit import is_last_hit_as_far_as_known
from app.annotation.onboarding import participant_lists, personal_links
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.errors import Conflict, Invalid
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    find_or_lease_next_hit,
    form_fields,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.onboarding.visits import open_campaign_link, send_form
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)

SETTINGS: dict[str, Any] = {"assigned_column": "for", "items_per_hit": 2, "repeat_items": False}


async def create_campaign_with_assigned_items(engine, cells, *, launched=True, items=6, **settings):
    """A campaign whose items have these cells in the column `for`, by their numbers."""
    draft = await create_running_campaign(engine, items=items, launched=False, **SETTINGS | settings)
    for number, cell in cells.items():
        await execute_sql(
            engine,
            "UPDATE items SET fields = CAST(:fields AS jsonb) WHERE campaign_id = :campaign AND number = :number",
            fields=json.dumps({"for": cell}), campaign=draft.id, number=number,
        )  # fmt: skip
    if not launched:
        return draft
    groups = {name for cell in cells.values() for name in parse_audiences(cell) if "=" not in name}
    for group in groups:  # a launch needs people in them, who may leave
        await add_to_group(engine, draft, group, "first")
    campaign = await launch(engine, draft)
    await execute_sql(engine, "DELETE FROM participant_lists WHERE worker_id = 'first'")
    return campaign


async def launch(engine, draft):
    async with engine.begin() as connection:
        return await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=NOW)


async def add_to_group(engine, campaign, group, *people):
    async with engine.begin() as connection:
        await participant_lists.change_participant_list_and_count_changes(
            connection, campaign, group, people, "add", now=NOW
        )


async def judge_until_nothing_is_left(engine, assignment, cache=None):
    """All items that the annotator judges, and why there are no more."""
    items: list[int] = []
    while True:
        next_hit = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if next_hit.hit is None:
            return sorted(items), next_hit.reason
        items += next_hit.hit.items
        await submit_scores(engine, assignment, next_hit.hit)


async def test_items_of_a_group_are_only_for_its_people_and_others_for_everyone(engine):
    campaign = await create_campaign_with_assigned_items(
        engine, {0: "experts", 1: "experts | staff", 2: "staff", 3: ""}
    )
    await add_to_group(engine, campaign, "experts", "ann")
    await add_to_group(engine, campaign, "staff", "bea")
    cache = PosteriorCache()
    for name, items in (("ann", [0, 1, 3, 4, 5]), ("bea", [1, 2, 3, 4, 5]), ("cat", [3, 4, 5])):
        assignment = await create_annotator(engine, campaign, name, "api")
        judged, reason = await judge_until_nothing_is_left(engine, assignment, cache)
        assert {*judged} <= {*items}
        assert len(judged) >= len(items) - 1  # one item alone is no task of this design
        assert reason == "seen_all"


async def test_with_repeated_items_too_nobody_judges_items_of_others(engine):
    campaign = await create_campaign_with_assigned_items(
        engine, {0: "experts", 1: "experts", 2: "experts"}, repeat_items=True, hits_per_annotator=6, items=6
    )
    assignment = await create_annotator(engine, campaign, "ann", "api")
    judged, _ = await judge_until_nothing_is_left(engine, assignment)
    assert {*judged} == {3, 4, 5}


async def test_a_person_who_joins_a_group_gets_its_items(engine):
    campaign = await create_campaign_with_assigned_items(engine, dict.fromkeys(range(6), "experts"))
    assignment, cache = await create_annotator(engine, campaign, "ann", "api"), PosteriorCache()
    assert (await find_or_lease_next_hit(engine, assignment, cache=cache)).reason == "seen_all"
    await add_to_group(engine, campaign, "experts", "ann")
    await try_to_lease_hit(engine, assignment, cache=cache)


async def test_a_held_hit_is_the_last_one_if_all_other_items_are_for_other_people(engine):
    campaign = await create_campaign_with_assigned_items(engine, dict.fromkeys(range(2, 6), "experts"))
    assignment, cache = await create_annotator(engine, campaign, "ann", "api"), PosteriorCache()
    for _ in range(2):  # leased, then shown again
        next_hit = await find_or_lease_next_hit(engine, assignment, cache=cache)
        assert next_hit.hit is not None
        assert {*next_hit.hit.items} == {0, 1}
        assert is_last_hit_as_far_as_known(cache, next_hit)


async def test_people_with_personal_links_are_in_groups_by_name(client, app):
    engine = app.state.database
    campaign = await create_campaign_with_assigned_items(engine, dict.fromkeys(range(6), "experts"))
    await add_to_group(engine, campaign, "experts", "Bea")
    async with engine.begin() as connection:
        await personal_links.create_missing_links_and_count_them(connection, campaign, ["Ann", "Bea"], now=NOW)
        rows = await personal_links.list_personal_links(connection, campaign.id)
    pages = [(await client.get(personal_links.personal_link_url("", campaign.link_key, row.link))).text for row in rows]
    assert ['name="hit"' in page for page in pages] == [False, True]


async def test_items_are_for_people_who_gave_an_answer(client, app):
    engine = app.state.database
    campaign = await create_campaign_with_assigned_items(
        engine,
        {0: "language = German", 1: "language=German", 2: "language = French", 3: "language = French", 4: "x", 5: "x"},
        questions=["language: Which language? | German | French"],
    )
    for person, answer, items in (("p1", "German", {0, 1}), ("p2", "French", {2, 3})):
        page, address = await open_campaign_link(client, campaign, PROLIFIC_PID=person)
        form_fields(await send_form(client, address, page, **{"question-language": answer}))
        ((held,),) = await fetch_rows(engine, "SELECT items FROM hits ORDER BY id DESC LIMIT 1")
        assert {*held} == items


async def test_an_erased_person_is_in_no_group(engine):
    campaign = await create_campaign_with_assigned_items(engine, dict.fromkeys(range(6), "experts"))
    await create_annotator(engine, campaign, "ann", "api")
    await add_to_group(engine, campaign, "experts", "ann", "bea")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=NOW)
    assert await fetch_rows(engine, "SELECT list, worker_id FROM participant_lists") == [("experts", "bea")]


async def test_a_group_lets_nobody_in_or_out(engine):
    campaign = await create_campaign_with_assigned_items(engine, {0: "experts"})
    await add_to_group(engine, campaign, "experts", "ann")
    await create_annotator(engine, campaign, "bea", "api")


async def test_pages_and_programs_change_groups(api_client, researcher, app):  # noqa: F811
    campaign = await create_campaign_with_assigned_items(app.state.database, {0: "experts"})
    address = f"/admin/campaigns/{campaign.slug}/participants"
    assert (
        await researcher.post(address, data={"group": "experts", "action": "add", "people": "ann"})
    ).status_code == 303
    assert "Group experts" in (await researcher.get(address)).text
    assert "<code>ann</code>" in (await researcher.get(f"{address}?list=experts")).text
    assert (
        await researcher.post(address, data={"group": "No Group", "action": "add", "people": "ann"})
    ).status_code == 422
    program = f"{API}/campaigns/{campaign.slug}/participants"
    assert (await api_client.post(f"{program}/experts", json={"ids": ["bea"]})).json()["people"] == 2
    assert (await api_client.get(program)).json()["groups"] == {"experts": {"people": 2, "erased": 0}}
    assert (await api_client.get(f"{program}/staff")).json()["ids"] == []
    assert (await api_client.post(f"{program}/No%20Group", json={"ids": ["bea"]})).status_code == 422


async def test_names_of_groups_are_checked(engine):
    campaign = await create_running_campaign(engine)
    with pytest.raises(Invalid) as refused:
        await add_to_group(engine, campaign, "two words", "ann")
    assert refused.value.code == "list_name_wrong"


QUESTIONS = [
    "language: Which language? | German | screen out: French",
    "age: How old are you? | number from 18 to 99",
    "town: Where do you live?",
]


@pytest.mark.parametrize(
    ("cells", "more", "code"),
    [
        ({}, {}, "assigned_column_missing"),
        ({0: "", 1: "  ", 2: " | "}, {}, "assigned_column_missing"),
        ({0: "experts", 1: "expert"}, {}, "assigned_group_empty"),
        ({0: "allow"}, {}, "assigned_group_empty"),
        ({0: "experts | = German"}, {}, "assigned_answer_unknown"),
        ({0: "language = german"}, {}, "assigned_answer_unknown"),
        ({0: "language = French"}, {}, "assigned_answer_unknown"),
        ({0: "tongue = German"}, {}, "assigned_answer_unknown"),
        ({0: "age = 17"}, {}, "assigned_answer_unknown"),
        ({0: "age = old"}, {}, "assigned_answer_unknown"),
        ({0: "town ="}, {}, "assigned_answer_unknown"),
        ({0: "experts"}, {"fixed_set": "first", "fixed_items": ["v0", "v1"]}, "fixed_item_assigned"),
        (dict.fromkeys(range(5), "experts"), {"fixed_set": "first", "fixed_random": 2}, "fixed_set_too_large"),
    ],
)
async def test_a_launch_with_items_that_nobody_could_judge_is_refused(engine, cells, more, code):
    draft = await create_campaign_with_assigned_items(engine, cells, launched=False, questions=QUESTIONS, **more)
    await add_to_group(engine, draft, "experts", "ann")
    with pytest.raises(Conflict) as refused:
        await launch(engine, draft)
    assert refused.value.code == code


async def test_a_launch_takes_groups_with_people_and_answers_that_can_be_given(engine):
    cells = {0: "experts | language=German", 1: "age = 18", 2: "town = Ulm"}
    draft = await create_campaign_with_assigned_items(engine, cells, launched=False, questions=QUESTIONS)
    await add_to_group(engine, draft, "experts", "ann")
    assert (await launch(engine, draft)).status == "running"


async def test_random_items_of_a_fixed_set_are_for_everyone(engine):
    campaign = await create_campaign_with_assigned_items(
        engine, dict.fromkeys(range(4), "experts"), fixed_set="first", fixed_random=2
    )
    ((numbers,),) = await fetch_rows(engine, "SELECT always_shown FROM campaigns")
    assert {*numbers} == {4, 5}
    assert campaign.status == "running"


def test_iterations_have_no_items_for_some_people():
    settings = {"name": "Verbs", "question": "How?", "assigned_column": "for", "selection": "iterations"}
    with pytest.raises(ValidationError, match="use streaming"):
        CampaignSettings.model_validate(settings)


def test_a_cell_names_groups_and_answers():
    assert parse_audiences(" experts| language =  German||a = b=c ") == ["experts", "language=German", "a=b=c"]


def test_an_item_that_joined_after_the_copy_of_a_campaign_is_left_out_of_its_audiences():
    audiences = build_item_audiences([("ann | ben", [0, 4]), ("ben", [2])], item_count=4)
    assert {name: numbers.tolist() for name, numbers in audiences.items_by_audience.items()} == {
        "ann": [0],
        "ben": [0, 2],
    }
    items_of_others = audiences.items_of_others_than(frozenset({"ann"})).mask
    assert items_of_others is not None
    assert items_of_others.tolist() == [False, False, True, False]
