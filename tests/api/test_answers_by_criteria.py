"""A program answers by several criteria."""

import json

import pytest
from sqlalchemy import text

from tests.annotation.hits.criteria import criteria_settings
from tests.api.conftest import API
from tests.api.test_api import answer, hit_for, launched, refused

LABELS = {"low_label": "bad", "design_settings": {"labels": ["no", "yes"]}}
ASKED = [criteria_settings()[0], criteria_settings()[1] | LABELS]


async def hit_of(api_client, **settings):
    address = await launched(api_client, **{"criteria": ASKED, "design": "ordinal", "items_per_hit": 2} | settings)
    return address, await hit_for(api_client, address)


async def send(api_client, hit, values, **more):
    body = {"annotator": "ann", "values": values} | more
    return await api_client.post(f"{API}/hits/{hit['id']}/response", json=body)


async def test_a_hit_tells_the_criteria_and_an_answer_names_each(api_client):
    address, hit = await hit_of(api_client)
    assert sorted(one["name"] for one in hit["criteria"]) == ["adequacy", "fluency"]
    fluency = next(one for one in hit["criteria"] if one["name"] == "fluency")
    assert (fluency["question"], fluency["low_label"], fluency["high_label"]) == ("How is its fluency?", "bad", "high")
    assert fluency["values"]["classes"] == ["no", "yes"]
    assert len(hit["values"]["classes"]) == 5
    a, b = (item["id"] for item in hit["items"])
    said = {"adequacy": [4, 0], "fluency": {a: "yes", b: 0}}
    touched = {"fluency": {a: {"changes": 3}}}
    first = await send(api_client, hit, said, telemetry=touched)
    assert first.json()["repeated"] is False, first.text
    assert (await send(api_client, hit, said)).json()["repeated"]
    assert (await api_client.get(address)).json()["judgments_taken"] == 2
    assert (await api_client.get(f"{address}/verify")).json()["clean"]


async def test_a_program_is_told_by_which_criterion_a_posterior_is_wrong(api_client, engine):
    address, hit = await hit_of(api_client)
    await send(api_client, hit, {"adequacy": [4, 0], "fluency": ["yes", "no"]})
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE posteriors SET score = score + 1 WHERE criterion = 1 AND subject = 0"))
    found = (await api_client.get(f"{address}/verify")).json()
    assert [(one["number"], one["criterion"]) for one in found["mismatches"]] == [(0, "fluency")]


async def test_the_order_stays_the_annotators(api_client):
    _, hit = await hit_of(api_client, judgments_per_item=5)
    order = [one["name"] for one in hit["criteria"]]
    values = {name: [1, 0] for name in order}
    assert (await send(api_client, hit, values)).status_code == 200
    # The second HIT of the same annotator.
    slug = (await api_client.get(f"{API}/campaigns")).json()["campaigns"][0]["slug"]
    again = await hit_for(api_client, f"{API}/campaigns/{slug}")
    assert again["id"] != hit["id"]
    assert [one["name"] for one in again["criteria"]] == order


async def test_what_does_not_say_all_is_refused(api_client, subtests):
    for values, code in (
        ([1, 0], "criteria_missing"),
        ({"adequacy": [1, 0]}, "criteria_missing"),
        ({"adequacy": [1, 0], "fluency": [1, 0], "style": [1, 0]}, "criterion_unknown"),
        ({"adequacy": [1, 0], "fluency": [1]}, "scores_unknown"),
        ({"adequacy": [1, 0], "fluency": {}}, "scores_missing"),
        ({"adequacy": [1, 0], "fluency": ["yes", "perhaps"]}, "class_unknown"),
        ({"adequacy": [1, 0], "fluency": [1, None]}, "judged_in_part"),
        ({"adequacy": [1, 0], "fluency": 3}, "invalid"),
    ):
        with subtests.test(values=values, code=code):
            address, hit = await hit_of(api_client, cannot_be_judged=True, unjudged_reasons=[])
            refused(await send(api_client, hit, values), 422, code)
            assert (await api_client.get(address)).json()["judgments_taken"] == 0


def touched(hit, touches):
    """Return telemetry in which “first” is replaced by the HIT's first item."""
    return json.loads(json.dumps(touches).replace("first", hit["items"][0]["id"]))


VALUES = {"adequacy": [1, 0], "fluency": [1, 0]}


@pytest.mark.parametrize(
    "touches", [{}, {"adequacy": {}}, {"adequacy": {"first": {}}}, {"fluency": {"first": {"changes": 1}}}]
)
async def test_telemetry_by_criterion_may_say_little(api_client, touches):
    _, hit = await hit_of(api_client)
    assert (await send(api_client, hit, VALUES, telemetry=touched(hit, touches))).status_code == 200


@pytest.mark.parametrize(
    ("touches", "code"),
    [
        ({"first": {"changes": 1}}, "invalid"),
        ({"adequacy": {"changes": 1}}, "invalid"),
        ({"adequasy": {"first": {"changes": 1}}}, "criterion_unknown"),
    ],
)
async def test_telemetry_that_names_no_criterion_of_the_answer_is_refused(api_client, touches, code):
    address, hit = await hit_of(api_client)
    refused(await send(api_client, hit, VALUES, telemetry=touched(hit, touches)), 422, code)
    assert (await api_client.get(address)).json()["judgments_taken"] == 0


async def test_telemetry_of_one_question_names_no_criteria(api_client):
    hit = await hit_for(api_client, await launched(api_client, items_per_hit=2))
    nested = {"first": {"y": {"changes": 1}}}
    little: list[dict[str, object]] = [{"first": {}}, {"first": {"changes": 1, "pen": {"tilt": 3}}}]
    refused(await send(api_client, hit, [1, 2], telemetry=touched(hit, nested)), 422, "invalid")
    for some in little:
        assert (await send(api_client, hit, [1, 2], telemetry=touched(hit, some))).status_code == 200


async def test_what_cannot_be_judged_is_null_by_every_criterion(api_client):
    address, hit = await hit_of(api_client, cannot_be_judged=True, unjudged_reasons=["broken"])
    a, b = (item["id"] for item in hit["items"])
    values = {name: {a: 1, b: None} for name in ("adequacy", "fluency")}
    assert (await send(api_client, hit, values, reasons={b: "broken"})).status_code == 200
    assert (await api_client.get(address)).json()["judgments_taken"] == 1


async def test_a_campaign_without_criteria_has_none_and_takes_none(api_client):
    address = await launched(api_client)
    hit = await hit_for(api_client, address)
    assert hit["criteria"] == []
    refused(await send(api_client, hit, {"adequacy": [1, 2, 3]}), 422, "criterion_unknown")
    assert (await answer(api_client, hit)).status_code == 200
