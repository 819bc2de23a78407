"""A design, an update law, a selection rule and a quality rule that are registered, and go through everything."""

import csv
import io
import json
import re
from typing import Any

import pytest

from app.analysis import scores
from app.analysis.methods import SCORE_METHODS
from app.database.bulk import open_snapshot
from app.http.templating import english_environment
from app.quality.run_rules import scan_annotators_and_record_findings
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.commands import command_outputs
from tests.toys import TEMPLATES, register
from tests.toys.smiles import SMILES

pytestmark = pytest.mark.slow

TOYS: dict[str, Any] = {"design": "smiley", "update_law": "smiles", "rule": "in_order", "items_per_hit": 3}
CREATE = [
    *("campaign", "create", "--name", "Moods", "--question", "How does it feel?", "--design", "smiley"),
    *("--update-law", "smiles", "--rule", "in_order", "--items-per-hit", "3", "--judgments-per-item", "9"),
]
RESULTS = "annotator,hit,item,value\n" + "".join(
    f"{who},h,m0,{first}\n{who},h,m1,2\n" for who, first in (("W1", 0), ("W2", 1))
)


@pytest.fixture
def toys(monkeypatch):
    """Register the toys in this process."""
    register(monkeypatch.setitem)
    monkeypatch.setitem(
        SCORE_METHODS, SMILES.name, scores.score_method_of_law(SMILES)
    )  # as if the law had been there from the start
    loader: Any = english_environment.loader
    monkeypatch.setattr(loader, "searchpath", [*loader.searchpath, TEMPLATES])


async def verified(engine, slug):
    async with open_snapshot(engine) as connection:
        return await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, slug)
        )


async def test_commands_set_up_import_simulate_verify_analyse_and_export(engine, database_url, tmp_path):
    (tmp_path / "items.csv").write_text("id,text\n" + "".join(f"m{k},mood {k}\n" for k in range(6)))
    (tmp_path / "results.csv").write_text(RESULTS)
    *_, simulated, imported, verified, analysed, items, responses, settings = command_outputs(
        database_url,
        "tests.toys",
        CREATE,
        ["campaign", "import", "moods", tmp_path / "items.csv"],
        ["campaign", "launch", "moods"],
        ["simulate", "moods", "--hits", "5", "--annotators", "3"],
        ["campaign", "import-responses", "moods", tmp_path / "results.csv"],
        ["verify", "moods"],
        ["analyse", "moods", "--method", "smiles", "--method", "mean", "--format", "csv"],
        ["export", "moods", "items"],
        ["export", "moods", "responses"],
        ["export", "moods", "settings"],
    )
    assert imported == "Imported 2 responses on 2 items.\nThe file has 4 rows on 5 lines.\n"
    assert "5" in simulated
    assert verified == "Replayed 7 responses: the posteriors of 6 items are the same.\n"
    rows = list(csv.DictReader(io.StringIO(items)))
    assert {"sad", "so_so", "happy", "mean"} <= rows[0].keys()
    counted = sum(float(row[face]) - 1 for row in rows for face in ("sad", "so_so", "happy"))
    assert counted == sum(int(row["judgments"]) for row in rows) == 4 + 5 * 3
    told = {row["score"] for row in csv.DictReader(io.StringIO(responses))}
    assert told <= {"0.0", "1.0", "2.0"}
    assert "smiles" in analysed
    assert json.loads(settings)["settings"].items() >= TOYS.items()


@pytest.mark.usefixtures("toys")
async def test_pages_ask_take_and_show_it(app, client, researcher):
    campaign = await create_running_campaign(app.state.database, items=6, judgments_per_item=4, **TOYS)
    preview = (await client.get(f"/mturk/{campaign.link_key}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")).text
    assert preview.count('type="radio"') == 9
    started = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
    fields = {"token": hidden(started.text, "token"), "hit": hidden(started.text, "hit")}
    bad = await client.post(started.url.path, data=fields | {"face-00": "1", "face-01": "0"})
    assert "Not all items have a smiley yet:" in bad.text
    assert 'name="face-00" value="1" required checked' in bad.text
    order = await fetch_value(app.state.database, "SELECT items FROM hits")
    chosen = {f"face-{place:02}": "102"[item] for place, item in enumerate(order)}
    answered = await client.post(started.url.path, data=fields | chosen)
    assert "1 task done" in answered.text
    ((items, faces),) = await fetch_rows(app.state.database, "SELECT items, values FROM responses")
    assert dict(zip(items, faces, strict=True)) == {0: 1.0, 1: 0.0, 2: 2.0}
    assert await fetch_value(app.state.database, "SELECT state FROM posteriors WHERE subject = 2") == [1.0, 1.0, 2.0]
    for page in ("", "?item=v2", "/analysis", "/analysis?part=scores", "/settings/question", "/export", "/share"):
        reply = await researcher.get(f"/admin/campaigns/{campaign.slug}{page}")
        assert reply.status_code == 200, page
    item = (await researcher.get(f"/admin/campaigns/{campaign.slug}?item=v2")).text
    assert "Dirichlet(1, 1, 2)" in item
    assert '<td class="words">happy</td>' in item
    form = (await researcher.get("/admin/campaigns/new")).text
    assert re.search(r'<textarea id="smiley.names" name="smiley.names"[^>]*>\nsad\nso so\nhappy</textarea>', form)
    assert "Smileys" in form
    fixed = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/advanced")).text
    for title in ("Smiles: each smiley is counted", "In order: the items with the fewest judgments"):
        assert title in fixed


