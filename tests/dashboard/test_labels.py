"""Researchers' pages of a campaign whose posteriors count labels: no points, no means, no match quality."""

import re
from html import unescape
from xml.etree import ElementTree as ET

import pytest

from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.state import load_dashboard_state
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import NOW, create_running_campaign
from tests.campaigns.drafts import import_results

pytestmark = pytest.mark.usefixtures("app")

SENSES = {"labels": ["bank: money", "shore: a river’s", "row", "<none>"]}
GIVEN = [("W1", 0, 1), ("W2", 0, 1), ("W3", 0, 2), ("W1", 1, 0), ("W2", 1, 3), ("W3", 2, 3)]
NOT_SHOWN = ("points", "Calibrated", "Match quality", "heatmap", "± ", 'data-plot="uncertainty"')


async def labelled(engine, **settings):
    """Create a campaign in which item 0 has shore, shore and row, item 1 has bank and <none>, item 2 has <none>,
    and item 3 has no label.
    """
    campaign = await create_running_campaign(engine, items=4, items_per_hit=1, design_settings=SENSES, **settings)
    rows = "".join(f"{who},A{k},v{item},{label}\n" for k, (who, item, label) in enumerate(GIVEN))
    await import_results(engine, campaign, "annotator,hit,item,value\n" + rows)
    return campaign


@pytest.fixture
async def campaign(engine):
    return await labelled(engine, design="categories")


def address(campaign, part=""):
    return f"/admin/campaigns/{campaign.slug}{part}"


def cells(html, key):
    """Return the cell texts in the row of an item."""
    row = html.partition(f'<tr data-key="{key}"')[2].partition("</tr>")[0]
    found = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in found]


def counts(html, title):
    """Return the rows of a table of labels: label and numbers."""
    table = html.partition(title)[2].partition('<table class="counts">')[2].partition("</table>")[0]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>.*?</svg></td>(.*?)</tr>", table)
    return {unescape(label): [re.sub(r"<[^>]*>", " ", rest).split()][0] for label, rest in rows}


async def test_each_item_has_its_likeliest_label_and_its_share(researcher, campaign):
    html = (await researcher.get(address(campaign))).text
    assert cells(html, 0)[1:4] == ["verb 0", "shore", "56.2"]
    assert cells(html, 1)[1:4] == ["verb 1", "no label leads", "41.7"]
    assert cells(html, 2)[1:4] == ["verb 2", "<none>", "62.5"]
    assert cells(html, 3)[1:4] == ["verb 3", "not judged yet", ""]
    read = re.sub(r'<script type="application/json".*?</script>', "", html)
    assert [words for words in NOT_SHOWN if words in read] == []


async def test_the_page_counts_items_by_their_label(researcher, campaign):
    html = (await researcher.get(address(campaign))).text
    assert counts(html, "Labels of items") == {
        "bank": ["0"], "shore": ["1"], "row": ["0"], "<none>": ["1"], "no label leads": ["1"],
    }  # fmt: skip
    # The median of .25, .417, .5625 and .625.
    assert "49 %</b> typical share of the likeliest label" in html


async def test_an_items_panel_counts_its_labels_and_says_who_gave_them(researcher, campaign):
    html = (await researcher.get(address(campaign, "?item=v0"))).text
    assert counts(html, 'id="item-title"') == {
        "bank": ["0", "6", "%"], "shore": ["2", "56", "%"], "row": ["1", "31", "%"], "<none>": ["0", "6", "%"],
    }  # fmt: skip
    curve = "How likely each share of the likeliest label is: Dirichlet(0.25, 2.25, 1.25, 0.25), density per %"
    assert curve in html
    panel = html.partition('id="item-title"')[2]
    assert re.findall(r'>A\d</a></td><td class="words">(\w+)</td>', panel) == ["row", "shore", "shore"]
    assert "Score</th>" not in panel


async def test_the_figures_have_words_for_shares_and_no_heatmap(engine, campaign):
    async with engine.connect() as connection:
        row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        state = await load_dashboard_state(connection, PosteriorCache(), IncrementalReplays(), row.criteria[0], now=NOW)
    assert (state.figures["heatmap"], state.heatmap, state.unread_answer_count) == (None, None, 0)
    assert state.figures["unit"]["axis"] == "share of the likeliest label, %"
    assert state.figures["classes"] == [["bank", 0], ["shore", 1], ["row", 0], ["<none>", 1], ["no label leads", 1]]
    assert state.figures["words"]["held"] == ""


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("/figures/scores.svg", "shore: verb 0"),
        ("/figures/distribution.svg", "share of the likeliest label, %"),
        ("/figures/item.svg?item=v0", "density per %"),
    ],
)
async def test_drawings_speak_of_shares(researcher, campaign, part, words):
    drawn = ET.fromstring((await researcher.get(address(campaign, part))).text)
    said = [element.text or "" for element in drawn.iter()]
    assert words in said
    assert not any("points" in one for one in said)


@pytest.mark.parametrize("part", ["/match-quality", "/match-quality.csv", "/figures/uncertainty.svg"])
async def test_what_needs_a_scale_is_not_there(researcher, campaign, part):
    reply = await researcher.get(address(campaign, part), headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "figure_not_found")


async def test_the_list_of_campaigns_says_nothing_of_an_interval(researcher, campaign):
    html = (await researcher.get("/admin")).text
    row = html.partition(address(campaign))[2].partition("</tr>")[0]
    assert "points" not in row
    assert "loading" not in row


async def test_counted_points_of_an_ordinal_scale_are_shown_as_labels_beside_the_interval_of_their_mean(
    engine, researcher
):
    campaign = await labelled(engine, design="ordinal", update_law="dirichlet")
    html = (await researcher.get(address(campaign, "?item=v0"))).text
    assert cells(html, 0)[1:4] == ["verb 0", "shore: a river’s", "56.2"]
    assert 'data-plot="uncertainty"' in html
    assert "typical interval" in html
    assert "Calibrated" not in html


async def test_points_of_an_ordinal_scale_have_scores_and_the_panel_names_them(engine, researcher):
    campaign = await labelled(engine, design="ordinal", update_law="easl")
    html = (await researcher.get(address(campaign, "?item=v0"))).text
    assert cells(html, 0)[1:3] == ["verb 0", "44.4"]  # the mean of places 1/3, 1/3 and 2/3
    assert "Match quality" in html
    panel = html.partition('id="item-title"')[2]
    assert counts(html, 'id="item-title"')["shore: a river’s"] == ["2"]
    answers = panel.partition("Answers")[2]
    assert re.findall(r'<td class="words">([^<]*)</td>', answers) == ["row", "shore: a river’s", "shore: a river’s"]
