"""Campaigns of labels on real PostgreSQL: one item at a time, many people at once, and what comes of it."""

import asyncio
import csv
import io
import random
import re
from itertools import count
from typing import Any

import numpy as np
import pytest

from app.annotation.hits.campaign_index import PosteriorCache
from app.database.bulk import open_snapshot
from app.database.session import create_engine
from app.record.replay import verify_by_replay_or_refuse
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.conftest import http_client

SENSES: dict[str, Any] = {
    "design": "categories",
    "design_settings": {"labels": ["bank: money", "shore: a river’s", "row", "none"]},
}


async def label_until_done(engine, campaign, assignment, cache, rng):
    """One annotator, right three times in four, who posts every answer twice."""
    design = campaign.design
    while True:
        work = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if work.reason == "wait":
            await asyncio.sleep(0.01)
        elif work.hit is None:
            return work.reason
        else:
            (item,) = work.hit.items
            (label,) = design.simulate_answer_values([(item % 4) / 4 if rng.random() < 0.75 else rng.random()])
            await asyncio.gather(*(submit_scores(engine, assignment, work.hit, scores=[label]) for _ in range(2)))


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
async def test_16_people_label_each_item_as_often_as_wanted_one_at_a_time(database_url, selection):
    engines = [create_engine(database_url, pool_size=8) for _ in range(2)]
    processes = [PosteriorCache(), PosteriorCache()]
    try:
        campaign = await create_running_campaign(
            engines[0], items=16, judgments_per_item=7, selection=selection, **SENSES
        )
        crowd = [await create_annotator(engines[0], campaign, f"a{k}") for k in range(16)]
        reasons = await asyncio.gather(
            *(
                label_until_done(engines[k % 2], campaign, who, processes[k % 2], np.random.default_rng(k))
                for k, who in enumerate(crowd)
            )
        )
        assert set(reasons) == {"all_done"}
        assert set(await fetch_rows(engines[0], "SELECT judgments FROM posteriors")) == {(7,)}
        assert set(await fetch_rows(engines[0], "SELECT cardinality(items) FROM responses")) == {(1,)}
        counts = await fetch_rows(engines[0], "SELECT state FROM current_posteriors ORDER BY number")
        assert {sum(state) for (state,) in counts} == {8.0}  # seven labels, and as much as one before
        assert np.mean([np.argmax(state) == item % 4 for item, (state,) in enumerate(counts)]) > 0.8
        async with open_snapshot(engines[0]) as connection:
            assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches
    finally:
        for engine in engines:
            await engine.dispose()


