"""Promises of every entry of the registry of analysis; an entry that a test adds is shown everywhere."""

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from app.analysis.methods import SCORE_METHODS, TABLE_METHODS, all_method_exports, tables_by_section
from app.exports.fitted import fitted_export_opener_by_name
from tests.analysis import toy
from tests.analysis.answers import OFFERED
from tests.api.conftest import API
from tests.commands import command_outputs

PAGES = Path(__file__).resolve().parents[2] / "docs" / "researchers"
RESEARCHERS = "".join((PAGES / name).read_text() for name in ("analysis.md", "exports.md"))
SETTINGS = {"name": "Outputs", "question": "How good?", "items_per_hit": 6}
CSV = {"content-type": "text/csv"}
ITEMS = "id,text,system,segment\n" + "".join(f"v{k},output {k},{'xyz'[k % 3]},{k // 3}\n" for k in range(6))
SCORED = ([10, 30, 35, 20, 60, 90], [15, 5, 33, 40, 70, 35], [0, 20, 60, 30, 50, 100])
COLUMNS = [f"{what}{k}" for what in ("Input.id", "Answer.range") for k in range(1, 7)]
RESULTS = "\n".join(
    [
        ",".join(["AssignmentId", "WorkerId", *COLUMNS]),
        *(
            ",".join([f"A{who}", f"W{who}", *(f"v{k}" for k in range(6)), *map(str, scores)])
            for who, scores in enumerate(SCORED)
        ),
    ]
)
PAGE = "/admin/campaigns/outputs"


@pytest.fixture
async def answered_campaign(api_client) -> str:
    """Create a campaign with outputs of three systems and three annotators, so that every method has something to
    estimate.
    """
    assert (await api_client.post(f"{API}/campaigns", json=SETTINGS)).status_code == 201
    address = f"{API}/campaigns/outputs"
    assert (await api_client.post(f"{address}/items", content=ITEMS, headers=CSV)).status_code < 300
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    sent = await api_client.post(f"{address}/responses", content=RESULTS, headers=CSV)
    assert sent.status_code < 300, sent.text
    return address


async def got(client, address: str, **params: Any) -> Any:
    reply = await client.get(address, params=params)
    assert reply.status_code == 200, reply.text
    return json.loads(reply.text, parse_constant=pytest.fail)  # NaN is no JSON


async def page(researcher, address: str, **params: Any) -> str:
    reply = await researcher.get(f"{PAGE}{address}", params=params, headers={"X-Easel": "fetch"})
    assert reply.status_code == 200, reply.text
    return unescape(reply.text)


async def file(client, address: str) -> list[dict[str, str]]:
    reply = await client.get(address)
    assert reply.status_code == 200, reply.text
    return [*csv.DictReader(io.StringIO(reply.text))]


async def test_every_method_has_scores_on_the_page_in_the_api_and_in_the_export(
    answered_campaign, api_client, researcher
):
    exported = (await file(api_client, f"{answered_campaign}/export/scores"))[0]
    for name, method in OFFERED.scores.items():
        found = await got(api_client, f"{answered_campaign}/analysis/scores/{name}")
        assert [row["id"] for row in found["rows"]] == [f"v{k}" for k in range(6)]
        assert found["rows"][5]["score"] > found["rows"][0]["score"]
        html = await page(researcher, "/analysis/scores", one=name, other="mean" if name != "mean" else "elo")
        assert method.assumes in html
        assert html.count('<circle class="dot"') == 6
        assert float(exported[name]) == found["rows"][0]["score"]
        assert {f"{name}_low", f"{name}_high"} <= set(exported)


async def test_every_table_has_rows_on_the_page_in_the_api_and_as_a_file(answered_campaign, api_client, researcher):
    of_items = {name: table for name, table in OFFERED.tables.items() if not table.needs_systems}
    for section, tables in tables_by_section(of_items).items():
        html = await page(researcher, f"/analysis/{section.name}")
        for name, method in tables.items():
            found = await got(api_client, f"{answered_campaign}/analysis/tables/{name}")
            assert [column["name"] for column in found["columns"]] == [*found["rows"][0]]
            part = html.partition(f'id="{name}-table"')[2].partition('<div class="table-part"')[0]
            assert method.explanation in part
            assert '<th scope="row">' in part
            assert ('<td class="forest' in part) == (method.dot_plot is not None)
            rows = await file(researcher, f"{PAGE}/analysis/tables/{name}.csv")
            assert len(rows) == found["total"]
            assert ('class="drawing' in part) == (method.draw_picture is not None)


