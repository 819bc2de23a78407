"""The export of annotators who took part in earlier campaigns: it links the waves of a study by pseudonyms."""

import io
import zipfile

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts import members
from app.annotation.onboarding import personal_links
from app.annotation.platforms.same_person import SAME_PERSON_PARAMETERS
from app.exports.returning import FIND_SAME_PEOPLE
from tests.accounts.reaching import log_in_with_role
from tests.accounts.test_downloads import DOWNLOADS
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    store_settings,
)
from tests.annotation.hits.test_query_plans import plan_nodes
from tests.annotation.onboarding.test_participants import answer_one_hit
from tests.annotation.onboarding.test_people import links_of
from tests.exports.test_unanswered import rows_of

MANY_ANNOTATORS = """
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT :campaign, 'prolific', CAST(n AS text), CAST(n AS text), now() FROM generate_series(1, 20000) AS n
"""


async def pseudonym_of(engine: AsyncEngine, campaign, worker_id: str) -> str:
    rows = await fetch_rows(
        engine,
        "SELECT pseudonym FROM annotators WHERE campaign_id = :campaign AND worker_id = :person ORDER BY id",
        campaign=campaign.id,
        person=worker_id,
    )
    return str(rows[0][0])


async def test_each_annotator_who_took_part_before_has_a_row_with_both_pseudonyms(engine):
    first, other = [await create_running_campaign(engine, name=name) for name in ("Wave 1", "Other")]
    second = await create_running_campaign(engine, name="Wave 2")
    for campaign in (first, other, second):
        await answer_one_hit(engine, campaign, "p1")
    await answer_one_hit(engine, second, "p2")
    await answer_one_hit(engine, second, "p1", "mturk")  # another person
    await store_settings(engine, only_campaigns=[first.slug, "gone"])
    rows = await rows_of(engine, second.slug, "returning")
    before, now = [await pseudonym_of(engine, campaign, "p1") for campaign in (first, second)]
    expected = {"annotator": now, "name": "A1", "earlier_campaign": "wave-1", "earlier_annotator": before}
    assert rows == [expected]
    assert before != now
    assert await rows_of(engine, first.slug, "returning") == []


async def test_people_with_personal_links_are_the_same_by_name_or_by_an_id_on_a_platform(engine):
    first = await create_running_campaign(engine, name="Wave 1")
    await answer_one_hit(engine, first, "5f01")
    await links_of(engine, first, "Zoe", "Ann")
    await create_annotator(engine, first, "2", "personal")
    second = await create_running_campaign(engine, name="Wave 2")
    await links_of(engine, second, "5f01", "Ann", "Bea")
    for number in ("1", "2", "3"):
        await create_annotator(engine, second, number, "personal")
    await store_settings(engine, only_campaigns=[first.slug])
    rows = await rows_of(engine, second.slug, "returning")
    assert [(row["name"], row["earlier_annotator"]) for row in rows] == [
        ("A1", await pseudonym_of(engine, first, "5f01")),
        ("A2", await pseudonym_of(engine, first, "2")),
    ]
    async with engine.connect() as connection:
        listed = await personal_links.list_personal_links(connection, second.id)
    assert not {row.name for row in listed} & {cell for row in rows for cell in row.values()}


async def test_the_export_page_offers_it_only_where_people_come_again(engine, researcher):
    first = await create_running_campaign(engine, name="Wave 1")
    second = await create_running_campaign(engine, name="Wave 2", only_campaigns=[first.slug])
    for campaign, is_offered in ((first, False), (second, True)):
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export")).text
        assert ("export/returning.csv" in page) is is_offered


