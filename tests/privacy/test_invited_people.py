"""A person on the list of personal links who never opened theirs can be found, gets a copy, and can be erased."""

import io
import json
import zipfile
from datetime import timedelta

import pytest

from app.annotation.onboarding.personal_links import create_missing_links_and_count_them
from app.errors import NotFound
from app.privacy.erasure_list import load_erasure_list
from app.privacy.erasure_reapplication import reapply_erasures_and_count_by_state
from app.privacy.erasures import erase_person_and_return_erasure
from app.privacy.person_search import find_people_and_log_search, load_only_person_or_refuse
from tests.annotation.hits.campaigns import NOW, create_running_campaign, execute_sql, fetch_rows, fetch_value
from tests.privacy.people import erase_found

MAIL = "ada.lovelace@example.org"
COPY_LIST = "SELECT jsonb_agg(to_jsonb(p))::text FROM personal_links p"


@pytest.fixture
async def campaign(engine):
    made = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await create_missing_links_and_count_them(connection, made, ["ben@example.org", MAIL], now=NOW)
    return made


async def names_found(engine, campaign, term):
    async with engine.begin() as connection:
        return [person.name for person in await find_people_and_log_search(connection, campaign, term)]


async def test_they_are_found_by_name_in_any_case_and_by_the_place_of_their_link(engine, campaign):
    for term in (MAIL, MAIL.upper(), "L2", "l2"):
        assert await names_found(engine, campaign, term) == ["L2"]
    assert await names_found(engine, campaign, "L3") == []
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_they_are_erased_with_a_receipt_and_nobody_else(engine, campaign, rule):
    erasure = await erase_found(engine, campaign, MAIL, rule, now=NOW)
    assert erasure.receipt.startswith("E-")
    assert await fetch_rows(engine, "SELECT name FROM personal_links") == [("ben@example.org",)]
    assert await names_found(engine, campaign, MAIL) == []
    assert await names_found(engine, campaign, erasure.receipt) == ["A1"]
    assert await fetch_rows(engine, "SELECT worker_id LIKE 'erased:%', barred FROM annotators") == [(True, "erased")]


async def test_a_link_that_is_not_on_the_list_is_refused(engine, campaign):
    with pytest.raises(NotFound) as refusal:
        await erase_person_and_return_erasure(engine, campaign.slug, "L9", "remove", now=NOW)
    assert refusal.value.code == "annotator_not_found"


async def test_a_restored_list_erases_them_again(engine, campaign):
    backup = await fetch_value(engine, COPY_LIST)
    await erase_found(engine, campaign, MAIL, "anonymise", now=NOW)
    async with engine.connect() as connection:
        listed = await load_erasure_list(connection)
    for table in ("erasures", "personal_links", "annotators"):
        await execute_sql(engine, f"DELETE FROM {table}")
    restored = "INSERT INTO personal_links SELECT * FROM jsonb_populate_recordset(NULL::personal_links, :rows::jsonb)"
    await execute_sql(engine, restored.replace(":rows::jsonb", "CAST(:rows AS jsonb)"), rows=backup)
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + timedelta(hours=1)) == {"erased": 1}
    assert await fetch_rows(engine, "SELECT name FROM personal_links") == [("ben@example.org",)]


async def test_a_later_person_with_the_same_place_on_the_list_is_not_erased(engine, campaign):
    await erase_found(engine, campaign, MAIL, "anonymise", now=NOW)
    async with engine.begin() as connection:
        await create_missing_links_and_count_them(connection, campaign, ["new@example.org"], now=NOW)
        listed = await load_erasure_list(connection)
    assert await names_found(engine, campaign, "new@example.org") == ["L2"]
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + timedelta(hours=1)) == {}
    assert await names_found(engine, campaign, "new@example.org") == ["L2"]


async def test_a_researcher_downloads_their_copy_and_erases_them(app, researcher):
    engine = app.state.database
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await create_missing_links_and_count_them(connection, campaign, [MAIL], now=NOW)
    address = f"/admin/campaigns/{campaign.slug}/privacy"
    page = (await researcher.post(address, data={"term": MAIL})).text
    assert "The link has not been opened yet" in page
    download = await researcher.get(f"{address}/L1/export")
    document = json.loads(zipfile.ZipFile(io.BytesIO(download.content)).read("person.json"))
    assert list(document["tables"]) == ["personal_links"]
    assert document["tables"]["personal_links"][0]["name"] == MAIL
    erased = await researcher.post(f"{address}/L1/erase", data={"rule": "remove", "sure": "yes"})
    assert erased.status_code == 303
    assert MAIL not in (await researcher.get(erased.headers["location"])).text
    assert await fetch_value(engine, "SELECT count(*) FROM personal_links") == 0


async def test_a_person_who_opened_the_link_is_an_annotator_whatever_name_is_used(engine, campaign):
    await execute_sql(
        engine,
        "INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at) "
        "VALUES (:campaign, 'personal', '2', 'p', :now)",
        campaign=campaign.id,
        now=NOW,
    )
    async with engine.begin() as connection:
        assert (await load_only_person_or_refuse(connection, campaign, MAIL)).name == "A1"
    await erase_person_and_return_erasure(engine, campaign.slug, "L2", "anonymise", now=NOW)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE barred = 'erased'") == 1
