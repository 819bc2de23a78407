"""Pages, command and exports say which of several intervals of one score to report."""

import re

import pytest

from app.analysis.reported_interval import choose_reported_interval
from tests.annotation.hits.campaigns import create_running_campaign
from tests.annotation.hits.systems import answer_hits_of_systems, create_campaign_of_systems
from tests.exports.test_everything import opened_zip, rows


def advice_for(campaign):
    return choose_reported_interval(campaign.criteria[0]).advice


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


async def test_evenly_asked_items_have_the_interval_of_the_mean(engine):
    advice = advice_for(await create_running_campaign(engine))
    assert advice.startswith("Report the interval of Mean,")
    assert "Shrunken mean for items that you name because they lead" in advice


@pytest.mark.parametrize(
    "settings",
    [{"rule": "best"}, {"rule": "threshold"}, {"rule": "scores", "goal": "intervals", "when_reached": "release"}],
)
async def test_items_asked_about_because_of_their_scores_have_the_shrunken_interval(engine, settings):
    advice = advice_for(await create_running_campaign(engine, **settings))
    assert advice.startswith("Report the interval of Shrunken mean:")


async def test_systems_are_compared_by_their_table_and_their_level_has_the_interval_of_the_mean(engine):
    advice = advice_for(await create_campaign_of_systems(engine))
    assert advice.startswith("To compare systems, report the ranks and intervals of Ranks and clusters:")
    assert "For a score by itself, report the interval of Mean, which is wider" in advice


async def test_orders_of_systems_have_no_interval_for_other_annotators(engine):
    advice = advice_for(await create_campaign_of_systems(engine, design="pairwise", update_law="trueskill"))
    assert "no interval here allows for others" in advice
    assert "interval of Mean" not in advice


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({"design": "pairwise", "items_per_hit": 2, "update_law": "ra"}, "the method whose scores you report"),
        ({"design": "ranking", "items_per_hit": 4, "update_law": "ra"}, "Annotator-aware Bradley-Terry"),
        ({"design": "best_worst", "items_per_hit": 4, "update_law": "ra"}, "Best-worst counts"),
        ({"design": "magnitude", "items_per_hit": 4, "update_law": "log-normal"}, "Geometric mean"),
    ],
)
async def test_other_designs_have_the_interval_of_a_method_that_reads_their_answers(engine, settings, method):
    assert advice_for(await create_running_campaign(engine, **settings)).startswith(f"Report the interval of {method}")


async def test_labels_have_no_scores_and_so_no_advice(engine):
    labels = {"labels": ["a", "b"]}
    campaign = await create_running_campaign(
        engine, design="categories", design_settings=labels, update_law="dirichlet"
    )
    assert advice_for(campaign) == ""


async def test_the_tables_of_scores_and_of_systems_say_which_interval_to_report(engine, researcher):
    campaign = await create_campaign_of_systems(engine)
    await answer_hits_of_systems(engine, campaign, by=4, each=4)
    for part in ("scores", "systems"):
        html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/{part}")).text
        assert advice_for(campaign) in words(html)
        assert 'href="/admin/help/statistics/intervals#which-interval-to-report"' in html


async def test_the_methods_paragraph_names_the_interval_and_the_codebook_says_which_to_report(engine):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=6)
    await answer_hits_of_systems(engine, campaign, by=3, each=3)
    folder = await opened_zip(engine, campaign)
    methods = folder.read("METHODS.md").decode()
    assert "calibrated intervals" in methods
    assert "Gordon K. Smyth. 2004" in methods
    meanings = {column: meaning for _, column, meaning, *_ in rows(folder, "codebook.csv")}
    for column, advice in {
        "low_95": "do not report it as the precision of a score",
        "calibrated_high_95": "report it, except for items that were selected by their scores",
        "shrunken_high_95": "report it for items that were selected by their scores",
        "easl_low": "do not report it as the precision of a score",
        "mean_high": "report it, except for items that were selected by their scores",
    }.items():
        assert advice in meanings[column]
