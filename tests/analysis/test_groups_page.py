"""The analysis of some annotators' answers, on its page and for programs."""

import json
import re

import pytest

from app.analysis.fit_cache import FitCache
from app.analysis.result_types import Options
from tests.annotation.hits.campaigns import execute_sql, store_settings
from tests.quality.deciding import answer_hits


@pytest.fixture
async def campaign(engine):
    """Create a campaign with three annotators, two of them English speakers."""
    found, _, rows = await answer_hits(engine, people=3, hits=2, items=10)
    await store_settings(engine, questions=["language: Which language? | en | de | fr", "job: Which job?"])
    for row, said in zip(rows, ("en", "de", "en"), strict=True):
        await execute_sql(
            engine,
            "INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at) "
            "VALUES (:c, :a, 'questions', 1, 'passed', CAST(:said AS jsonb), now())",
            c=found.id,
            a=row,
            said=json.dumps({"language": said, "job": f"job {row}"}),
        )
    return found


async def test_the_page_offers_groups_and_shows_one_alone(campaign, researcher):
    address = f"/admin/campaigns/{campaign.slug}/analysis"
    html = (await researcher.get(address)).text
    assert re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)<', html)[:3] == [
        ("", "", "all annotators"),
        ("language=en", "", "language: en (2)"),
        ("language=de", "", "language: de (1)"),
    ]
    assert "job 1" not in html  # what people wrote themselves may say who they are
    html = (await researcher.get(address, params={"group": "language=en"})).text
    assert '<option value="language=en" selected>' in html
    assert "only the answers of this group of annotators" in html
    assert f"{address}/groups?group=language%3Den" in html
    table = (await researcher.get(f"{address}/tables/annotators.csv", params={"group": "language=en"})).text
    assert [row.split(",")[1] for row in table.splitlines()[1:]] == ["A1", "A3"]
    assert "asked_language" in table
    assert "asked_job" not in table
    part = (await researcher.get(f"{address}/groups")).text
    assert "Items by group" in part
    assert "job 1" not in part
    assert "language en: mean" in part
    assert (await researcher.get(f"{address}/scores", params={"group": "language=en"})).status_code == 200
    gone = await researcher.get(f"{address}/agreement", params={"group": "language=it"})
    assert gone.status_code == 404
    assert "There is no group" in gone.text


async def test_the_numbers_of_people_in_groups_are_those_whose_answers_count(campaign, researcher):
    await researcher.post(f"/admin/campaigns/{campaign.slug}/annotators/A1/exclude")
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis")).text
    choices = re.findall(r'<option value="(language=[^"]*)"[^>]*>([^<]*)<', html)
    assert sorted(choices) == [("language=de", "language: de (1)"), ("language=en", "language: en (1)")]


async def test_what_a_group_gave_is_kept_until_somebody_answers(campaign, engine):
    fits = FitCache()
    of_group = {"group": "language=en"}
    first = await fits.load_answers(engine, campaign.slug, **of_group)
    assert (first.n_annotators, (await fits.load_answers(engine, campaign.slug)).n_annotators) == (2, 3)
    assert await fits.load_answers(engine, campaign.slug, **of_group) is first
    table = await fits.load_cached_or_fit_table(engine, campaign.slug, "agreement", Options(), **of_group)
    assert await fits.load_cached_or_fit_table(engine, campaign.slug, "agreement", Options(), **of_group) is table
    assert await fits.load_cached_or_fit_table(engine, campaign.slug, "agreement", Options()) is not table


async def test_a_campaign_without_questions_offers_no_groups(engine, researcher):
    campaign, *_ = await answer_hits(engine, people=2, hits=1)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis")).text
    assert 'name="group"' not in html
    assert "Groups of annotators" not in html
