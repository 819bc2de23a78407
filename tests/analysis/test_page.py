"""The analysis page over HTTP: each part by itself, what cannot be estimated, pictures and files."""

import csv
import io
import re
from collections import defaultdict
from itertools import product
from xml.etree import ElementTree as ET

import pytest
from sqlalchemy import insert

from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.page_parts import page_parts_by_name
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import tables
from tests.analysis.answers import OFFERED
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)

pytestmark = pytest.mark.usefixtures("app")

FETCH = {"X-Easel": "fetch"}
PARTS = [*page_parts_by_name()]


def address(campaign, part=""):
    return f"/admin/campaigns/{campaign.slug}/analysis{part}"


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine, items=10, judgments_per_item=6)


@pytest.fixture
async def answered_campaign(engine, campaign):
    """Let six annotators score all ten items; the last one reverses the scale."""
    for person in range(6):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        for _ in range(2):
            hit = await try_to_lease_hit(engine, me)
            scores = [float(min(100, max(0, 8 * item + 3 * person))) for item in hit.items]
            await submit_scores(engine, me, hit, scores=scores if person < 5 else [100 - score for score in scores])
    return campaign


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


async def test_strangers_are_sent_to_log_in(client, answered_campaign):
    for part in ("", "/scores", "/figures/scores.svg", "/tables/agreement.csv"):
        reply = await client.get(address(answered_campaign, part))
        assert (reply.status_code, reply.headers["location"][:12]) == (303, "/login?next="), part


async def test_the_page_is_a_tab_of_the_campaign_and_links_to_every_part(researcher, answered_campaign):
    assert (
        f'href="{address(answered_campaign)}"'
        in (await researcher.get(f"/admin/campaigns/{answered_campaign.slug}")).text
    )
    page = (await researcher.get(address(answered_campaign, "?one=elo"))).text
    for part in PARTS:
        assert (f'<a href="{address(answered_campaign)}/{part}?one=elo">Show ' in page) == (
            part not in ("graded_response", "systems", "criteria", "label_sets", "groups", "wins")
        )
    assert 'aria-current="page">Analysis' in page


async def test_every_part_is_a_page_of_its_own_and_our_script_gets_it_alone(researcher, answered_campaign, subtests):
    for part in PARTS:
        with subtests.test(part=part):
            reply = await researcher.get(address(answered_campaign, f"/{part}"))
            assert reply.status_code == 200
            assert f'<section class="part" id="{part}"' in reply.text
            assert "<h1>Verbs</h1>" in reply.text
            assert 'aria-current="page">' in reply.text

            html = (await researcher.get(address(answered_campaign, f"/{part}"), headers=FETCH)).text
            assert "<html" not in html
            assert html.count("<section") == 1
            assert not re.search(r"\b(nan|NaN|inf|None)\b", html)
            assert "style=" not in html


async def test_every_method_can_be_shown_beside_another(researcher, answered_campaign, subtests):
    for method in OFFERED.scores:
        with subtests.test(method=method):
            other = "mean" if method != "mean" else "elo"
            html = (
                await researcher.get(address(answered_campaign, f"/scores?one={method}&other={other}"), headers=FETCH)
            ).text
            assert f'<option value="{method}" selected>' in html
            assert SCORE_METHODS[method].assumes.replace("'", "&#39;") in html
            assert "Spearman" in html
            assert html.count('<circle class="dot"') == 10


async def test_scores_are_told_from_which_judgments_they_come(researcher, answered_campaign):
    html = (await researcher.get(address(answered_campaign, "/scores"))).text
    assert "From 60 judgments in 12 tasks by 6 annotators; 10 of 10 items judged." in html


async def test_items_link_to_who_said_what(researcher, answered_campaign):
    html = (await researcher.get(address(answered_campaign, "/scores"))).text
    assert f'<a href="/admin/campaigns/{answered_campaign.slug}?item=v3#item">verb 3</a>' in html


def table_of(html):
    return re.findall(r'<th scope="row"><a [^>]*>(verb \d+)</a>', html.partition('id="scores-table"')[2])


