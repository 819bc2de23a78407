"""Programs hear how near a campaign is to its goal."""

import json
from typing import Any

from app.goal_monitor.monitor import CAMPAIGN_SCANS, enforce_goal_and_return_state_or_none
from app.http.dependencies import get_now
from app.quality.rule_monitor import CampaignMonitor
from tests.annotation.hits.campaigns import NOW, fetch_value
from tests.annotation.hits.criteria import create_campaign_that_agrees_about_fluency
from tests.api.conftest import API

SETTINGS = {"name": "Goal", "question": "How frequent?", "items_per_hit": 3, "judgments_per_item": 4, "goal_width": 50}
ITEMS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6))


async def made(api_client, goal: str, *, launched: bool = True, **settings: Any) -> str:
    campaign = await api_client.post(f"{API}/campaigns", json=SETTINGS | {"goal": goal} | settings)
    address = f"{API}/campaigns/{campaign.json()['slug']}"
    sent = await api_client.post(f"{address}/items", content=ITEMS, headers={"content-type": "text/csv"})
    assert sent.json()["imported"] == 6
    if launched:
        await api_client.post(f"{address}/transitions", json={"action": "launch"})
    return address


async def answered(api_client, address: str, people: int = 2) -> None:
    """Let annotators who nearly agree answer two HITs each."""
    for annotator, stricter in [(f"p{k}", 3 * (k % 2)) for k in range(people)] * 2:
        hit = (await api_client.post(f"{address}/hits", json={"annotator": annotator})).json()["hit"]
        body = {"annotator": annotator, "scores": [10 + 15 * int(item["id"][1:]) - stricter for item in hit["items"]]}
        assert (await api_client.post(f"{API}/hits/{hit['id']}/response", json=body)).status_code < 300


async def test_programs_hear_how_near_a_goal_is(api_client):
    address = await made(api_client, "intervals")
    words = "95 % of items have intervals of ±50 points or less"
    assert (await api_client.get(f"{address}/goal")).json() == {
        "goal": words, "now": 0.0, "wanted": 0.95, "reached": False, "measured_by": "means", "settled": None,
    }  # fmt: skip
    await answered(api_client, address)
    assert (await api_client.get(f"{address}/goal")).json() == {
        "goal": words, "now": 1.0, "wanted": 0.95, "reached": True, "measured_by": "means", "settled": None,
    }  # fmt: skip


async def test_programs_hear_how_many_items_are_settled_and_read_which_in_the_export(engine, api_client):
    more: dict[str, Any] = {"judgments_per_item": 8, "repeat_items": False}
    address = await made(api_client, "threshold", threshold=53.5, goal_within=0, when_reached="release", **more)
    await answered(api_client, address, 5)
    goal = (await api_client.get(f"{address}/goal")).json()
    assert 0 < goal["settled"] < 6
    assert goal["now"] == goal["settled"] / 6
    await enforce_goal_and_return_state_or_none(engine, await fetch_value(engine, "SELECT id FROM campaigns"), now=NOW)
    rows = [json.loads(row) for row in (await api_client.get(f"{address}/export/items?format=jsonl")).text.splitlines()]
    assert sum(row["settled"] for row in rows) == goal["settled"]
    assert not rows[3]["settled"]  # it lies at the line


async def test_programs_hear_which_rule_suits_the_goal_where_the_law_can_ask_by_it(api_client):
    for chosen, better in (
        ({"goal": "threshold"}, "threshold"),
        ({"goal": "threshold", "rule": "threshold"}, None),
        ({"goal": "threshold", "update_law": "trueskill"}, None),
        ({"goal": "halves"}, None),
        ({"design": "pairwise", "items_per_hit": 2, "judgments_per_item": 8}, "pairs"),
        ({"design": "pairwise", "items_per_hit": 2, "judgments_per_item": 8, "rule": "pairs"}, None),
        ({"design": "pairwise", "items_per_hit": 2, "judgments_per_item": 8, "rule": "balanced"}, None),
        ({"design": "pairwise", "items_per_hit": 2, "judgments_per_item": 7}, None),
    ):
        campaign = await api_client.post(f"{API}/campaigns", json=SETTINGS | chosen)
        assert campaign.json()["better_rule"] == better


async def test_answers_that_are_imported_are_looked_at_too(app, engine, api_client):
    address = await made(api_client, "intervals", when_reached="pause", judgments_per_item=20)
    rows = [f"{k},p{k % 5},v{item},{10 + 15 * item + k % 5}" for k in range(10) for item in range(6)]
    file = "\n".join(["hit,annotator,item,value", *rows])
    looks = app.state.campaign_monitor = CampaignMonitor(app.state.database, get_now, CAMPAIGN_SCANS, pause=0)
    sent = await api_client.post(f"{address}/responses", content=file, headers={"content-type": "text/csv"})
    assert sent.status_code == 201, sent.text
    await looks.tasks.wait()
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "paused"


async def test_programs_hear_that_there_is_no_goal_or_that_nobody_could_answer_yet(api_client):
    for goal, launched, code in (("none", True, "no_goal"), ("intervals", False, "not_launched")):
        refused = await api_client.get(f"{await made(api_client, goal, launched=launched)}/goal")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, code)


async def test_a_goal_of_no_campaign_is_not_found(api_client):
    refused = await api_client.get(f"{API}/campaigns/nowhere/goal")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "campaign_not_found")


async def test_who_gets_nothing_more_makes_the_server_look_at_the_goal(app, api_client):
    """A server that was killed has not come to look after the last answers."""
    asked: list[int] = []
    address = await made(api_client, "intervals", repeat_items=False)
    await answered(api_client, address, people=1)
    app.state.campaign_monitor.request_scan = asked.append
    work = await api_client.post(f"{address}/hits", json={"annotator": "p0"})
    assert (work.json()["reason"], len(asked)) == ("seen_all", 1)


async def test_programs_read_how_near_the_deciding_criterion_is(engine, api_client):
    campaign = await create_campaign_that_agrees_about_fluency(
        engine, goal="best", best_items=2, goal_within=10, judgments_per_item=40, asked_by="fluency"
    )
    goal = (await api_client.get(f"{API}/campaigns/{campaign.slug}/goal")).json()
    assert goal["reached"]
    expected = "We know the best 2 items by fluency with 95 % probability, up to differences of 10 points"
    assert goal["goal"] == expected
