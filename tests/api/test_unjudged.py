"""A program says of items that they cannot be judged: a value of null, with a reason."""

import csv
import io

import pytest

from tests.api.conftest import API
from tests.api.test_api import answer, hit_for, launched, refused

REASONS = ["broken", "not in my language"]


async def hit_of(api_client, **settings):
    address = await launched(api_client, **{"cannot_be_judged": True, "unjudged_reasons": REASONS} | settings)
    hit = await hit_for(api_client, address)
    return address, hit, [item["id"] for item in hit["items"]]


async def test_a_value_of_null_with_a_reason(api_client):
    address, hit, (a, b, c) = await hit_of(api_client)
    assert hit["reasons"] == REASONS
    scores, reasons = {a: 1, b: None, c: 3}, {b: "broken"}
    assert (await answer(api_client, hit, scores=scores, reasons=reasons)).status_code == 200
    assert (await answer(api_client, hit, scores=scores, reasons=reasons)).json()["repeated"]
    rows = csv.DictReader(io.StringIO((await api_client.get(f"{address}/export/responses")).text))
    told = {row["item"]: (row["score"], row["not_applicable"], row["reason"]) for row in rows}
    assert told == {a: ("1.0", "false", ""), b: ("", "true", "broken"), c: ("3.0", "false", "")}
    assert (await api_client.get(address)).json()["judgments_taken"] == 2
    assert (await api_client.get(f"{address}/verify")).json()["clean"]


async def test_of_a_pair_one_is_enough(api_client):
    _, hit, (a, _) = await hit_of(api_client, design="pairwise", items_per_hit=None, unjudged_reasons=[])
    assert hit["reasons"] == []
    body = {"annotator": "ann", "values": {a: None}}
    assert (await api_client.post(f"{API}/hits/{hit['id']}/response", json=body)).status_code == 200


@pytest.mark.parametrize(
    ("reasons", "code"), [({}, "reason_missing"), ({1: "tired"}, "reason_unknown"), ({0: "broken"}, "reason_unknown")]
)
async def test_a_reason_that_will_not_do_is_refused(api_client, reasons, code):
    address, hit, ids = await hit_of(api_client)
    sent = {ids[place]: reason for place, reason in reasons.items()}
    refused(await answer(api_client, hit, scores=[1, None, 3], reasons=sent), 422, code)
    assert (await api_client.get(address)).json()["judgments_taken"] == 0


async def test_a_campaign_that_does_not_offer_it_takes_no_null(api_client):
    _, hit, _ = await hit_of(api_client, cannot_be_judged=False)
    assert hit["reasons"] is None
    refused(await answer(api_client, hit, scores=[1, None, 3]), 422, "invalid")


async def test_what_leaves_the_pool_is_wanted_no_more(api_client):
    address = await launched(api_client, cannot_be_judged=True, unjudged_reasons=[], judgments_per_item=2)
    for k in range(4):
        hit = await hit_for(api_client, address, f"ann {k}")
        scores = {item["id"]: None if item["id"] == "v0" else 5 for item in hit["items"]}
        assert (await answer(api_client, hit, f"ann {k}", scores)).status_code == 200
    campaign = (await api_client.get(address)).json()
    assert (campaign["status"], campaign["judgments_taken"], campaign["judgments_wanted"]) == ("finished", 10, 10)