async def test_items_are_sorted_by_the_first_method_unless_the_address_says_otherwise(researcher, answered_campaign):
    async def shown(query):
        return table_of((await researcher.get(address(answered_campaign, f"/scores?one=mean&other=elo{query}"))).text)

    usual = await shown("")
    assert usual == await shown("&table=scores&sort=one")
    assert await shown("&table=scores&sort=one&order=up") == usual[::-1]
    assert await shown("&table=scores&sort=item&order=up") == [f"verb {i}" for i in range(10)]
    assert (await shown("&table=scores&sort=item"))[0] == "verb 9"
    assert sorted(await shown("&table=scores&sort=shift")) == sorted(usual)
    assert await shown("&table=other&sort=one&order=up") == usual


async def test_items_are_searched_by_text_and_id(researcher, answered_campaign):
    async def shown(search):
        return (await researcher.get(address(answered_campaign, f"/scores?table=scores&search={search}"))).text

    assert table_of(await shown("VERB+7")) == table_of(await shown("v7")) == ["verb 7"]
    assert "No item contains “swim”" in await shown("swim")


async def test_two_methods_on_one_scale_have_a_line_where_they_are_the_same(researcher, answered_campaign):
    same = (await researcher.get(address(answered_campaign, "/scores?one=easl&other=mean"))).text
    different = (await researcher.get(address(answered_campaign, "/scores?one=easl&other=elo"))).text
    assert 'class="level"' in same
    assert "both scores are the same" in same
    assert 'class="level"' not in different


async def test_every_item_is_counted_in_squares_where_there_are_too_many_for_dots(
    researcher, answered_campaign, monkeypatch
):
    monkeypatch.setattr("app.analysis.score_page_part.MAX_SCATTER_DOTS", 5)
    html = (await researcher.get(address(answered_campaign, "/scores"))).text
    assert 'class="square"' in html
    assert '<circle class="dot"' not in html
    assert "10 items. Darker squares contain more items." in html


SECTIONS = defaultdict(list)
for name in OFFERED.tables:
    if not name.startswith("graded"):
        SECTIONS[TABLE_METHODS[name].section.name].append(name)


async def test_every_table_of_a_part_is_there_or_says_why_not(researcher, answered_campaign, subtests):
    for section in SECTIONS:
        with subtests.test(section=section):
            html = (await researcher.get(address(answered_campaign, f"/{section}"))).text
            for name in SECTIONS[section]:
                part = html.partition(f'id="{name}-table"')[2].partition('<div class="table-part"')[0]
                assert TABLE_METHODS[name].explanation.partition(":")[0][:60] in words(html), name
                assert '<th scope="row">' in part or 'class="notice warning"' in part, name


async def test_each_coefficient_stands_with_its_interval_and_its_sentence(researcher, answered_campaign):
    html = (await researcher.get(address(answered_campaign, "/agreement"), headers=FETCH)).text
    rows = re.findall(r"<tr>\s*<th scope=\"row\">.*?</tr>", html, re.DOTALL)
    assert len(rows) >= 5
    for row in rows:
        assert '<p class="aside">' in row
        assert "<circle" in row
        # Any two of these annotators have exactly the same order or the opposite one, so no draw of the items varies.
        assert bool(re.search(r"\d to −?\d", row)) != ("Spearman between annotators" in row)
    assert "In every row: 10 items, 6 annotators, 150 pairs of judgments." in html


async def test_the_annotators_picture_has_a_dot_for_each(researcher, answered_campaign):
    html = (await researcher.get(address(answered_campaign, "/annotators"), headers=FETCH)).text
    assert html.count('<circle class="dot"') == 6
    assert html.count("reliability 0.") == 6


async def test_many_annotators_are_counted_in_fields(researcher, answered_campaign, monkeypatch):
    monkeypatch.setattr("app.analysis.annotator_picture.MAX_SCATTER_DOTS", 3)
    html = (await researcher.get(address(answered_campaign, "/annotators"), headers=FETCH)).text
    assert 'class="square"' in html
    assert "6 annotators. Darker squares contain more annotators." in html


async def test_columns_without_any_figure_are_left_out_also_without_a_note_where_scores_are_given(
    engine, researcher, campaign
):
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[0.0, 25.0, 50.0, 75.0, 100.0])
    html = (await researcher.get(address(campaign, "/annotators"), headers=FETCH)).text
    assert "Mean score" in html
    assert "Transitivity kappa" not in html
    assert "transitivity" not in html.lower().partition("<tbody>")[0]
    assert "No transitivity:" not in html


