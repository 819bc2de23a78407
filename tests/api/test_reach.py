"""A campaign of each design, answered by a program that knows only what a HIT says of its values: what is offered, and
that page, command, API and exports offer the same.
"""

import asyncio
import csv
import io
import json
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from app.analysis.methods import SCORE_METHODS, TABLE_METHODS, all_method_exports
from app.cli.commands import easel
from app.designs.registry import DESIGNS
from tests.api.conftest import API
from tests.toys.smiley import Smiley

CSV = {"content-type": "text/csv"}
ITEMS = "id,text,system,segment\n" + "".join(f"v{k},output {k},{'xyz'[k % 3]},{k // 3}\n" for k in range(12))
NEEDED = {"baseline": {"baseline": "v5"}}  # settings without which nothing can be launched
NEEDS_NOTHING = ("agreement", "annotators", "consistency")


@pytest.fixture(params=[*DESIGNS.values(), Smiley], ids=lambda design: design.name)
def design(request, monkeypatch):
    """Return each design with its default settings; the toy design with an existing law."""
    if request.param is Smiley:
        monkeypatch.setitem(DESIGNS, Smiley.name, Smiley)
        monkeypatch.setattr(Smiley, "default_law", "easl")
    return request.param


def values_for(asked: dict[str, Any], places: list[float]) -> list[float]:
    """Return the answer of a program that sees items at these places of 0 to 1."""
    low, high = asked["lowest"], asked["highest"]
    if asked["kind"] == "order":
        ranked = (np.argsort(np.argsort([-place for place in places])) + 1.0).tolist()
        middle = dict.fromkeys(ranked, 2.0) | {1.0: 1.0, float(len(ranked)): high}
        return [middle[rank] for rank in ranked] if asked["equal"] == "unknown" else ranked
    if asked["classes"]:
        return [float(min(int(place * len(asked["classes"])), high)) for place in places]
    if asked["kind"] == "ratio":
        return [float(np.sqrt(low * high) * 10 ** (place - 0.5)) for place in places]
    return [round(low + place * (high - low)) for place in places]


@pytest.fixture
async def answered(api_client, design) -> str:
    """Create a campaign with twelve items and answers of eight annotators."""
    chosen = {"design": design.name, "design_settings": NEEDED.get(design.name, {})}
    new = {"name": "Reach", "question": "How good?", "judgments_per_item": 8} | chosen
    made = await api_client.post(f"{API}/campaigns", json=new)
    assert made.status_code == 201, made.text
    address = f"{API}/campaigns/{made.json()['slug']}"
    assert (await api_client.post(f"{address}/items", content=ITEMS, headers=CSV)).status_code == 201
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    rng = np.random.default_rng(1)
    for turn in range(16):
        name = f"ann {turn % 8}"
        hit = (await api_client.post(f"{address}/hits", json={"annotator": name})).json()["hit"]
        if hit is None:  # they have seen all, or all is done
            continue
        assert hit["values"] == made.json()["values"]
        places = [float(np.clip(int(item["id"][1:]) / 11 + rng.normal(0, 0.15), 0, 1)) for item in hit["items"]]
        sent = {"annotator": name, "values": values_for(hit["values"], places)}
        reply = await api_client.post(f"{API}/hits/{hit['id']}/response", json=sent)
        assert reply.status_code == 200, reply.text
    return address


async def got(client, address: str) -> Any:
    reply = await client.get(address)
    assert reply.status_code == 200, reply.text
    return json.loads(reply.text, parse_constant=pytest.fail)


async def run(database_url, *arguments: str):
    """Run the command in a thread of its own, because it has its own event loop."""
    return await asyncio.to_thread(CliRunner().invoke, easel, arguments, env={"DATABASE_URL": database_url})


async def test_all_offer_the_same_which_is_there_and_everything_else_is_refused(
    answered, api_client, researcher, database_url
):
    offer = await got(api_client, f"{answered}/analysis")
    await page_command_and_exports_offer_it_too(offer, answered, researcher, database_url)
    await what_is_offered_is_there_and_everything_else_is_refused(offer, answered, api_client, database_url)