async def test_an_item_on_which_all_agree_is_asked_less_often_than_those_that_divide_people(engine):
    campaign = await create_running_campaign(engine, items=3, judgments_per_item=99, **SENSES)
    turns = {1: count(), 2: count()}
    for k in range(18):
        me = await create_annotator(engine, campaign, f"a{k}")
        hit = await try_to_lease_hit(engine, me)
        (item,) = hit.items
        await submit_scores(engine, me, hit, scores=[float(next(turns[item]) % 4) if item in turns else 3.0])
    judgments = dict(await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors"))
    assert judgments[0] < min(judgments[1], judgments[2]) - 2


@pytest.mark.parametrize("rule", ["entropy", "information"])
async def test_a_process_that_goes_on_asks_by_the_labels_that_came_meanwhile(engine, rule):
    campaign = await create_running_campaign(engine, items=2, judgments_per_item=99, rule=rule, **SENSES)
    cache, turns = PosteriorCache(), count()
    for k in range(12):
        me = await create_annotator(engine, campaign, f"a{k}")
        hit = await try_to_lease_hit(engine, me, cache=cache)
        await submit_scores(engine, me, hit, scores=[float(next(turns) % 4) if hit.items == [1] else 3.0])
    judgments = dict(await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors"))
    assert judgments[1] > judgments[0] + 2


def odd_forms(fields, count, rng):
    """Forms that a browser may send, most of them wrong, the last one right."""
    (item,) = [name for name in fields if name.startswith("score-")]
    for _ in range(count):
        form = {name: kept for name, kept in fields.items() if name != item or rng.random() < 0.8}
        odd = rng.choice(["", "4", "-1", "1.5", "bank", "nan", "1" * 400, "٢"])
        form |= rng.choice([{}, {item: odd}, {"score-99": "1"}, {"score-": "1"}, {"viewport": odd}])
        yield form | {item: odd} if form.get(item) == "2" and "score-99" not in form else form
    yield fields


async def test_a_form_is_stored_once_or_refused_with_a_reason(app):
    engine = app.state.database
    campaign = await create_running_campaign(engine, items=3, **SENSES)
    async with http_client(app) as browser:
        address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=v"
        page = (await browser.get(address)).text
        fields = dict(re.findall(r'name="(token|hit)" value="([^"]+)"', page))
        (field,) = set(re.findall(r'name="(score-\d+)"', page))
        for form in odd_forms(fields | {field: "2"}, 40, random.Random(3)):
            before = await fetch_value(engine, "SELECT count(*) FROM responses")
            reply = await browser.post(address, data=form)
            after = await fetch_value(engine, "SELECT count(*) FROM responses")
            if after == before:
                assert reply.status_code in (200, 422)
                assert 'role="alert"' in reply.text or 'role="status"' in reply.text
        await browser.post(address, data=fields | {field: "2"})
    assert await fetch_rows(engine, "SELECT values FROM responses") == [([2.0],)]


async def test_programs_label_and_read_what_came_of_it(app, api_client):  # noqa: F811  (the fixture)
    new = {"name": "Senses", "question": "Which sense?", "judgments_per_item": 3, **SENSES}
    slug = (await api_client.post("/api/v1/campaigns", json=new)).json()["slug"]
    address = f"/api/v1/campaigns/{slug}"
    await api_client.post(f"{address}/items", files={"file": ("items.csv", b"id,text\na,one\nb,two\n")})
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    asked = []
    for who in ("ann", "bob", "cy"):
        hit = (await api_client.post(f"{address}/hits", json={"annotator": who})).json()["hit"]
        asked.append(hit["items"][0]["id"])
        answer = f"/api/v1/hits/{hit['id']}/response"
        wrong = await api_client.post(answer, json={"annotator": who, "values": [4]})
        assert wrong.json()["error"]["message"] == (
            "The label of item 1 must be one of the 4 labels, numbered from 0. What you entered is kept."
        )
        assert (await api_client.post(answer, json={"annotator": who, "values": [1]})).status_code == 200
    told = {item["id"]: item for item in (await api_client.get(f"{address}/posteriors")).json()["posteriors"]}
    twice = max(told, key=asked.count)
    assert (told[twice]["label"], told[twice]["state"]) == ("shore", [0.25, 2.25, 0.25, 0.25])
    assert told[twice]["score"] == 0.75
    assert (told[twice]["mean_score"], told[twice]["calibrated_low_95"]) == (None, None)
    items = (await api_client.get(f"{address}/export/items")).text
    assert items.splitlines()[0] == (
        "id,shown,text,class_1,class_2,class_3,class_4,label,adjudicated,label_source,label_percent,"
        "standard_deviation,low_95,high_95,judgments"
    )
    rows = [*csv.DictReader(io.StringIO((await api_client.get(f"{address}/export/responses")).text))]
    assert {(row["score"], row["label"], row["rank"]) for row in rows} == {("1.0", "shore", "")}
    assert (await api_client.get(f"{address}/verify")).json()["clean"] is True


async def test_an_item_without_a_label_or_with_as_many_of_two_has_no_likeliest_one(engine, api_client):  # noqa: F811
    campaign = await create_running_campaign(engine, items=2, judgments_per_item=5, **SENSES)
    for who, label in (("a", 0.0), ("b", 3.0)):
        me = await create_annotator(engine, campaign, who)
        await execute_sql(engine, "UPDATE posteriors SET variance = 9 WHERE subject = 0")
        await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[label])
    found = (await api_client.get(f"/api/v1/campaigns/{campaign.slug}/posteriors")).json()["posteriors"]
    assert [item["label"] for item in found] == [None, None]
    assert [item["judgments"] for item in found] == [2, 0]


async def test_items_can_come_with_counts_for_each_label(api_client):  # noqa: F811
    new = {"name": "Senses", "question": "Which sense?", **SENSES}
    slug = (await api_client.post("/api/v1/campaigns", json=new)).json()["slug"]
    address = f"/api/v1/campaigns/{slug}"
    items = b"id,text,class_1,class_2,class_3,class_4\na,one,3,1,1,1\nb,two,1,1,1,5\n"
    files = {"file": ("items.csv", items)}
    assert (await api_client.post(f"{address}/items?priors=true", files=files)).status_code == 201
    await api_client.post(f"{address}/transitions", json={"action": "launch"})
    told = (await api_client.get(f"{address}/posteriors")).json()["posteriors"]
    assert [item["state"] for item in told] == [[3, 1, 1, 1], [1, 1, 1, 5]]
