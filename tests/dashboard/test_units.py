"""Researchers' pages of campaigns whose answers are no points: numbers in their own unit, and answers as given."""

import csv
import io
import re
from html import unescape

import pytest

from app.exports.registry import open_export_or_refuse
from tests.annotation.hits.campaigns import create_running_campaign
from tests.campaigns.drafts import import_results

pytestmark = pytest.mark.usefixtures("app")

HEADER = "hit,annotator,item,value\n"
BEST_WORST = (
    HEADER + "h1,Ann,v0,2\nh1,Ann,v1,1\nh1,Ann,v2,2\nh1,Ann,v3,3\nh2,Ben,v0,1\nh2,Ben,v1,2\nh2,Ben,v2,2\nh2,Ben,v3,3\n"
)
GIVEN = {
    "magnitude": (
        HEADER + "h1,Ann,v0,1000\nh2,Ben,v0,50\nh3,Ann,v1,200\n",
        ["50, 0.5 × the reference", "1,000, 10 × the reference"],
    ),
    "best_worst": (BEST_WORST, ["best", "neither"]),
    "ranking": (HEADER + "h1,Ann,v0,2\nh1,Ann,v1,1\nh1,Ann,v2,2\n", ["2nd of 3, tied"]),
    "pairwise": (HEADER + "h1,Ann,v1,1\nh1,Ann,v0,2\nh2,Ben,v0,1\nh2,Ben,v2,1\n", ["tie", "not chosen, right"]),
}


async def answered(engine, design):
    campaign = await create_running_campaign(engine, items=4, design=design)
    await import_results(engine, campaign, GIVEN[design][0])
    return campaign


@pytest.mark.parametrize("design", GIVEN)
async def test_the_panel_tells_answers_as_they_were_given(engine, researcher, design):
    campaign = await answered(engine, design)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}?item=v0")).text
    answers = html.partition('aria-label="Answers"')[2].partition("</table>")[0]
    assert [unescape(words) for words in re.findall(r'<td class="words">([^<]*)</td>', answers)] == GIVEN[design][1]


@pytest.mark.parametrize("design", GIVEN)
async def test_no_page_speaks_of_points(engine, researcher, design):
    campaign = await answered(engine, design)
    for part in ("?item=v0", "/export", "/figures/scores.svg", "/figures/item.svg?item=v0", "/figures/uncertainty.svg"):
        html = (await researcher.get(f"/admin/campaigns/{campaign.slug}{part}")).text
        read = re.sub(r"<(script|style).*?</\1>", "", html, flags=re.DOTALL)
        assert not re.search(r"(?<!percentage )points\b", re.sub(r"<[^>]*>", " ", read)), part


async def test_a_thick_line_is_drawn_where_it_is_in_the_unit_of_the_axis(engine, researcher):
    for design, drawn in (("magnitude", True), ("best_worst", False)):
        campaign = await answered(engine, design)
        html = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
        assert ('class="calibrated"' in html) == drawn
        assert ("Win rate, %" in html) != drawn


async def rows_of(engine, campaign):
    file = await open_export_or_refuse(engine, campaign.slug, "items")
    return list(csv.DictReader(io.StringIO("".join([piece async for piece in file.chunks]))))


async def test_items_of_a_magnitude_campaign_are_exported_as_ratios(engine):
    first, second, *_ = await rows_of(engine, await answered(engine, "magnitude"))
    assert float(first["low_95"]) < float(first["ratio"]) < float(first["high_95"])
    assert 1 < float(second["ratio"]) < 2  # 2, drawn towards the prior's 1
    assert float(second["mean_ratio"]) == pytest.approx(2.0)
    assert {"mean_score", "standard_error", "median"}.isdisjoint(first)


async def test_the_mean_of_places_is_called_the_percentage_that_it_is(engine):
    first, *_ = await rows_of(engine, await answered(engine, "ranking"))
    assert float(first["mean_percent_beaten"]) == pytest.approx(25)
    assert "mean_score" not in first


async def test_the_analysis_begins_with_the_method_that_is_usual_for_the_design(engine, researcher):
    for design, pair in (
        ("magnitude", ["log-normal", "geometric_mean"]),
        ("best_worst", ["trueskill", "best_worst_counts"]),
    ):
        campaign = await answered(engine, design)
        address = f"/admin/campaigns/{campaign.slug}/analysis/scores"
        html = (await researcher.get(address, headers={"X-Easel": "fetch"})).text
        assert re.findall(r'<option value="([^"]+)" selected', html) == pair


async def test_the_axis_of_scores_has_the_labels_that_annotators_saw_at_its_ends(engine, researcher):
    rude = {"design": "ordinal", "design_settings": {"labels": ["very rude", "so so", "very polite"]}, "items": 6}
    pages = {}
    for name, settings in (
        ("points", {"low_label": "very sad", "high_label": "very glad"}),
        ("labels", rude),
        ("order", {"design": "ranking", "items_per_hit": 3}),
        ("other unit", {"update_law": "trueskill", "low_label": "very sad"}),
    ):
        campaign = await create_running_campaign(engine, **settings)
        pages[name] = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text.partition('id="scores"')[2]
    assert "from 0 (very sad) to 100 (very glad), with 95 % intervals" in pages["points"]
    assert "from 0 (very rude) to 100 (very polite), with 95 % intervals" in pages["labels"]
    assert re.findall(r'<line class="axis" x1="([\d.]+)%"[^>]*y1="14"', pages["labels"]) == ["0.0", "50.0", "100.0"]
    assert 'title="very polite">very polite</span>' in pages["labels"]
    assert '<span class="ends"' not in pages["order"]
    assert "very sad" not in pages["other unit"]
