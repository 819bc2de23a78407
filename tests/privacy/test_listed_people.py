"""A person who is on a list and never came can be found, gets a copy, and can be erased."""

import io
import json
import zipfile
from datetime import timedelta

import pytest

from app.annotation.onboarding.participant_lists import change_participant_list_and_count_changes
from app.annotation.onboarding.personal_links import create_missing_links_and_count_them
from app.errors import NotFound
from app.privacy.erasure_list import load_erasure_list
from app.privacy.erasure_reapplication import reapply_erasures_and_count_by_state
from app.privacy.erasures import erase_person_and_return_erasure
from app.privacy.person_export import build_person_zip_and_log
from app.privacy.person_search import (
    find_people_and_log_search,
    load_only_person_or_refuse,
    load_person_by_name_or_refuse,
)
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
)
from tests.privacy.people import erase_found

LISTS = "SELECT list, worker_id FROM participant_lists ORDER BY list, worker_id"


@pytest.fixture
async def campaign(engine):
    made = await create_running_campaign(engine)
    for list_name, people in {"allow": ["ada", "ben"], "block": ["ada"], "experts": ["ada"]}.items():
        await add_to_list(engine, made, list_name, people)
    return made


async def add_to_list(engine, campaign, list_name, people):
    async with engine.begin() as connection:
        await change_participant_list_and_count_changes(connection, campaign, list_name, people, "add", now=NOW)


async def names_found(engine, campaign, term):
    async with engine.begin() as connection:
        return [person.name for person in await find_people_and_log_search(connection, campaign, term)]


async def exported_tables(engine, campaign, term):
    async with engine.begin() as connection:
        person = await load_only_person_or_refuse(connection, campaign, term)
        content = await build_person_zip_and_log(connection, campaign, person, now=NOW)
    return json.loads(zipfile.ZipFile(io.BytesIO(content)).read("person.json"))["tables"]


async def test_they_are_found_by_id_and_by_the_number_of_their_entry(engine, campaign):
    (name,) = await names_found(engine, campaign, "ada")
    for term in (name, name.lower(), "ADA"):
        assert await names_found(engine, campaign, term) == [name]
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


async def test_their_copy_has_their_entries_on_all_lists_and_no_one_else_s(engine, campaign):
    tables = await exported_tables(engine, campaign, "ada")
    assert sorted((row["list"], row["worker_id"]) for row in tables["participant_lists"]) == [
        ("allow", "ada"),
        ("block", "ada"),
        ("experts", "ada"),
    ]
    assert [*tables] == ["participant_lists"]


async def test_they_are_erased_with_a_receipt_and_their_block_holds(engine, campaign):
    erasure = await erase_found(engine, campaign, "ada", "remove", now=NOW)
    assert await fetch_rows(engine, LISTS) == [("allow", "ben"), ("allow", None), ("block", None)]
    assert await names_found(engine, campaign, "ada") == []
    assert await names_found(engine, campaign, erasure.receipt) == ["A1"]


async def test_a_restored_list_erases_them_again(engine, campaign):
    await erase_found(engine, campaign, "ada", "anonymise", now=NOW)
    async with engine.connect() as connection:
        listed = await load_erasure_list(connection)
    for table in ("erasures", "annotators", "participant_lists"):
        await execute_sql(engine, f"DELETE FROM {table}")
    await add_to_list(engine, campaign, "allow", ["ada", "ben"])
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + timedelta(hours=1)) == {"erased": 1}
    assert await fetch_rows(engine, LISTS) == [("allow", "ben"), ("allow", None)]


async def test_people_who_came_are_found_as_annotators_only(engine, campaign):
    await create_annotator(engine, campaign, "ben", "prolific")
    assert await names_found(engine, campaign, "ben") == ["A1"]
    number = await fetch_value(engine, "SELECT number FROM participant_lists WHERE worker_id = 'ben'")
    with pytest.raises(NotFound):
        await erase_person_and_return_erasure(engine, campaign.slug, f"P{number}", "anonymise", now=NOW)


async def test_the_copy_of_an_unopened_link_has_the_entries_on_lists(engine, campaign):
    async with engine.begin() as connection:
        await create_missing_links_and_count_them(connection, campaign, ["ada"], now=NOW)
    assert await names_found(engine, campaign, "ada") == ["L1"]
    tables = await exported_tables(engine, campaign, "ada")
    assert len(tables["participant_lists"]) == 3
    assert len(tables["personal_links"]) == 1


async def test_a_name_of_a_link_is_not_the_name_of_another_person(engine, campaign):
    async with engine.begin() as connection:
        await create_missing_links_and_count_them(connection, campaign, ["L2", "eve"], now=NOW)
        assert (await load_person_by_name_or_refuse(connection, campaign, "L2")).name == "L2"
    assert await names_found(engine, campaign, "L2") == ["L1", "L2"]
    await erase_person_and_return_erasure(engine, campaign.slug, "L2", "anonymise", now=NOW)
    assert await fetch_rows(engine, "SELECT name FROM personal_links") == [("L2",)]


async def test_a_page_finds_and_erases_them(app, researcher):
    engine = app.state.database
    campaign = await create_running_campaign(engine)
    await add_to_list(engine, campaign, "allow", ["ada"])
    address = f"/admin/campaigns/{campaign.slug}/privacy"
    page = (await researcher.post(address, data={"term": "ada"})).text
    assert "The person never came" in page
    (name,) = await names_found(engine, campaign, "ada")
    erased = await researcher.post(f"{address}/{name}/erase", data={"rule": "remove", "sure": "yes"})
    assert erased.status_code == 303
    assert await fetch_rows(engine, LISTS) == [("allow", None)]
