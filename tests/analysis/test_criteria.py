"""A campaign with several criteria: fits, exports, API, pages and command read it by each of them."""

import asyncio
import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from app.analysis.fit_cache import FitCache
from app.cli.commands import easel
from app.errors import NotFound
from app.exports.registry import open_export_or_refuse
from tests.annotation.hits.campaigns import fetch_rows
from tests.annotation.hits.criteria import answer_all_hits, create_campaign_with_criteria, criteria_settings
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.campaigns.drafts import import_results


@pytest.fixture
async def answered_campaign(engine):
    campaign = await create_campaign_with_criteria(engine, 2)
    await answer_all_hits(engine, campaign, people=4, hits=8)
    return campaign


async def rows(engine, slug, what, **how):
    file = await open_export_or_refuse(engine, slug, what, **how)
    text = "".join([piece async for piece in file.chunks])
    return list(csv.DictReader(io.StringIO(text)))


async def stored(engine, column, criterion):
    statement = f"SELECT {column} FROM current_posteriors WHERE criterion = :criterion ORDER BY number"
    return [value for (value,) in await fetch_rows(engine, statement, criterion=criterion)]


async def test_answers_are_those_by_the_criterion_asked_for(engine, answered_campaign):
    fits = FitCache()
    first, second = [
        await fits.load_answers(engine, answered_campaign.slug, criterion=name) for name in ("", "fluency")
    ]
    said = await fetch_rows(engine, "SELECT items, values FROM responses ORDER BY seq")
    assert first.score.tolist() == [score for items, scores in said for score in scores[: len(items)]]
    assert second.score.tolist() == [score for items, scores in said for score in scores[len(items) :]]
    assert first.item.tolist() == second.item.tolist()
    for made in (first, second):
        assert [*made.scores_by_criterion] == ["adequacy", "fluency"]
        assert np.array_equal(made.scores_by_criterion["adequacy"], first.score)
        assert np.array_equal(made.scores_by_criterion["fluency"], second.score)
    assert second.state is not None
    assert second.state.T.tolist() == await stored(engine, "state", 1)


async def test_each_criterion_is_fitted_and_kept_apart(engine, answered_campaign):
    fits = FitCache()
    one, other = [
        (await fits.load_answers_and_fit_scores(engine, answered_campaign.slug, "mean", criterion=name))[1]
        for name in ("", "fluency")
    ]
    assert not np.array_equal(one.values, other.values)
    again = [
        (await fits.load_answers_and_fit_scores(engine, answered_campaign.slug, "mean", criterion=name))[1]
        for name in ("adequacy", "fluency")
    ]
    assert again[0] is one
    assert again[1] is other


async def test_more_criteria_than_campaigns_are_kept_stay_and_share_their_scores(
    engine, answered_campaign, monkeypatch
):
    monkeypatch.setattr("app.analysis.fit_cache.MAX_CACHED_CAMPAIGNS", 1)
    fits, slug = FitCache(), answered_campaign.slug
    first, second = [await fits.load_answers(engine, slug, criterion=name) for name in ("adequacy", "fluency")]
    assert await fits.load_answers(engine, slug, criterion="adequacy") is first
    assert first.scores_by_criterion is second.scores_by_criterion
    assert np.array_equal(second.score, second.scores_by_criterion["fluency"])


async def test_a_table_of_all_criteria_is_fitted_once(engine, answered_campaign):
    fits, slug = FitCache(), answered_campaign.slug
    tables = [await fits.load_cached_or_fit_table(engine, slug, "halo", criterion=name) for name in ("", "fluency")]
    assert tables[0] is tables[1]
    with pytest.raises(NotFound):
        await fits.load_cached_or_fit_table(engine, slug, "halo", criterion="style")


async def test_a_criterion_that_is_not_there_is_refused_naming_those_that_are(engine, answered_campaign):
    with pytest.raises(NotFound) as refusal:
        await FitCache().load_answers(engine, answered_campaign.slug, criterion="style")
    assert refusal.value.code == "criterion_not_found"
    assert refusal.value.details["criteria"] == ["adequacy", "fluency"]


async def test_items_are_exported_with_a_row_for_each_criterion(engine, answered_campaign):
    found = await rows(engine, answered_campaign.slug, "items")
    assert [row["criterion"] for row in found] == ["adequacy"] * 12 + ["fluency"] * 12
    assert [row["id"] for row in found] == [f"v{k}" for k in range(12)] * 2
    both = [*await stored(engine, "score", 0), *await stored(engine, "score", 1)]
    assert [float(row["mode"]) for row in found] == pytest.approx([100 * score for score in both])
    assert found[0]["mean_score"] != found[12]["mean_score"]


async def test_responses_are_exported_with_a_row_for_each_criterion_and_the_place_in_which_it_was_asked(
    engine, answered_campaign
):
    found = await rows(engine, answered_campaign.slug, "responses")
    said = await fetch_rows(engine, "SELECT values FROM responses ORDER BY seq")
    assert [float(row["score"]) for row in found] == [score for (scores,) in said for score in scores]
    assert [row["criterion"] for row in found[:10]] == ["adequacy"] * 5 + ["fluency"] * 5
    for hit in {row["hit"] for row in found}:
        places = {row["criterion"]: row["criterion_position"] for row in found if row["hit"] == hit}
        assert sorted(places.values()) == ["1", "2"]
    orders = await fetch_rows(engine, "SELECT extra -> 'criteria_order' FROM responses ORDER BY seq")
    first = [row["criterion"] for row in found if row["criterion_position"] == "1"][::5]
    assert first == [order[0] for (order,) in orders]


