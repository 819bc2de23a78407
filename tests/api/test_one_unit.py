"""One item's numbers are in one unit on every page, in every file and in the API."""

import csv
import io
import json
import re
from html import unescape

import pytest

from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.api.conftest import API

FETCH = {"X-Easel": "fetch"}
SLIDERS = ("easl", "easl-aware", "ra", "trueskill")


async def create_answered_campaign(engine, people=4, **settings):
    campaign = await create_running_campaign(
        engine, **{"items": 6, "judgments_per_item": 20, "items_per_hit": 3} | settings
    )
    design = settings.get("design", "slider")
    for person in range(people):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        for _ in range(2):
            hit = await try_to_lease_hit(engine, me)
            scores = [7.0 + 13 * item + 3 * person for item in hit.items]
            if design == "ranking":
                scores = [1.0 + sum(other < item for other in hit.items) for item in hit.items]
            if design == "categories":
                scores = [float(item % 2) for item in hit.items]
            await submit_scores(engine, me, hit, scores=scores)
    return campaign


async def row_on_the_page(researcher, campaign, number):
    """Return the cell texts of an item's row on the campaign's page, by column title."""
    chosen = {"columns": ["posterior", "mean", "sd"]}
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}", params=chosen)).text
    table = html.partition("with their scores")[2].partition("</table>")[0]
    heads = re.findall(r"<th scope=\"col\".*?</th>", table, re.DOTALL)
    row = table.partition(f'<tr data-key="{number}"')[2].partition("</tr>")[0]
    cells = re.findall(r"<t[dh][ >].*?</t[dh]>", row, re.DOTALL)
    told = [[re.sub(r"<[^>]*>|[↑↓]", "", unescape(one)).strip() for one in some] for some in (heads, cells)]
    return dict(zip(*told, strict=True))


async def rows_of(api_client, campaign, what, format_="csv"):
    reply = await api_client.get(f"{API}/campaigns/{campaign.slug}/export/{what}", params={"format": format_})
    assert reply.status_code == 200, reply.text
    if format_ == "jsonl":
        return {row["id"]: row for row in map(json.loads, reply.text.splitlines())}
    return {row["id"]: row for row in csv.DictReader(io.StringIO(reply.text))}


@pytest.mark.parametrize("law", SLIDERS)
async def test_a_score_is_the_same_number_of_points_on_pages_in_files_and_for_programs(
    engine, researcher, api_client, law
):
    campaign = await create_answered_campaign(engine, update_law=law)
    name = "mode" if law != "trueskill" else "mean"
    row = await row_on_the_page(researcher, campaign, 4)
    item = (await rows_of(api_client, campaign, "items"))["v4"]
    line = (await rows_of(api_client, campaign, "items", "jsonl"))["v4"]
    scores = (await rows_of(api_client, campaign, "scores"))["v4"]
    score = float(item[name])
    assert 30 < score < 100
    assert row["Score"] == f"{score:.1f}"
    assert row["SD"] == f"{float(item['standard_deviation']):.1f}"
    assert row["Interval of the score"] == f"{float(item['low_95']):.0f} to {float(item['high_95']):.0f}"
    assert (line[name], line["low_95"]) == (score, float(item["low_95"]))
    names = (law, f"{law}_low", f"{law}_high")
    assert [float(scores[name]) for name in names] == pytest.approx(
        [score, float(item["low_95"]), float(item["high_95"])]
    )
    assert float(scores["mean"]) == pytest.approx(float(item["mean_score"]))

    posteriors = (await api_client.get(f"{API}/campaigns/{campaign.slug}/posteriors")).json()
    posterior = next(one for one in posteriors["posteriors"] if one["id"] == "v4")
    assert "points" in posteriors["unit_of_means"]
    shown = posterior["as_shown"]
    assert [shown[name] for name in ("score", "standard_deviation", "low", "high", "mean")] == [
        float(item[name]) for name in (name, "standard_deviation", "low_95", "high_95", "mean_score")
    ]
    assert posterior["score"] * 100 == pytest.approx(score)

    methods = (await api_client.get(f"{API}/campaigns/{campaign.slug}/analysis/scores/{law}")).json()
    found = next(one for one in methods["rows"] if one["id"] == "v4")
    assert found["score"] == pytest.approx(score)
    assert methods["method"]["unit"] == ("points, 0 to 100" if law in ("easl", "easl-aware") else posteriors["unit"])
    analysis = (
        await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/scores?one={law}&other=mean", headers=FETCH)
    ).text
    assert f'<td class="figure score">{score:.1f}</td>' in analysis


async def test_an_item_without_judgments_has_no_score_in_files_and_for_programs_as_on_the_page(
    engine, researcher, api_client
):
    campaign = await create_answered_campaign(engine, people=1, items=9)
    items = await rows_of(api_client, campaign, "items")
    (unjudged, *_) = [name for name, item in items.items() if item["judgments"] == "0"]
    scored = ("mode", "standard_deviation", "low_95", "high_95")
    assert [items[unjudged][name] for name in scored] == [""] * 4
    assert items[unjudged]["alpha"] == "1.0"
    lines = await rows_of(api_client, campaign, "items", "jsonl")
    assert [lines[unjudged][name] for name in scored] == [None] * 4
    posteriors = (await api_client.get(f"{API}/campaigns/{campaign.slug}/posteriors")).json()["posteriors"]
    shown = {one["id"]: one["as_shown"] for one in posteriors}
    assert [shown[unjudged][name] for name in ("score", "standard_deviation", "low", "high")] == [None] * 4
    row = await row_on_the_page(researcher, campaign, unjudged.removeprefix("v"))
    assert [row[name] for name in ("Score", "SD", "Interval of the score")] == [""] * 3
    assert all(item["mode"] and shown[name]["score"] for name, item in items.items() if item["judgments"] != "0")


async def test_the_program_that_reads_the_easl_file_finds_its_own_unit(engine, api_client):
    campaign = await create_answered_campaign(engine)
    item = (await rows_of(api_client, campaign, "items"))["v4"]
    model = (await rows_of(api_client, campaign, "easl"))["v4"]
    assert 100 * float(model["mode"]) == pytest.approx(float(item["mode"]))
    assert (model["alpha"], model["beta"]) == (item["alpha"], item["beta"])
    assert float(item["standard_deviation"]) == pytest.approx(100 * float(model["var"]) ** 0.5)


async def test_shares_are_per_cent_in_files_as_on_pages_and_columns_say_so(engine, researcher, api_client):
    ranked = await create_answered_campaign(engine, design="ranking")
    item = (await rows_of(api_client, ranked, "items"))["v1"]
    assert float(item["mean_percent_beaten"]) > 50
    assert float(item["calibrated_low_95"]) <= float(item["mean_percent_beaten"])
    wins = (await api_client.get(f"{API}/campaigns/{ranked.slug}/analysis/scores/expected_wins")).json()
    assert wins["method"]["unit"] == "chance of beating another item, %"
    assert max(row["score"] for row in wins["rows"]) > 50
    labelled = await create_answered_campaign(engine, design="categories", design_settings={"labels": ["a", "b"]})
    row = await row_on_the_page(researcher, labelled, 1)
    item = (await rows_of(api_client, labelled, "items"))["v1"]
    assert row["Share"] == f"{float(item['label_percent']):.1f}"
    assert row["Interval of the score"] == f"{float(item['low_95']):.0f} to {float(item['high_95']):.0f}"
