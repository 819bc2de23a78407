"""The analysis of a campaign as programs ask for it."""

import asyncio
import json
from typing import Any

import pytest

from app.analysis.methods import TABLE_METHODS
from tests.analysis.answers import OFFERED
from tests.api.conftest import API

SETTINGS = {"name": "Verbs", "question": "How often?", "items_per_hit": 3, "judgments_per_item": 9}
ITEMS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6))
RESULTS = (
    "AssignmentId,WorkerId,Input.id1,Input.id2,Input.id3,Answer.range1,Answer.range2,Answer.range3\n"
    "A1,W1,v0,v1,v2,10,50,90\nA2,W2,v0,v1,v3,20,60,30\nA3,W1,v3,v4,v2,40,70,80\nA4,W3,v0,v2,v4,0,100,65\n"
)
CSV = {"content-type": "text/csv"}


async def launched(api_client) -> str:
    made = await api_client.post(f"{API}/campaigns", json=SETTINGS)
    address = f"{API}/campaigns/{made.json()['slug']}"
    assert (await api_client.post(f"{address}/items", content=ITEMS, headers=CSV)).status_code < 300
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    return address


async def launch_with_answers(api_client) -> str:
    address = await launched(api_client)
    sent = await api_client.post(f"{address}/responses", content=RESULTS, headers=CSV)
    assert sent.status_code < 300, sent.text
    return address


async def got(api_client, address: str, **params: Any) -> Any:
    response = await api_client.get(address, params=params)
    assert response.status_code == 200, response.text
    return json.loads(response.text, parse_constant=pytest.fail)  # NaN is no JSON


async def refused(api_client, address: str, **params: Any) -> tuple[int, str]:
    response = await api_client.get(address, params=params)
    return response.status_code, response.json()["error"]["code"]


async def test_what_there_is_to_ask_for_is_listed_with_its_assumptions(api_client):
    found = await got(api_client, f"{await launched(api_client)}/analysis")
    assert [method["name"] for method in found["scores"]] == [*OFFERED.scores]
    assert [table["name"] for table in found["tables"]] == [
        name for name, table in OFFERED.tables.items() if not table.required_columns and not table.needs_systems
    ]
    assert found["answers"] == "points"
    assert all(method["assumes"] and method["unit"] for method in found["scores"])


async def test_every_method_scores_the_items(api_client):
    address = await launch_with_answers(api_client)
    for method in OFFERED.scores:
        found = await got(api_client, f"{address}/analysis/scores/{method}")
        assert (found["total"], found["method"]["name"]) == (6, method)
        assert [row["id"] for row in found["rows"]] == [f"v{k}" for k in range(6)]
        assert found["rows"][2]["score"] > found["rows"][0]["score"]
        assert (found["rows"][5]["score"], found["rows"][5]["judgments"]) == (None, 0)


async def test_rows_come_a_page_at_a_time(api_client):
    found = await got(api_client, f"{await launch_with_answers(api_client)}/analysis/scores/mean", offset=4, limit=1)
    assert ([row["id"] for row in found["rows"]], found["total"]) == (["v4"], 6)


async def test_two_methods_come_side_by_side(api_client):
    found = await got(
        api_client, f"{await launch_with_answers(api_client)}/analysis/compare", one="mean", other="bradley_terry"
    )
    assert (found["one"]["name"], found["other"]["name"], found["n"]) == ("mean", "bradley_terry", 5)
    assert [figure["name"] for figure in found["figures"]] == ["spearman", "pearson", "kendall", "ndcg"]
    assert found["figures"][0]["value"] == pytest.approx(0.9)  # Spearman: two neighbours of five change places
    assert found["rows"][0]["one"] == 10.0
    assert found["rows"][0]["other_low"] < found["rows"][0]["other"] < found["rows"][0]["other_high"]


REFUSED = {"scale": "no_scale"} | {name: "no_systems" for name, of in TABLE_METHODS.items() if of.required_columns}


async def test_every_table_has_its_columns_and_notes_or_its_reason(api_client):
    address = f"{await launch_with_answers(api_client)}/analysis/tables"
    for name in OFFERED.tables:
        if name in REFUSED:
            assert await refused(api_client, f"{address}/{name}") == (409, REFUSED[name])
            continue
        found = await got(api_client, f"{address}/{name}")
        assert found["table"]["name"] == name
        assert found["total"] == len(found["rows"]) > 0
        assert [column["name"] for column in found["columns"]] == [*found["rows"][0]]