async def test_the_export_of_responses_leads_another_campaign_to_the_same_posteriors(engine, answered_campaign):
    file = await open_export_or_refuse(engine, answered_campaign.slug, "responses")
    again = await create_campaign_with_criteria(engine, 2)
    await import_results(engine, again, "".join([piece async for piece in file.chunks]))
    statement = """SELECT criterion, number, state, judgments FROM current_posteriors
                   WHERE campaign_id = :campaign ORDER BY criterion, number"""
    one, other = [await fetch_rows(engine, statement, campaign=campaign.id) for campaign in (answered_campaign, again)]
    assert len(one) == 24
    assert one == other
    places = [
        [(row["item"], row["criterion"], row["criterion_position"]) for row in await rows(engine, slug, "responses")]
        for slug in (answered_campaign.slug, again.slug)
    ]
    assert places[0] == places[1]


async def test_what_needs_a_fit_is_of_one_criterion_and_says_so_in_its_name(engine, answered_campaign):
    first, second = [await rows(engine, answered_campaign.slug, "scores", criterion=name) for name in ("", "fluency")]
    assert [row["mean"] for row in first] != [row["mean"] for row in second]
    named = [
        await open_export_or_refuse(engine, answered_campaign.slug, what, criterion="fluency")
        for what in ("scores", "easl", "items")
    ]
    assert [(one.name, one.criterion) for one in named] == [("scores", "fluency"), ("easl", "fluency"), ("items", "")]
    assert [
        float(row["mode"]) for row in await rows(engine, answered_campaign.slug, "easl", criterion="fluency")
    ] == await stored(engine, "score", 1)


async def test_outputs_of_systems_have_a_mean_by_each_criterion(engine, researcher):
    campaign = await create_campaign_of_systems(engine, criteria=criteria_settings(2))
    await answer_all_hits(engine, campaign, people=2, hits=2)
    found = await rows(engine, campaign.slug, "segments")
    means = {name: {(row["segment"], row["system"]): row["mean_score"] for row in found if row["criterion"] == name}
             for name in ("adequacy", "fluency")}  # fmt: skip
    assert len(means["adequacy"]) == len(means["fluency"]) == len(found) / 2 == 24
    answered_campaign = [output for output, mean in means["adequacy"].items() if mean]
    assert all(means["adequacy"][output] != means["fluency"][output] for output in answered_campaign)
    address = f"/admin/campaigns/{campaign.slug}/items"
    pages = [(await researcher.get(address + query)).text for query in ("", "?criterion=fluency")]
    (segment, system), *_ = answered_campaign
    for html, name in zip(pages, ("adequacy", "fluency"), strict=True):
        assert f'aria-current="true">{name}</a>' in html
        assert f">{round(float(means[name][segment, system]))}</td>" in html
    assert f"{address}?page=1&amp;segment={segment}&amp;criterion=fluency#segment" in pages[1]


async def test_halo_is_exported(engine, answered_campaign):
    ((one),) = await rows(engine, answered_campaign.slug, "halo")
    assert (one["one"], one["other"]) == ("adequacy", "fluency")
    assert abs(float(one["within"])) < 0.5


async def test_the_analysis_page_switches_between_criteria_and_keeps_the_rest_of_its_address(
    researcher, answered_campaign
):
    page = f"/admin/campaigns/{answered_campaign.slug}/analysis"
    html = (await researcher.get(f"{page}?one=elo&criterion=fluency")).text
    assert f'<a href="{page}?one=elo">adequacy</a>' in html
    assert f'<a href="{page}?one=elo&amp;criterion=fluency" aria-current="true">fluency</a>' in html
    assert "How is its fluency?" in html
    assert f'data-waiting="{page}/criteria?one=elo&amp;criterion=fluency"' in html
    part = (await researcher.get(f"{page}/criteria?criterion=fluency")).text
    assert '<th scope="row">adequacy</th>' in part
    assert "The criteria were judged separately" in part
    scores = (await researcher.get(f"{page}/scores?criterion=fluency")).text
    assert "criterion=fluency#item" in scores
    assert (await researcher.get(f"{page}?criterion=style")).status_code == 404


async def test_the_export_page_offers_files_of_the_chosen_criterion(researcher, answered_campaign):
    html = (await researcher.get(f"/admin/campaigns/{answered_campaign.slug}/export?criterion=fluency")).text
    assert "/export/scores.csv?criterion=fluency" in html
    assert '/export/items.csv"' in html
    assert "A row for each criterion." in html


async def test_a_campaign_of_one_criterion_has_no_switch_no_column_and_no_halo(researcher, engine):
    campaign = await create_campaign_with_criteria(engine, 0)
    page = f"/admin/campaigns/{campaign.slug}"
    for part in ("", "/analysis", "/export"):
        html = (await researcher.get(page + part)).text
        assert "by-criterion" not in html
        assert "criterion=" not in html
    assert "criterion" not in (await rows(engine, campaign.slug, "items"))[0]


async def test_the_command_analyses_by_a_criterion(engine, answered_campaign, database_url):
    async def run(*options):
        arguments = ["analyse", answered_campaign.slug, *options]
        return await asyncio.to_thread(CliRunner().invoke, easel, arguments, env={"DATABASE_URL": database_url})

    means = [
        json.loads((await run("--method", "mean", "--format", "json", *of)).output)["rows"]
        for of in ([], ["--criterion", "adequacy"], ["--criterion", "fluency"])
    ]
    assert means[0] == means[1] != means[2]
    refused = await run("--criterion", "style")
    assert refused.exit_code == 1
    assert "criterion_not_found" in refused.output
    assert "adequacy" in (await run("--table", "halo")).output