@pytest.mark.parametrize("role_in_first", [None, "viewer", "manager"])
async def test_it_has_only_earlier_campaigns_whose_people_the_reader_may_see_and_each_logs_it(
    app, engine, client, role_in_first
):
    first, second = [await create_running_campaign(engine, name=name) for name in ("Wave 1", "Wave 2")]
    for campaign in (first, second):
        await answer_one_hit(engine, campaign, "p1")
    await store_settings(engine, only_campaigns=[first.slug])
    user, token = await log_in_with_role(app, client, "member", "manager", second)
    if role_in_first:
        async with engine.begin() as connection:
            await members.try_to_insert_member(connection, first, user, role_in_first, now=NOW)
    before, now = [await pseudonym_of(engine, campaign, "p1") for campaign in (first, second)]
    is_visible = role_in_first == "manager"
    pages = f"/admin/campaigns/{second.slug}/export/returning.csv"
    api = f"/api/v1/campaigns/{second.slug}/export/returning"
    for reply in (
        await client.get(pages),
        await client.get(api, params={"format": "csv"}, headers={"authorization": f"Bearer {token}"}),
    ):
        lines = reply.text.split()
        assert lines[1:] == [f"{now},A1,wave-1,{before}"] * is_visible
    log = [(campaign, about) for _, _, campaign, about in await fetch_rows(engine, DOWNLOADS)]
    both = [(first.slug, "returning.csv of wave-2")] * is_visible + [(second.slug, "returning.csv")]
    assert sorted(log) == sorted(both * 2)


async def test_the_zip_with_everything_has_no_earlier_campaign_that_the_reader_may_not_see(app, engine, client):
    first, second = [await create_running_campaign(engine, name=name) for name in ("Wave 1", "Wave 2")]
    for campaign in (first, second):
        await answer_one_hit(engine, campaign, "p1")
    await store_settings(engine, only_campaigns=[first.slug])
    await log_in_with_role(app, client, "member", "manager", second)
    reply = await client.get(f"/admin/campaigns/{second.slug}/export/everything.zip")
    archive = zipfile.ZipFile(io.BytesIO(reply.content))
    assert len(archive.read("returning.csv").splitlines()) == 1
    assert "`returning.csv`" in archive.read("README.md").decode().partition("## Files")[0]


async def test_a_person_who_came_in_two_ways_has_a_row_for_each_earlier_annotator(engine):
    first = await create_running_campaign(engine, name="Wave 1")
    await answer_one_hit(engine, first, "5f01")
    await links_of(engine, first, "5f01")
    await create_annotator(engine, first, "1", "personal")
    second = await create_running_campaign(engine, name="Wave 2")
    await links_of(engine, second, "5f01")
    await create_annotator(engine, second, "1", "personal")
    await store_settings(engine, only_campaigns=[first.slug])
    rows = await rows_of(engine, second.slug, "returning")
    earlier = [await pseudonym_of(engine, first, worker_id) for worker_id in ("5f01", "1")]
    assert [(row["name"], row["earlier_annotator"]) for row in rows] == [("A1", annotator) for annotator in earlier]


@pytest.mark.own_database
@pytest.mark.parametrize("plan_cache_mode", ["force_generic_plan", "force_custom_plan"])
async def test_people_of_a_large_campaign_are_found_by_index(engine, plan_cache_mode):
    campaign = await create_running_campaign(engine)
    await execute_sql(engine, MANY_ANNOTATORS, campaign=campaign.id)
    await execute_sql(engine, "ANALYZE annotators")
    parameters = {**SAME_PERSON_PARAMETERS, "campaign": campaign.id, "platforms": ["prolific"] * 3, "people": [*"abc"]}
    explain = text(f"EXPLAIN (FORMAT JSON) {FIND_SAME_PEOPLE.text}")
    async with engine.connect() as connection:
        await connection.execute(text(f"SET LOCAL plan_cache_mode = {plan_cache_mode}"))
        ((plan,),) = (await connection.execute(explain, parameters)).all()
    nodes = list(plan_nodes("same people", plan[0]["Plan"]))
    used = [node for node in nodes if node.index.startswith("annotators")]
    assert len(used) == 2
    assert [node for node in used if "worker_id" not in node.condition] == []
    assert [node for node in nodes if node.kind in ("Seq Scan", "Hash Join", "Merge Join")] == []