async def test_every_note_has_a_code_and_what_it_speaks_of_beside_its_words(api_client):
    found = await got(api_client, f"{await launch_with_answers(api_client)}/analysis/scores/elo")
    assert [note["code"] for note in found["note_facts"]] == ["read_as", "order_matters", "unrated", "hits_drawn_again"]
    assert found["note_facts"][2]["about"] == {"item": ["v5"]}
    assert found["notes"][2] == "Nothing is known about item “v5”: no judgment."
    tables = [
        await got(api_client, f"{API}/campaigns/verbs/analysis/tables/{name}") for name in ("agreement", "annotators")
    ]
    assert all(len(table["note_facts"]) == len(table["notes"]) > 0 for table in tables)


async def test_the_number_of_classes_is_the_researchers_choice(api_client):
    address = f"{await launch_with_answers(api_client)}/analysis/tables/labels"
    assert (await got(api_client, address, classes=4))["total"] == 4
    assert await refused(api_client, address, classes=11) == (422, "invalid")
    assert await refused(api_client, address, classes=1) == (422, "invalid")


async def test_what_cannot_be_estimated_is_refused_with_its_reason(api_client):
    address = f"{await launched(api_client)}/analysis"
    assert await refused(api_client, f"{address}/scores/mean") == (409, "no_judgments")
    assert await refused(api_client, f"{address}/compare", one="mean", other="elo") == (409, "no_judgments")
    assert await refused(api_client, f"{address}/tables/agreement") == (409, "no_judgments")
    assert await refused(api_client, f"{address}/tables/graded_response") == (409, "no_judgments")


async def test_unknown_names_are_not_found(api_client):
    address = f"{await launched(api_client)}/analysis"
    assert await refused(api_client, f"{address}/scores/best") == (404, "method_not_found")
    assert await refused(api_client, f"{address}/compare", one="mean", other="best") == (404, "method_not_found")
    assert await refused(api_client, f"{address}/compare", one="mean") == (422, "invalid")
    assert await refused(api_client, f"{address}/tables/best") == (404, "table_not_found")
    for what in ("analysis", "analysis/scores/mean", "analysis/tables/labels"):
        assert await refused(api_client, f"{API}/campaigns/none/{what}") == (404, "campaign_not_found")


async def test_analysis_is_for_those_with_a_token(api_client, client):
    address = await launch_with_answers(api_client)
    for what in ("", "/scores/mean", "/compare?one=mean&other=elo", "/tables/labels"):
        assert (await client.get(f"{address}/analysis{what}", headers={"accept": "*/*"})).status_code == 401


async def test_many_who_ask_at_once_all_get_an_answer(api_client):
    address = f"{await launch_with_answers(api_client)}/analysis"
    asked = [
        got(api_client, f"{address}/tables/{name}") for name in ("agreement", "annotators", "labels") for _ in range(4)
    ]
    assert all(found["rows"] for found in await asyncio.gather(*asked))


async def test_exports_that_need_a_fit_are_downloads_for_programs_and_people(api_client, researcher):
    address = await launch_with_answers(api_client)
    labels = await api_client.get(f"{address}/export/labels", params={"classes": 3, "format": "jsonl"})
    first = json.loads(labels.text.splitlines()[0])
    assert first["label"] == "0 to 33.33"
    assert 0 <= first["confidence"] <= 1
    page = (await researcher.get("/admin/campaigns/verbs/export")).text
    for file in ("scores.csv", "scores.xl.csv", "labels.jsonl", "item_labels.csv"):
        assert f"/admin/campaigns/verbs/export/{file}" in page
        assert (await researcher.get(f"/admin/campaigns/verbs/export/{file}")).status_code == 200


async def test_an_export_that_cannot_be_fitted_is_refused(api_client):
    address = await launched(api_client)
    assert await refused(api_client, f"{address}/export/labels") == (409, "no_judgments")
    assert await refused(api_client, f"{address}/export/scores") == (409, "no_judgments")