async def test_labels_are_cut_into_as_many_classes_as_chosen(researcher, answered_campaign):
    html = (await researcher.get(address(answered_campaign, "/labels?classes=4"), headers=FETCH)).text
    prevalence = html.partition('id="labels-table"')[2].partition('<div class="table-part"')[0]
    assert prevalence.count('<th scope="row">') == 4
    assert "<option selected>4</option>" in html


async def test_a_long_table_has_pages_a_search_and_heads_to_sort_by(engine, researcher):
    campaign = await create_running_campaign(engine, items=30, judgments_per_item=2, items_per_hit=10)
    for person in range(2):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        for _ in range(3):
            hit = await try_to_lease_hit(engine, me)
            await submit_scores(engine, me, hit, scores=[float(3 * item + person) for item in hit.items])
    first = (await researcher.get(address(campaign, "/labels?classes=3"))).text
    assert "1 to 20 of 30 rows" in first
    following = re.search(r'href="([^"]*page=2[^"]*)#label_items-table" rel="next"', first)
    assert following
    second = (await researcher.get(following[1].replace("&amp;", "&"))).text
    assert "21 to 30 of 30 rows" in second
    assert "<option selected>3</option>" in second
    found = (await researcher.get(address(campaign, "/labels?table=label_items&search=verb+29"))).text
    assert "verb 29</a>" in found
    assert "verb 28</a>" not in found
    nothing = (await researcher.get(address(campaign, "/labels?table=label_items&search=swim"))).text
    assert "No row contains “swim”" in nothing


async def test_systems_are_compared_where_items_name_them(engine, researcher):
    campaign = await of_systems(engine)
    html = (await researcher.get(address(campaign, "/graded_response"), headers=FETCH)).text
    table = html.partition('id="graded_response-table"')[2].partition('<div class="table-part"')[0]
    assert table.count('<th scope="row">') == 3
    assert '<option value="">the most compared system</option><option>A</option>' in html
    chosen = (await researcher.get(address(campaign, "/graded_response?baseline=B"), headers=FETCH)).text
    assert "<option selected>B</option>" in chosen
    unknown = (await researcher.get(address(campaign, "/graded_response?baseline=Z"), headers=FETCH)).text
    assert "Use the most compared system as baseline" in unknown


async def test_a_note_that_holds_for_several_tables_of_a_part_is_said_once(engine, researcher):
    campaign = await of_systems(engine)
    html = (await researcher.get(address(campaign, "/graded_response"), headers=FETCH)).text
    assert html.count("which has no score") == 1


async def of_systems(engine):
    """Create a campaign with outputs of three systems for six segments, in random HITs."""
    chosen = CampaignSettings(
        name="Systems", question="How good?", judgments_per_item=4, items_per_hit=6, low_label="bad", high_label="good"
    )
    async with engine.begin() as connection:
        draft = await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=NOW)
        fields = [{"system": system, "segment": f"s{segment}"} for segment in range(6) for system in "ABC"]
        rows = [
            {"campaign_id": draft.id, "number": i, "external_id": f"o{i}", "shown": f"output {i}", "fields": one}
            for i, one in enumerate(fields)
        ]
        await connection.execute(insert(tables.items), rows)
        campaign = await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=NOW)
    for person in range(4):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        for _ in range(3):
            hit = await try_to_lease_hit(engine, me)
            noise = [(7 * item + 11 * person) % 40 for item in hit.items]
            scores = [float(20 * (item % 3) + more) for item, more in zip(hit.items, noise, strict=True)]
            await submit_scores(engine, me, hit, scores=scores)
    return campaign


async def test_without_systems_the_part_is_not_offered_and_says_why_to_who_asks(researcher, answered_campaign):
    assert "graded_response" not in (await researcher.get(address(answered_campaign))).text
    html = words((await researcher.get(address(answered_campaign, "/graded_response"))).text)
    assert "This needs items with the columns" in html


# What cannot be estimated


async def test_before_the_first_answer_the_page_says_so(researcher, campaign):
    for part in ("", "/scores"):
        html = (await researcher.get(address(campaign, part))).text
        assert "No answers yet." in html
        assert f'href="/admin/campaigns/{campaign.slug}/share">share the link' in html


