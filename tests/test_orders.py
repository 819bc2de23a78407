"""Ranking and best-worst scaling through everything: commands, API, exports, analysis, replay to the bit."""

import csv
import io
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sqlalchemy import text

from app.campaigns.lifecycle import change_campaign_status_or_refuse
from app.database.bulk import open_snapshot
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import verify_by_replay_or_refuse
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows
from tests.api.conftest import api_client  # noqa: F401  (a fixture)

SETTINGS: dict[str, dict[str, Any]] = {
    "ranking": {"design": "ranking", "items_per_hit": 5},
    "best_worst": {"design": "best_worst", "items_per_hit": 4},
}


async def rehearsed(engine, hits=60, **settings):
    """Create a campaign of 20 items whose true order is their number, answered by a simulated crowd."""
    campaign = await create_running_campaign(engine, items=20, launched=False, judgments_per_item=40, **settings)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET fields = jsonb_build_object('truth', number)"))
        campaign = await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    minutes, rng = count(), np.random.default_rng(3)

    def clock():
        return NOW + timedelta(minutes=next(minutes))

    await answer_hits_by_simulated_annotators_and_count(
        engine,
        campaign,
        hits=hits,
        annotators=5,
        population=population_with_random_bias_only(0.1),
        truth_column="truth",
        rng=rng,
        clock=clock,
    )
    return campaign


@pytest.mark.parametrize("law", ["ra", "trueskill"])
@pytest.mark.parametrize("design", SETTINGS)
async def test_a_simulated_crowd_is_recovered_and_replays_to_the_bit(engine, design, law):
    campaign = await rehearsed(engine, update_law=law, **SETTINGS[design])
    scores = [score for (score,) in await fetch_rows(engine, "SELECT score FROM current_posteriors ORDER BY number")]
    assert spearmanr(scores, np.arange(20)).statistic > 0.9
    async with open_snapshot(engine) as connection:
        found = await verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )
    assert (found.mismatches, found.responses) == ([], 60)


@pytest.mark.parametrize("design", SETTINGS)
async def test_pages_and_exports_show_it(app, researcher, client, design):
    campaign = await rehearsed(app.state.database, hits=12, **SETTINGS[design])
    for page in (
        "",
        "?item=v2",
        "/analysis",
        "/analysis?part=scores&one=best_worst_counts",
        "/settings/question",
        "/export",
    ):
        reply = await researcher.get(f"/admin/campaigns/{campaign.slug}{page}")
        assert reply.status_code == 200, page
    exported = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/responses.csv")).text
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert {row["score"] for row in rows} <= {"1.0", "2.0", "3.0", "4.0", "5.0"}
    preview = (await client.get(f"/mturk/{campaign.link_key}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")).text
    assert "<fieldset" in preview
    assert 'type="submit"' not in preview


async def test_the_form_asks_for_the_words_of_its_ends_and_refuses_equal_ones(researcher):
    form = (await researcher.get("/admin/campaigns/new")).text
    for field in ("ranking.best_label", "ranking.ties_allowed", "best_worst.best_label", "best_worst.worst_label"):
        assert f'name="{field}"' in form
    entered = {"name": "A", "question": "B?", "design": "best_worst", "best_worst.best_label": "least"}
    reply = await researcher.post("/admin/campaigns/new", data=entered)
    assert "The best and the worst need different labels." in reply.text


@pytest.mark.parametrize(
    ("design", "sent", "wrong", "code"),
    [
        ("best_worst", [1, 2, 2, 3], [1, 1, 2, 3], "answer_impossible"),
        ("ranking", [4, 4, 1, 7], [1, 2, 3, 1.5], "score_out_of_range"),
    ],
)
async def test_programs_answer_it(api_client, design, sent, wrong, code):  # noqa: F811  (the fixture)
    new = {"name": "Skies", "question": "How?", "design": design, "items_per_hit": 4, "judgments_per_item": 1}
    slug = (await api_client.post("/api/v1/campaigns", json=new)).json()["slug"]
    address = f"/api/v1/campaigns/{slug}"
    items = b"id,text\na,sun\nb,rain\nc,snow\nd,hail\n"
    assert (await api_client.post(f"{address}/items", files={"file": ("items.csv", items)})).status_code == 201
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    hit = (await api_client.post(f"{address}/hits", json={"annotator": "ann"})).json()["hit"]

    async def answer(values):
        body = {"annotator": "ann", "values": dict(zip("abcd", values, strict=True))}
        return (await api_client.post(f"/api/v1/hits/{hit['id']}/response", json=body)).json()

    assert (await answer(wrong))["error"]["code"] == code
    assert [(await answer(sent))["repeated"] for _ in range(2)] == [False, True]
    best = "abcd"[sent.index(1)]
    found = {one["id"]: one["score"] for one in (await api_client.get(f"{address}/posteriors")).json()["posteriors"]}
    assert max(found, key=lambda name: found[name]) == best
    assert (await api_client.get(f"{address}/verify")).json()["clean"] is True
    counted = (await api_client.get(f"{address}/analysis/scores/best_worst_counts")).json()
    assert {row["id"]: row["score"] for row in counted["rows"]}[best] == 1.0
    assert "counts_depend_on_company" in {note["code"] for note in counted["note_facts"]}
