"""Comments and flags from and for programs."""

import json
from typing import Any

from tests.api.test_api import answer, hit_for, launched, refused

REASONS = ["broken", "rude"]
ASKING = {"comment_on": "both", "flag_on": "both", "flag_reasons": REASONS}


async def test_a_program_says_what_its_annotators_say(api_client):
    address = await launched(api_client, **ASKING)
    hit = await hit_for(api_client, address)
    assert (hit["comment_on"], hit["flag_on"], hit["flag_reasons"]) == ("both", "both", REASONS)
    a, b, _ = [item["id"] for item in hit["items"]]
    said: dict[str, Any] = {
        "comment": "All alike.",
        "flag": "broken",
        "comments": {a: "Half a sentence."},
        "flags": {b: "rude"},
    }
    receipt = (await answer(api_client, hit, **said)).json()
    assert (await api_client.get(f"{address}/verify")).json()["clean"]
    found = (await api_client.get(f"{address}/remarks")).json()
    told = {(one["item"], one["flag"], one["comment"]) for one in found["remarks"]}
    assert told == {(a, None, "Half a sentence."), (b, "rude", None), (None, "broken", "All alike.")}
    (last,) = (await api_client.get(f"{address}/remarks", params={"size": 1, "page": 3})).json()["remarks"]
    assert (last["number"], last["hit"], last["annotator"], last["counts"]) == (receipt["seq"], hit["id"], "A1", True)
    assert len((await api_client.get(f"{address}/remarks", params={"kind": "flags"})).json()["remarks"]) == 2


async def test_what_is_not_asked_for_is_refused_and_stores_nothing(api_client, subtests):
    for settings, said, code in (
        ({"comment_on": "items"}, {"comment": "a"}, "remark_not_offered"),
        ({"comment_on": "HIT"}, {"comments": {"first": "a"}}, "remark_not_offered"),
        ({"flag_on": "items"}, {"flag": "rude"}, "remark_not_offered"),
        ({"flag_on": "none"}, {"flags": {"first": "rude"}}, "remark_not_offered"),
        ({}, {"flags": {"first": "tired"}}, "reason_unknown"),
        ({}, {"flags": {"v99": "rude"}}, "scores_unknown"),
        ({}, {"comment": "a" * 501}, "invalid"),
        ({}, {"comment": "a\x00b"}, "invalid"),
    ):
        with subtests.test(settings=settings, said=said, code=code):
            address = await launched(api_client, **ASKING | settings)
            hit = await hit_for(api_client, address)
            asked = json.loads(json.dumps(said).replace('"first"', json.dumps(hit["items"][0]["id"])))
            refused(await answer(api_client, hit, **asked), 422, code)
            assert (await api_client.get(address)).json()["judgments_taken"] == 0


async def test_a_campaign_that_asks_for_nothing_says_so(api_client):
    hit = await hit_for(api_client, await launched(api_client))
    assert (hit["comment_on"], hit["flag_on"], hit["flag_reasons"]) == ("none", "none", None)


async def test_a_required_comment_is_described_and_refused_if_missing(api_client):
    asking = {"comment_on": "items", "comment_request": "required", "comment_question": "What decided it?"}
    address = await launched(api_client, **asking)
    hit = await hit_for(api_client, address)
    assert (hit["comment_request"], hit["comment_question"]) == ("required", "What decided it?")
    first, *others = [item["id"] for item in hit["items"]]
    for comments in ({}, {first: "Clear."}, {first: " ", **dict.fromkeys(others, "Clear.")}):
        reply = await answer(api_client, hit, comments=comments)
        refused(reply, 422, "comment_missing")
        assert "“What decided it?” for every item" in reply.json()["error"]["message"]
    assert (await api_client.get(address)).json()["judgments_taken"] == 0
    given = await answer(api_client, hit, comments=dict.fromkeys([first, *others], "Clear."))
    assert given.status_code == 200


async def test_a_hit_says_how_its_comments_are_asked_for(api_client, subtests):
    for settings, described in (
        ({}, (None, None)),
        ({"comment_request": "required"}, (None, None)),
        ({"comment_on": "HIT"}, ("offered", None)),
        ({"comment_on": "HIT", "comment_request": "asked"}, ("asked", "Why?")),
    ):
        with subtests.test(settings=settings):
            hit = await hit_for(api_client, await launched(api_client, **settings))
            assert (hit["comment_request"], hit["comment_question"]) == described


async def test_how_comments_are_asked_for_can_be_changed_while_people_answer(api_client):
    address = await launched(api_client, comment_on="HIT")
    hit = await hit_for(api_client, address)
    for request in ("asked", "required"):
        changed = await api_client.patch(address, json={"comment_request": request})
        assert (changed.status_code, changed.json()["settings"]["comment_request"]) == (200, request)
    refused(await answer(api_client, hit), 422, "comment_missing")
    assert (await answer(api_client, hit, comment="They differ.")).status_code == 200
    refused(await api_client.patch(address, json={"comment_request": "begged for"}), 422, "invalid")