async def test_a_draft_says_when_its_analysis_appears(engine, researcher):
    draft = await create_running_campaign(engine, launched=False, name="Draft")
    assert "appears after the first answers" in (await researcher.get(address(draft))).text


async def test_a_part_asked_for_before_the_first_answer_says_that_there_is_none(researcher, campaign):
    for part, headers in product(PARTS, ({}, FETCH)):
        reply = await researcher.get(address(campaign, f"/{part}"), headers=headers)
        assert reply.status_code == 200, part
        assert "No answers yet." in reply.text, part


async def test_one_annotator_hides_nothing_but_what_needs_two(engine, researcher, campaign):
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[0.0, 25.0, 50.0, 75.0, 100.0])
    agreement = (await researcher.get(address(campaign, "/agreement"), headers=FETCH)).text
    assert "one annotator" in words(agreement)
    scores = (await researcher.get(address(campaign, "/scores?one=mean&other=easl"), headers=FETCH)).text
    assert "5 of 10 items judged" in scores
    assert scores.count('<circle class="dot"') == 5
    for part in PARTS:
        reply = await researcher.get(address(campaign, f"/{part}"), headers=FETCH)
        assert reply.status_code == 200
        assert not re.search(r"\b(nan|NaN|inf|None)\b", reply.text)


async def test_a_method_without_scores_says_why_beside_one_that_has_them(engine, researcher, campaign):
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[50.0] * 5)
    html = (await researcher.get(address(campaign, "/scores?one=mean&other=z_scores"), headers=FETCH)).text
    assert 'class="notice warning"' in html
    assert "50.0" in html
    assert 'class="drawing' not in html


async def test_what_does_not_exist_is_not_found(researcher, answered_campaign):
    for part in ("/nothing", "/scores?one=nothing", "/figures/nothing.svg", "/tables/nothing.csv"):
        assert (await researcher.get(address(answered_campaign, part))).status_code == 404, part


async def test_a_campaign_that_does_not_exist_is_not_found(researcher):
    assert (await researcher.get("/admin/campaigns/nowhere/analysis")).status_code == 404


async def test_an_address_that_makes_no_sense_is_refused(researcher, answered_campaign):
    for query in ("classes=1", "classes=11", "page=0", "order=sideways", f"search={'x' * 201}"):
        assert (await researcher.get(address(answered_campaign, f"/scores?{query}"))).status_code == 422, query


# Files


@pytest.mark.parametrize(("name", "dots"), [("scores", 10), ("annotators", 6)])
async def test_pictures_are_files_for_papers(researcher, answered_campaign, name, dots):
    reply = await researcher.get(address(answered_campaign, f"/figures/{name}.svg?one=mean&other=elo"))
    assert reply.headers["content-type"] == "image/svg+xml"
    root = ET.fromstring(reply.text)
    assert len(root.findall(".//{http://www.w3.org/2000/svg}circle")) == dots
    assert all(circle.get("fill") for circle in root.iter("{http://www.w3.org/2000/svg}circle"))


async def test_a_table_without_a_picture_has_no_file_of_one(researcher, answered_campaign):
    reply = await researcher.get(
        address(answered_campaign, "/figures/agreement.svg"), headers={"accept": "application/json"}
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "figure_not_found")


async def test_a_table_is_a_file_with_all_rows_and_columns(researcher, answered_campaign):
    reply = await researcher.get(address(answered_campaign, "/tables/label_items.csv?classes=3"))
    assert reply.headers["content-disposition"].startswith(
        f'attachment; filename="{answered_campaign.slug}-label_items-20'
    )
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert {row["id"] for row in rows} == {f"v{i}" for i in range(10)}
    assert {"probability_0", "probability_1", "probability_2"} <= set(rows[0])


async def test_labels_have_findings_and_a_table_with_one_measure_says_so(engine, researcher):
    labels = {"labels": ["noun", "verb"]}
    campaign = await create_running_campaign(
        engine, items=2, design="categories", design_settings=labels, items_per_hit=1, repeat_items=False
    )
    for person in range(2):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        for _ in range(2):
            hit = await try_to_lease_hit(engine, me)
            await submit_scores(engine, me, hit, scores=[float(person)])
    assert "On 2 items no label has a majority" in words((await researcher.get(address(campaign, "/findings"))).text)
    consistency = words((await researcher.get(address(campaign, "/consistency"))).text)
    assert "What this measure needs" in consistency