async def page_command_and_exports_offer_it_too(offer, answered, researcher, database_url) -> None:
    scores, tables = ([one["name"] for one in offer[part]] for part in ("scores", "tables"))
    assert {*NEEDS_NOTHING} <= {*tables}
    slug = answered.rpartition("/")[2]

    listed = json.loads((await run(database_url, "analyse", slug, "--format", "json")).output)["rows"]
    assert [row["name"] for row in listed] == [*scores, *tables]

    page = f"/admin/campaigns/{slug}"
    parts = re.findall(r'data-waiting="[^"]*/analysis/(\w+)', (await researcher.get(f"{page}/analysis")).text)
    assert parts == [
        "findings",
        *dict.fromkeys([*(["scores"] if scores else []), *(TABLE_METHODS[name].section.name for name in tables)]),
    ]
    shown: list[str] = []
    for part in parts:
        html = unescape((await researcher.get(f"{page}/analysis/{part}", headers={"X-Easel": "fetch"})).text)
        assert not re.search(r"\b(nan|NaN|inf|None)\b", html)
        shown += re.findall(r'class="table-part" id="(\w+)-table"', html)
        if part == "scores":
            assert [*dict.fromkeys(re.findall(r'<option value="([^"]+)"', html))] == scores
    assert [name for name in tables if name in NEEDS_NOTHING] == [name for name in shown if name in NEEDS_NOTHING]
    assert {*shown} <= {*tables}  # of tables that all cannot be estimated for one reason, the first says it for all

    files = re.findall(rf"{page}/export/(\w+)\.xl\.csv", (await researcher.get(f"{page}/export")).text)
    needing = {one.name: one for one in all_method_exports()}
    offered = [one.name for name in tables for one in TABLE_METHODS[name].exports]
    assert [name for name in files if name in needing] == [*(["scores"] if scores else []), *offered]


async def what_is_offered_is_there_and_everything_else_is_refused(offer, answered, api_client, database_url) -> None:
    slug = answered.rpartition("/")[2]
    scores, tables = ([one["name"] for one in offer[part]] for part in ("scores", "tables"))
    for name in scores:
        found = await got(api_client, f"{answered}/analysis/scores/{name}")
        assert len(found["rows"]) == 12
        assert [note["code"] for note in found["note_facts"]].count("read_as") <= 1
    for name in tables:
        reply = await api_client.get(f"{answered}/analysis/tables/{name}")
        assert reply.status_code == 200 or reply.json()["error"]["code"] != "method_reads_other_answers"
        assert reply.status_code == 200 or name not in NEEDS_NOTHING
    of_others = [
        name
        for name, one in TABLE_METHODS.items()
        if one.needs_systems or one.needs_criteria or one.needs_groups or one.compares_systems_or_pairs
    ]
    can = {"scale", *of_others}
    refused = [
        *(
            f"{answered}/analysis/scores/{name}"
            for name in SCORE_METHODS.keys() - {*scores}
            if SCORE_METHODS[name].reads != "order"
        ),
        *(f"{answered}/analysis/tables/{name}" for name in TABLE_METHODS.keys() - {*tables} - can),
    ]
    for address in refused:
        reply = await api_client.get(address)
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "method_reads_other_answers"), address
    if scores:
        text = (await api_client.get(f"{answered}/export/scores")).text
        columns = next(csv.reader(io.StringIO(text)))
        assert [name for name in columns if name in SCORE_METHODS] == scores
    if "labels" in tables:
        await labels_are_those_of_the_design(api_client, answered, offer)
    else:
        assert (await run(database_url, "export", slug, "labels")).exit_code != 0
        assert (await api_client.get(f"{answered}/export/labels")).json()["error"][
            "code"
        ] == "method_reads_other_answers"


async def labels_are_those_of_the_design(api_client, address: str, offer: dict[str, Any]) -> None:
    classes = (await got(api_client, address))["values"]["classes"]
    names = [row["label"] for row in (await got(api_client, f"{address}/analysis/tables/labels"))["rows"]]
    assert names == (classes or ["0 to 50", "50 to 100"])
    rows = [*csv.DictReader(io.StringIO((await api_client.get(f"{address}/export/labels")).text))]
    assert {row["label"] for row in rows} <= {*names}
    assert ("score" in rows[0]) == (not classes)
    assert offer["answers"] in ("points", "ratio", "classes", "ordered_classes")