def hidden(html, name):
    return html.partition(f'name="{name}" value="')[2].partition('"')[0]


@pytest.mark.usefixtures("toys")
async def test_programs_set_it_up_answer_it_and_read_what_came_of_it(app, api_client):  # noqa: F811  (the fixture)
    new = {"name": "Moods", "question": "How does it feel?", "judgments_per_item": 2, **TOYS}
    slug = (await api_client.post("/api/v1/campaigns", json=new)).json()["slug"]
    address = f"/api/v1/campaigns/{slug}"
    items = b"id,text\na,sun\nb,rain\nc,snow\n"
    assert (await api_client.post(f"{address}/items", files={"file": ("items.csv", items)})).status_code == 201
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    assert (await api_client.get(address)).json()["settings"].items() >= (TOYS | {"prior": [1.0, 1.0, 1.0]}).items()
    hit = (await api_client.post(f"{address}/hits", json={"annotator": "ann"})).json()["hit"]
    answer = f"/api/v1/hits/{hit['id']}/response"
    sent = {"annotator": "ann", "values": {"a": 2, "b": 0, "c": 7}}
    assert (await api_client.post(answer, json=sent)).json()["error"]["code"] == "score_out_of_range"
    sent["values"] = {"a": 2, "b": 0, "c": 1}
    assert (await api_client.post(answer, json=sent)).json()["repeated"] is False
    told = {item["id"]: item for item in (await api_client.get(f"{address}/posteriors")).json()["posteriors"]}
    assert told["a"]["state"] == [1.0, 1.0, 2.0]
    assert told["c"]["score"] == 0.5
    scored = (await api_client.get(f"{address}/analysis/scores/smiles")).json()
    assert {row["id"]: row["score"] for row in scored["rows"]} == {name: 100 * told[name]["score"] for name in "abc"}
    assert (await api_client.get(f"{address}/verify")).json()["clean"] is True
    wrong = new | {"design": "slider", "items_per_hit": 5}
    assert (await api_client.post("/api/v1/campaigns", json=wrong)).status_code == 422  # the law does not read points


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("selection", "first", "then"),
    [
        (
            "streaming",
            [[0, 1, 2], [1, 2, 3]],
            [0, 4, 5],
        ),  # who leads comes last
        ("iterations", [[0, 1, 2], [3, 4, 5]], [0, 1, 2]),
    ],
)
async def test_its_rule_decides_what_is_asked(engine, selection, first, then):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=2, selection=selection, **TOYS)
    one, two, three = [await create_annotator(engine, campaign, name) for name in ("one", "two", "three")]
    hits = [await try_to_lease_hit(engine, who) for who in (one, two)]
    assert [sorted(hit.items) for hit in hits] == first
    for who, hit in zip((one, two), hits, strict=True):
        await submit_scores(engine, who, hit, scores=[0.0, 1.0, 2.0])
    assert sorted((await try_to_lease_hit(engine, three)).items) == then


@pytest.mark.usefixtures("toys")
async def test_decisions_about_its_answers_are_followed(engine):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=9, **TOYS)
    for name in ("one", "two"):
        who = await create_annotator(engine, campaign, name)
        await submit_scores(engine, who, await try_to_lease_hit(engine, who), scores=[0.0, 1.0, 2.0])
    first = await fetch_value(engine, "SELECT min(annotator_id) FROM responses")
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", first, reason="", actor="ada", now=NOW
        )
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 3
    assert await verified(engine, campaign.slug) == replay.Verification(1, 6, 0, [])


@pytest.mark.usefixtures("toys")
async def test_its_quality_rule_finds_annotators_and_shows_them(app, researcher):
    engine = app.state.database
    campaign = await create_running_campaign(
        engine, items=40, judgments_per_item=9, quality_rules=["round_numbers: hold"]
    )
    who = await create_annotator(engine, campaign, "round")
    for _ in range(8):
        await submit_scores(engine, who, await try_to_lease_hit(engine, who), scores=[0.0, 10.0, 20.0, 30.0, 40.0])
    await scan_annotators_and_record_findings(engine, campaign.id, now=NOW)
    assert await fetch_rows(engine, "SELECT rule, action FROM findings") == [("round_numbers", "hold")]
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text
    assert "scores are round (100 %)." in page
    assert "Gives round scores" in (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
