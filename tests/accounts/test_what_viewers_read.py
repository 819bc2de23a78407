"""Viewers, their tokens and read-only links get nothing about single annotators from an analysis."""

import json
from datetime import UTC, datetime

import pytest

from app.accounts import shared_links
from app.analysis.methods import TABLE_METHODS, is_about_annotators
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import execute_sql, fetch_rows, store_settings
from tests.annotation.hits.test_condition_blocks import BLOCKS, create_campaign_with_conditions
from tests.quality.deciding import answer_hits

QUESTION = "native_language: Which is your first language? | Finnish | Sami"
GROUP = {"group": "native_language=Sami"}
OF_PEOPLE = {name for name, table in TABLE_METHODS.items() if table.shows_annotators}


@pytest.fixture
async def campaign(engine):
    """Create a campaign whose annotators stated their first language."""
    campaign, _, rows = await answer_hits(engine, people=3, hits=3, items=6)
    await store_settings(engine, questions=[QUESTION])
    visit = (
        "INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at) "
        "VALUES (:campaign, :annotator, 'questions', 1, 'passed', CAST(:said AS jsonb), now())"
    )
    for row, language in zip(rows, ("Sami", "Finnish", "Finnish"), strict=True):
        said = json.dumps({"native_language": language})
        await execute_sql(engine, visit, campaign=campaign.id, annotator=row, said=said)
    return campaign


@pytest.fixture
async def secrets(engine, campaign):
    """Return the parts of a page that tell of people."""
    pseudonyms = await fetch_rows(engine, "SELECT pseudonym FROM annotators")
    return ["Sami", "Finnish", "ann 0", "ann 1", campaign.link_key, *(row[0] for row in pseudonyms)]


async def by_link(app, client, campaign):
    async with app.state.database.begin() as connection:
        secret = await shared_links.create_shared_link_and_return_secret(
            connection, campaign, "", maker_name="ada", now=datetime.now(UTC)
        )
    await client.get(f"/shared/{secret}")


async def as_viewer(app, client, campaign):
    await log_in_with_role(app, client, "guest", "viewer", campaign)


@pytest.mark.parametrize("come", [as_viewer, by_link])
async def test_pages_show_no_table_of_annotators_and_no_groups(app, client, campaign, secrets, come):
    await come(app, client, campaign)
    address = f"/admin/campaigns/{campaign.slug}/analysis"
    parts = {table.section.name for table in TABLE_METHODS.values()}
    assert "annotators" in parts
    shown = [address, f"{address}/scores"]
    shown += [f"{address}/{part}" for part in sorted(parts) if not is_about_annotators(part)]
    for path in shown:
        page = await client.get(path)
        assert (page.status_code, [one for one in secrets if one in page.text]) == (200, []), path
        assert not [name for name in OF_PEOPLE if f"tables/{name}.csv" in page.text or f"{address}/{name}" in page.text]
    closed = [f"{address}/{part}" for part in sorted(parts) if is_about_annotators(part)]
    closed += [f"{address}/tables/{name}.csv" for name in OF_PEOPLE]
    closed += [f"{address}/figures/{name}.svg" for name in OF_PEOPLE]
    for path in closed:
        refused = await client.get(path)
        assert (refused.status_code, "role_forbids" in refused.text) == (403, True), path
    assert (await client.get(address, params=GROUP)).status_code == 403


@pytest.mark.parametrize("come", [as_viewer, by_link])
async def test_the_table_of_scores_is_a_file_for_viewers_too(app, client, campaign, secrets, come):
    await come(app, client, campaign)
    address = f"/admin/campaigns/{campaign.slug}"
    assert f'href="{address}/scores.csv"' in (await client.get(address)).text
    table = await client.get(f"{address}/scores.csv")
    assert table.status_code == 200
    assert table.headers["content-disposition"].startswith(f'attachment; filename="{campaign.slug}-items-')
    header, *rows = table.text.splitlines()
    assert header.startswith("id,shown,")
    assert len(rows) == 6
    assert [one for one in secrets if one in table.text] == []


async def test_a_program_of_a_viewer_gets_no_table_of_annotators_and_no_groups(app, client, campaign, secrets):
    _, token = await log_in_with_role(app, client, "guest", "viewer", campaign)
    bearer = {"authorization": f"Bearer {token}"}
    address = f"/api/v1/campaigns/{campaign.slug}/analysis"
    offered = {table["name"] for table in (await client.get(address, headers=bearer)).json()["tables"]}
    assert ("agreement" in offered, offered & OF_PEOPLE) == (True, set())
    for name in TABLE_METHODS:
        answer = await client.get(f"{address}/tables/{name}", headers=bearer)
        refused = answer.status_code == 403 and answer.json()["error"]["code"] == "role_forbids"
        assert refused == (name in OF_PEOPLE), (name, answer.text)
        assert [one for one in secrets if one in answer.text] == [], name
    scores = await client.get(f"{address}/scores/mean", headers=bearer, params=GROUP)
    assert (scores.status_code, scores.json()["error"]["code"]) == (403, "role_forbids")
    assert (await client.get(f"{address}/scores/mean", headers=bearer)).status_code == 200


async def test_counts_of_conditions_are_for_viewers_as_on_the_overview(app, client, engine):
    campaign = await create_campaign_with_conditions(engine, **BLOCKS)
    _, token = await log_in_with_role(app, client, "guest", "viewer", campaign)
    counts = await client.get(
        f"/api/v1/campaigns/{campaign.slug}/conditions", headers={"authorization": f"Bearer {token}"}
    )
    assert [one["condition"] for one in counts.json()["conditions"]] == ["human", "neural", "rules"]
    assert 'id="conditions"' in (await client.get(f"/admin/campaigns/{campaign.slug}")).text


async def test_a_manager_sees_them(app, client, campaign):
    await log_in_with_role(app, client, "guest", "manager", campaign)
    address = f"/admin/campaigns/{campaign.slug}/analysis"
    assert 'id="group"' in (await client.get(address)).text
    assert "Sami" in (await client.get(f"{address}/tables/annotators.csv")).text
    assert (await client.get(f"{address}/tables/agreement.csv", params=GROUP)).status_code in (200, 409)