async def test_every_file_that_needs_a_fit_is_offered_and_has_rows(answered_campaign, api_client, researcher):
    html = await page(researcher, "/export")
    for one in OFFERED.exports:
        assert one.contents in html
        assert f"{PAGE}/export/{one.name}.xl.csv" in html
        assert await file(api_client, f"{answered_campaign}/export/{one.name}")


def test_every_method_table_and_file_is_explained_to_researchers(subtests):
    for name in (*SCORE_METHODS, *TABLE_METHODS, *fitted_export_opener_by_name()):
        with subtests.test(name=name):
            assert f"`{name}`" in RESEARCHERS


def test_no_two_files_and_no_two_sections_have_the_same_name():
    for names in (
        [one.name for one in all_method_exports()],
        [section.name for section in tables_by_section(TABLE_METHODS)],
    ):
        assert len(names) == len(set(names))


# A method that only this test knows


@pytest.fixture
def toys(monkeypatch) -> None:
    monkeypatch.setitem(SCORE_METHODS, "last_score", toy.LAST_SCORE)
    monkeypatch.setitem(TABLE_METHODS, "hits", toy.HITS)


@pytest.mark.usefixtures("toys")
async def test_a_new_method_and_a_new_table_are_on_the_analysis_page(answered_campaign, researcher):
    whole = (await researcher.get(f"{PAGE}/analysis")).text
    assert f'<a href="{PAGE}/analysis/toys?">Show toys of a test</a>' in whole
    scores = await page(researcher, "/analysis/scores", one="last_score", other="elo")
    assert "The last annotator is right." in scores
    assert scores.count('<circle class="dot"') == 6
    table = await page(researcher, "/analysis/toys")
    assert re.findall(r'<th scope="row">(\d)</th>', table) == ["1", "2", "3"]
    assert table.count('<td class="forest"><svg') == 3


@pytest.mark.usefixtures("toys")
async def test_a_new_method_and_a_new_table_are_in_the_api(answered_campaign, api_client):
    offer = await got(api_client, f"{answered_campaign}/analysis")
    assert (offer["scores"][-1]["name"], offer["tables"][-1]["section"]) == ("last_score", "toys")
    scores = await got(api_client, f"{answered_campaign}/analysis/scores/last_score")
    assert [row["score"] for row in scores["rows"]] == SCORED[-1]
    table = await got(api_client, f"{answered_campaign}/analysis/tables/hits")
    assert [row["top"] for row in table["rows"]] == [90, 70, 100]


@pytest.mark.usefixtures("toys")
async def test_a_new_method_and_a_new_table_are_in_the_exports(answered_campaign, api_client, researcher):
    assert [float(row["last_score"]) for row in await file(api_client, f"{answered_campaign}/export/scores")] == SCORED[
        -1
    ]
    assert [row["top"] for row in await file(researcher, f"{PAGE}/export/hits.csv")] == ["90.0", "70.0", "100.0"]
    assert [row["seq"] for row in await file(api_client, f"{answered_campaign}/export/times")] == ["1", "2", "3"]
    assert "Every HIT with its highest score." in await page(researcher, "/export")


@pytest.mark.slow
async def test_a_new_method_and_a_new_table_are_in_the_command(answered_campaign, database_url):
    offer, scores, table, export = command_outputs(
        database_url,
        "tests.analysis.toy",
        ["analyse", "outputs"],
        ["analyse", "outputs", "--method", "last_score", "--format", "json"],
        ["analyse", "outputs", "--table", "hits", "--format", "csv"],
        ["export", "outputs", "hits"],
    )
    assert "The last annotator is right." in offer
    assert [row["score"] for row in json.loads(scores)["rows"]] == SCORED[-1]
    assert table.split() == ["hit,top", "1,90.0", "2,70.0", "3,100.0"]
    assert export.split() == table.split()
