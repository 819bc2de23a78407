"""A campaign led by a program, from its first token to the verified result."""

import asyncio
import csv
import io
import json
import re
from typing import Any

import pytest
from sqlalchemy import text

from app.accounts.throttle import FREE_FAILURES_PER_NAME
from app.campaigns.settings import CampaignSettings
from app.main import create_app
from app.privacy.erasures import erase_person_and_return_erasure
from app.settings import Settings
from tests.annotation.hits.campaigns import NOW, requests_are_waiting_sql, wait_until
from tests.api.conftest import API, PASSWORD
from tests.conftest import http_client
from tests.media.files import SVG, png, table, zipped

SETTINGS = {"name": "Verbs", "question": "How often?", "items_per_hit": 3, "judgments_per_item": 2}
CSV = "id,verb\n" + "".join(f"v{k},verb {k}\n" for k in range(6))


def refused(response, status: int, code: str) -> dict[str, Any]:
    """Assert a refusal and return its details."""
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    assert response.json()["error"]["message"]
    return dict(response.json()["error"]["details"])


async def draft(api_client, **settings) -> str:
    made = await api_client.post(f"{API}/campaigns", json=SETTINGS | settings)
    assert made.status_code == 201, made.text
    address = f"{API}/campaigns/{made.json()['slug']}"
    kind = {"content-type": "text/csv"}
    sent = await api_client.post(f"{address}/items", params={"shown": "verb"}, content=CSV, headers=kind)
    assert sent.json()["imported"] == 6
    return address


async def launched(api_client, **settings) -> str:
    address = await draft(api_client, **settings)
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).json()["status"] == "running"
    return address


async def hit_for(api_client, address: str, annotator: str = "ann") -> dict[str, Any]:
    work = (await api_client.post(f"{address}/hits", json={"annotator": annotator})).json()
    assert work["hit"], work
    return dict(work["hit"])


async def answer(api_client, hit: dict[str, Any], annotator: str = "ann", scores=(10, 50, 90), **more):
    body = {"annotator": annotator, "scores": scores if isinstance(scores, dict) else list(scores)}
    return await api_client.post(f"{API}/hits/{hit['id']}/response", json=body | more)


async def test_a_whole_campaign_over_the_api(api_client):
    address = await launched(api_client)
    for turn in range(4):
        hit = await hit_for(api_client, address, f"ann {turn}")
        assert [item["text"] for item in hit["items"]] == [f"verb {item['id'][1:]}" for item in hit["items"]]
        receipt = (await answer(api_client, hit, f"ann {turn}")).json()
        assert receipt["hit"] == hit["id"]
        assert not receipt["repeated"]
    campaign = (await api_client.get(address)).json()
    assert (campaign["status"], campaign["judgments_taken"], campaign["judgments_wanted"]) == ("finished", 12, 12)
    done = (await api_client.post(f"{address}/hits", json={"annotator": "ann 1"})).json()
    assert done == {"hit": None, "reason": "all_done"}
    verified = (await api_client.get(f"{address}/verify")).json()
    assert verified == {
        "clean": True,
        "responses": 4,
        "items": 6,
        "mismatch_count": 0,
        "mismatches": [],
        "beyond_rounding": 0,
    }


RESULTS = (
    "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nA1,W1,v0,v1,70,30\nA2,W1,v0,v2,0,100\n"
)


@pytest.mark.parametrize("as_form", [True, False])
async def test_results_of_mechanical_turk_become_responses(api_client, as_form):
    address = await launched(api_client)

    async def send(content):
        if as_form:
            return await api_client.post(f"{address}/responses", files={"file": ("results.csv", content)})
        return await api_client.post(f"{address}/responses", content=content, headers={"content-type": "text/csv"})

    reply = await send(RESULTS)
    assert reply.status_code == 201
    assert {name: said for name, said in reply.json().items() if said} == {
        "responses": 2, "items": 3, "rows": 2, "lines": 3,
    }  # fmt: skip
    assert refused(await send(RESULTS), 409, "assignment_known") == {"line": 2}
    assert (
        refused(await send(RESULTS.replace("A1", "B1").replace("A2", "B2").replace("v2", "v9")), 422, "item_unknown")[
            "line"
        ]
        == 3
    )
    assert (await api_client.get(address)).json()["judgments_taken"] == 4
    assert (await api_client.get(f"{address}/verify")).json()["clean"]


async def test_answers_of_any_design_become_responses_and_an_export_of_them_counts_nothing_twice(api_client):
    address, kind = await launched(api_client), {"content-type": "application/x-ndjson"}
    hits = [{"hit": k, "annotator": "Ann", "items": ["v0", f"v{k}"], "values": [70, 30]} for k in (1, 2)]
    content = "".join(json.dumps(hit) + "\n" for hit in hits)
    reply = await api_client.post(f"{address}/responses", content=content, headers=kind)
    assert (reply.status_code, reply.json()["responses"]) == (201, 2)
    export = (await api_client.get(f"{address}/export/responses?format=jsonl")).text
    again = await api_client.post(f"{address}/responses", content=export, headers=kind)
    assert refused(again, 409, "assignment_known") == {"line": 1}
    unknown = await api_client.post(f"{address}/responses", content=content.replace("values", "points"), headers=kind)
    assert "points" in refused(unknown, 422, "result_columns")["columns"]
    assert (await api_client.get(address)).json()["judgments_taken"] == 4


async def test_a_draft_takes_no_results(api_client):
    address = await draft(api_client)
    kind = {"content-type": "text/csv"}
    refused(await api_client.post(f"{address}/responses", content=RESULTS, headers=kind), 409, "not_launched")


async def test_asking_again_gives_the_same_hit_and_answering_again_changes_nothing(api_client):
    address = await launched(api_client)
    hit = await hit_for(api_client, address)
    assert await hit_for(api_client, address) == hit
    first = (await answer(api_client, hit)).json()
    again = (await answer(api_client, hit, scores=(90, 50, 10))).json()
    assert again == first | {"repeated": True}
    assert (await api_client.get(address)).json()["judgments_taken"] == 3


async def test_the_last_answer_can_be_replaced_until_the_next_one(api_client):
    address = await launched(api_client, judgments_per_item=2)
    hit = await hit_for(api_client, address)
    first = (await answer(api_client, hit)).json()
    newer = (await answer(api_client, hit, scores=(90, 50, 10), replaces=first["seq"])).json()
    assert newer == first | {"seq": first["seq"] + 1}
    again = (await answer(api_client, hit, scores=(90, 50, 10), replaces=first["seq"])).json()
    assert again == newer | {"repeated": True}
    export = list(csv.DictReader(io.StringIO((await api_client.get(f"{address}/export/responses")).text)))
    assert [row["replaces"] for row in export] == [""] * 3 + [str(first["seq"])] * 3
    refused(await answer(api_client, hit, scores=(1, 2, 3), replaces=first["seq"] + 7), 409, "answer_final")
    await answer(api_client, await hit_for(api_client, address))
    refused(await answer(api_client, hit, scores=(1, 2, 3), replaces=newer["seq"]), 409, "answer_final")


async def test_an_answer_is_a_use_of_its_token(app, api_client):
    hit = await hit_for(api_client, await launched(api_client))
    async with app.state.database.begin() as connection:
        await connection.execute(text("UPDATE api_tokens SET last_used_at = NULL"))
    await answer(api_client, hit)
    async with app.state.database.begin() as connection:
        assert await connection.scalar(text("SELECT last_used_at IS NOT NULL FROM api_tokens"))


async def test_scores_are_taken_by_id_or_in_order_with_telemetry(api_client):
    address = await launched(api_client)
    hit = await hit_for(api_client, address)
    ids = [item["id"] for item in hit["items"]]
    touch = {"first_touch_ms": 1200, "changes": 2, "input_kind": "keyboard"}
    by_id = dict(zip(reversed(ids), (1, 2.5, 3), strict=True))
    reply = await answer(api_client, hit, scores=by_id, telemetry={ids[1]: touch}, viewport="800x600")
    assert reply.status_code == 200
    export = (await api_client.get(f"{address}/export/responses")).text
    rows = list(csv.DictReader(io.StringIO(export)))
    assert {row["item"]: float(row["score"]) for row in rows} == by_id
    assert [row["input_kind"] for row in rows if row["item"] == ids[1]] == ["keyboard"]


async def test_answers_that_do_not_fit_their_hit_are_refused_and_change_nothing(api_client):
    address = await launched(api_client)
    hit = await hit_for(api_client, address)
    ids = [item["id"] for item in hit["items"]]
    assert refused(await answer(api_client, hit, scores=(1, 2)), 422, "scores_unknown") == {}
    refused(await answer(api_client, hit, scores={ids[0]: 1, "other": 2, ids[1]: 3}), 422, "scores_unknown")
    assert refused(await answer(api_client, hit, scores={ids[0]: 1, ids[2]: 3}), 422, "scores_missing") == {
        "missing": [2]
    }
    refused(await answer(api_client, hit, scores=(1, 2, 101)), 422, "invalid")
    refused(await answer(api_client, hit, telemetry={"other": {}}), 422, "scores_unknown")
    refused(await answer(api_client, hit, "bob"), 404, "hit_not_found")
    refused(await answer(api_client, {"id": 2**62}), 404, "hit_not_found")
    refused(await answer(api_client, {"id": 2**64}), 404, "not_found")
    assert (await api_client.get(address)).json()["judgments_taken"] == 0
    assert (await answer(api_client, hit)).status_code == 200


async def test_not_a_number_is_not_a_score(api_client):
    address = await launched(api_client)
    hit = await hit_for(api_client, address)
    body = '{"annotator": "ann", "scores": [NaN, 1, 2]}'
    kind = {"content-type": "application/json"}
    refused(await api_client.post(f"{API}/hits/{hit['id']}/response", content=body, headers=kind), 422, "invalid")


async def test_an_annotator_needs_a_usable_id(api_client, subtests):
    for annotator in ("", "  ", "a\u0000b", "x" * 201):
        with subtests.test(annotator=annotator):
            address = await launched(api_client)
            refused(await api_client.post(f"{address}/hits", json={"annotator": annotator}), 422, "invalid")


async def test_an_annotator_of_a_page_cannot_be_answered_for(api_client, client):
    address = await launched(api_client, welcome=False)
    link = (await api_client.get(address)).json()["links"]["prolific"]
    await client.get(link, params={"PROLIFIC_PID": "p1", "STUDY_ID": "s", "SESSION_ID": "t"})
    hit = await hit_for(api_client, address, "p1")
    refused(await answer(api_client, {"id": hit["id"] - 1}, "p1"), 404, "hit_not_found")


async def test_there_is_no_page_for_annotators_of_the_api(api_client, client):
    address = await launched(api_client)
    links = (await api_client.get(address)).json()["links"]
    assert sorted(links) == ["link", "mturk", "prolific"]
    assert (await client.get(links["link"].replace("/link/", "/api/"))).status_code == 404


async def test_reasons_for_no_hit(api_client):
    address = await draft(api_client, hits_per_annotator=1)
    ask = {"annotator": "ann"}
    assert (await api_client.post(f"{address}/hits", json=ask)).json() == {"hit": None, "reason": "not_open"}
    await api_client.post(f"{address}/transitions", json={"action": "launch"})
    await answer(api_client, await hit_for(api_client, address))
    assert (await api_client.post(f"{address}/hits", json=ask)).json()["reason"] == "limit"
    await api_client.post(f"{address}/transitions", json={"action": "pause"})
    assert (await api_client.post(f"{address}/hits", json={"annotator": "b"})).json()["reason"] == "paused"


async def test_many_annotators_at_once_give_every_item_its_judgments_and_no_more(api_client):
    address = await launched(api_client, judgments_per_item=4, repeat_items=True)

    async def work(annotator):
        while (reply := (await api_client.post(f"{address}/hits", json={"annotator": annotator})).json())["hit"]:
            scores = range(len(reply["hit"]["items"]))  # the last HITs may be shorter
            assert (await answer(api_client, reply["hit"], annotator, scores)).status_code == 200
        return reply["reason"]

    reasons = await asyncio.gather(*(work(f"ann {k}") for k in range(6)))
    assert set(reasons) <= {"all_done", "wait"}
    campaign = (await api_client.get(address)).json()
    assert campaign["judgments_taken"] == 24
    assert (await api_client.get(f"{address}/verify")).json()["clean"]


async def test_settings_can_be_changed_while_a_draft(api_client):
    address = await draft(api_client)
    assert (await api_client.get(address)).json()["settings"]["prior"] is None
    changed = await api_client.patch(address, json={"update_law": "trueskill", "judgments_per_item": 7})
    settings = changed.json()["settings"]
    assert (settings["prior"], settings["judgments_per_item"], settings["name"]) == (None, 7, "Verbs")
    fields = refused(await api_client.patch(address, json={"gamma": -1, "colour": "red"}), 422, "invalid")["fields"]
    assert sorted(problem["field"] for problem in fields) == ["colour", "gamma"]
    assert (await api_client.get(address)).json()["settings"] == settings
    await api_client.post(f"{address}/transitions", json={"action": "launch"})
    assert (await api_client.get(address)).json()["settings"]["prior"] == [0.5, 1 / 12]
    assert refused(await api_client.patch(address, json={"gamma": 1}), 409, "not_a_draft") == {"status": "running"}


async def test_another_design_shows_items_again_as_usual_for_it_unless_a_program_chose_otherwise(api_client):
    async def repeats_items_after(address, **changes):
        return (await api_client.patch(address, json=changes)).json()["settings"]["repeat_items"]

    usual, chosen = await draft(api_client), await draft(api_client, repeat_items=True)
    pairs = {"design": "pairwise", "update_law": "trueskill", "items_per_hit": 2}
    assert await repeats_items_after(usual, **pairs)
    assert not await repeats_items_after(usual, design="slider", design_settings={}, update_law="easl")
    assert not await repeats_items_after(usual, **pairs, repeat_items=False)
    assert await repeats_items_after(chosen, design="rating")


async def test_the_prior_can_be_sent_as_the_two_settings_that_it_was(api_client):
    address = await draft(api_client, prior_a=2, prior_b=3)
    assert (await api_client.get(address)).json()["settings"]["prior"] == [2, 3]
    changed = await api_client.patch(address, json={"prior_b": 4})
    assert changed.json()["settings"]["prior"] == [2, 4]
    assert "prior_b" not in changed.json()["settings"]


async def test_of_a_launched_campaign_only_what_changes_no_meaning_can_be_changed(api_client):
    address = await launched(api_client)
    code = {"prolific_completion_code": "C123"}
    assert (await api_client.patch(address, json=code)).json()["settings"]["prolific_completion_code"] == "C123"
    more = {"prolific_completion_code": "D456", "seed": 7}
    assert refused(await api_client.patch(address, json=more), 409, "not_a_draft") == {"status": "running"}
    settings = (await api_client.get(address)).json()["settings"]
    assert (settings["prolific_completion_code"], settings["seed"]) == ("C123", 2018)


async def test_transitions_that_are_not_possible_are_refused(api_client):
    address = await launched(api_client)
    refused(await api_client.post(f"{address}/transitions", json={"action": "launch"}), 409, "wrong_status")
    refused(await api_client.post(f"{address}/transitions", json={"action": "explode"}), 422, "invalid")
    refused(await api_client.delete(address), 409, "not_a_draft")


async def test_a_draft_can_be_deleted(api_client):
    address = await draft(api_client)
    assert (await api_client.delete(address)).status_code == 204
    refused(await api_client.get(address), 404, "campaign_not_found")
    assert (await api_client.get(f"{API}/campaigns")).json() == {"campaigns": []}


async def test_campaigns_are_listed_newest_first(api_client):
    await draft(api_client)
    await draft(api_client, name="Nouns")
    listed = (await api_client.get(f"{API}/campaigns")).json()["campaigns"]
    assert [campaign["slug"] for campaign in listed] == ["nouns", "verbs"]
    assert listed[0]["items"] == 6


async def test_items_come_as_a_body_of_any_format(api_client, subtests):
    for kind, content in (
        ("text/csv", "id,verb\n1,run\n"),
        ("text/tab-separated-values; charset=utf-8", "id\tverb\n1\trun\n"),
        ("application/x-ndjson", '{"id": 1, "verb": "run"}\n'),
        ("application/octet-stream", "id,verb\n1,run\n"),
    ):
        with subtests.test(kind=kind, content=content):
            address = f"{API}/campaigns/{(await api_client.post(f'{API}/campaigns', json=SETTINGS)).json()['slug']}"
            sent = await api_client.post(f"{address}/items", content=content, headers={"content-type": kind})
            assert sent.status_code == 201, sent.text
            found = (await api_client.get(f"{address}/items")).json()
            assert found["total"] == 1
            assert found["items"][0]["id"] == "1"
            assert found["items"][0]["text"] == "run"


async def test_items_come_as_a_form_too_with_a_template(api_client):
    address = await draft(api_client)
    sent = await api_client.post(
        f"{address}/items",
        params={"template": "to {verb}", "replace": "true"},
        files={"file": ("a.csv", "id,verb\n1,run\n2,hum\n")},
    )
    assert sent.json()["imported"] == 2
    page = (await api_client.get(f"{address}/items", params={"offset": 1, "limit": 1})).json()
    assert page == {
        "total": 2,
        "items": [{"number": 1, "id": "2", "text": "to hum", "fields": {"id": "2", "verb": "hum"}, "retired": False}],
    }


async def test_images_come_as_a_zip_in_the_same_form(api_client):
    settings = {"name": "Photos", "question": "How sharp?", "content": "image"}
    address = f"{API}/campaigns/{(await api_client.post(f'{API}/campaigns', json=settings)).json()['slug']}"
    form = {"file": ("photos.csv", table("a.png")), "media": ("photos.zip", zipped({"a.png": png()}))}
    assert (await api_client.post(f"{address}/items", files=form)).json()["imported"] == 1
    form["media"] = ("photos.zip", zipped({"a.png": SVG}))
    again = await api_client.post(f"{address}/items", files=form, params={"replace": "true"})
    refused(again, 422, "media_type_unknown")


async def test_a_form_without_a_file_is_refused(api_client):
    address = await draft(api_client)
    refused(await api_client.post(f"{address}/items", files={"other": ("a.csv", "x")}), 422, "file_missing")


async def test_a_file_with_a_mistake_names_its_line(api_client):
    address = await draft(api_client)
    kind = {"content-type": "text/csv"}
    response = await api_client.post(f"{address}/items", content="id,verb\n8,a\n8,b\n", headers=kind)
    assert refused(response, 422, "id_twice")["line"] == 3
    assert (await api_client.get(f"{address}/items")).json()["total"] == 6


async def test_posteriors_come_in_pages_with_intervals(api_client):
    address = await launched(api_client)
    hit = await hit_for(api_client, address)
    await answer(api_client, hit)
    found = (await api_client.get(f"{address}/posteriors", params={"order": "-score", "limit": 2, "level": 0.5})).json()
    assert found["total"] == 6
    best, second = found["posteriors"]
    assert best["id"] == hit["items"][2]["id"]
    assert (best["state"], best["a"], best["b"]) == ([1.9, 1.1], 1.9, 1.1)
    assert best["judgments"] == 1
    assert best["score"] >= second["score"]
    assert 0 < best["low"] < best["high"] < 1
    wide = (await api_client.get(f"{address}/posteriors", params={"order": "-score", "limit": 1})).json()["posteriors"][
        0
    ]
    assert wide["low"] < best["low"] < best["high"] < wide["high"]


async def test_a_posterior_comes_with_the_intervals_of_the_export(api_client):
    address = await launched(api_client, update_law="trueskill")
    exported: list[dict[str, Any]] = []
    for turn in range(3):
        scores = (10 + turn, 50 + turn, 90 + turn)
        await answer(api_client, await hit_for(api_client, address, f"ann {turn}"), f"ann {turn}", scores)
        lines = (await api_client.get(f"{address}/export/items", params={"format": "jsonl"})).text.splitlines()
        exported = [json.loads(line) for line in lines]
        for page in ({}, {"order": "-score", "limit": 2, "offset": 1, "level": 0.5}):
            posteriors = (await api_client.get(f"{address}/posteriors", params=page)).json()["posteriors"]
            by_id = {posterior["id"]: posterior for posterior in posteriors}
            calibrated = ("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95")
            told = (*calibrated, "shrunken_score", "shrunken_low_95", "shrunken_high_95")
            for item in exported:
                if item["id"] in by_id:
                    shown = {"mean_score": by_id[item["id"]]["as_shown"]["mean"], **by_id[item["id"]]["as_shown"]}
                    assert [shown[name] for name in told] == [item[name] for name in told]
                    as_shares = [100 * by_id[item["id"]][name] for name in told if item[name] is not None]
                    assert as_shares == pytest.approx([item[name] for name in told if item[name] is not None])
    assert all(item["shrunken_low_95"] < item["shrunken_score"] < item["shrunken_high_95"] for item in exported)


async def test_who_waits_for_posteriors_while_answers_are_read_holds_no_connection(app, api_client):
    address = await launched(api_client)
    async with app.state.fits.reader_lock, asyncio.timeout(30):
        polls = [
            asyncio.create_task(api_client.get(f"{address}/posteriors")) for _ in range(app.state.settings.pool_size)
        ]
        for _ in polls:
            assert (await api_client.get(address)).status_code == 200
        assert not any(poll.done() for poll in polls)
    for reply in await asyncio.gather(*polls):
        assert reply.json()["total"] == 6


async def test_answers_that_wait_for_a_lock_share_connections_however_their_campaign_is_named(app, api_client):
    """By links and by programs, more of each than there are connections; another campaign's have one left."""
    locked, other = await launched(api_client), await launched(api_client, name="Other")
    hits = [(await hit_for(api_client, locked, name), name) for name in ("ann", "bob")]
    engine = app.state.database
    links = (await api_client.get(locked)).json()["links"]
    page = (await api_client.post(links["link"], follow_redirects=True)).text
    form = dict(re.findall(r'name="(token|hit)" value="([^"]*)"', page))
    form |= dict.fromkeys(re.findall(r'name="(score-\d+)"', page), "50")
    mine = "SELECT id FROM campaigns WHERE slug = :slug"
    async with engine.begin() as connection:
        lock = text(f"SELECT FROM posteriors WHERE campaign_id = ({mine}) FOR UPDATE")
        await connection.execute(lock, {"slug": locked.rpartition("/")[2]})
        many = range(app.state.settings.pool_size)
        held = [asyncio.create_task(api_client.post(links["link"], data=form)) for _ in many]
        held += [asyncio.create_task(answer(api_client, *hits[k % 2])) for k in many]
        async with asyncio.timeout(30):
            await wait_until(engine, requests_are_waiting_sql(1))
            work = await api_client.post(f"{other}/hits", json={"annotator": "ann"})
            assert work.status_code == 200
        assert not any(one.done() for one in held)
    for reply in await asyncio.gather(*held):
        assert reply.status_code == 200


async def test_a_draft_has_no_posteriors(api_client):
    address = await draft(api_client)
    assert (await api_client.get(f"{address}/posteriors")).json() == {
        "total": 0,
        "posteriors": [],
        "unit": "score, points",
        "unit_of_means": "score, points",
    }
    refused(await api_client.get(f"{address}/verify"), 409, "not_launched")


async def test_an_impossible_page_is_refused(api_client, subtests):
    for query in ("limit=0", "limit=10001", "offset=-1", "order=color", "level=1", "offset=9e99"):
        with subtests.test(query=query):
            address = await launched(api_client)
            refused(await api_client.get(f"{address}/posteriors?{query}"), 422, "invalid")


async def test_exports_are_downloads(api_client):
    address = await launched(api_client)
    await answer(api_client, await hit_for(api_client, address))
    lines = (await api_client.get(f"{address}/export/items", params={"format": "jsonl"})).text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"v{k}" for k in range(6)]
    settings = await api_client.get(f"{address}/export/settings")
    assert settings.headers["content-type"] == "application/json"
    easl = await api_client.get(f"{address}/export/easl")
    assert easl.headers["content-disposition"].startswith('attachment; filename="verbs-easl-20')
    refused(await api_client.get(f"{address}/export/secrets"), 404, "export_not_found")


async def test_a_token_is_not_given_for_a_wrong_password_and_tries_are_counted(api_client):
    for _ in range(FREE_FAILURES_PER_NAME):
        wrong = await api_client.post(f"{API}/tokens", json={"name": "admin", "password": "wrong"})
        refused(wrong, 401, "wrong_password")
    right = await api_client.post(f"{API}/tokens", json={"name": "admin", "password": PASSWORD})
    assert refused(right, 429, "too_many_attempts")["retry_after_seconds"] > 0


async def test_a_session_of_a_browser_is_no_token(researcher):
    refused(await researcher.get(f"{API}/campaigns"), 401, "token_missing")


HALF = '"\\ud800"'  # half of a surrogate pair: JSON can say it, UTF-8 cannot


async def test_half_a_character_is_refused_not_a_crash(api_client, subtests):
    for path, body in (
        ("campaigns", f'{{"name": {HALF}, "question": "How often?"}}'),
        ("campaigns/verbs/hits", f'{{"annotator": {HALF}}}'),
        ("hits/1/response", f'{{"annotator": "ann", "scores": {{{HALF}: 1}}}}'),
        ("hits/1/response", f'{{"annotator": "ann", "scores": {{}}, "telemetry": {{{HALF}: {{}}}}}}'),
        ("tokens", f'{{"name": {HALF}, "password": "{PASSWORD}"}}'),
        ("tokens", f'{{"name": "admin", "password": {HALF}}}'),
        ("tokens", f'{{"name": "admin", "password": "{PASSWORD}", "token_name": {HALF}}}'),
    ):
        with subtests.test(path=path, body=body):
            await hit_for(api_client, await launched(api_client))
            kind = {"content-type": "application/json"}
            refused(await api_client.post(f"{API}/{path}", content=body, headers=kind), 422, "invalid")


async def test_settings_that_would_stop_a_campaign_are_refused(api_client, subtests):
    unreadable: list[dict[str, Any]] = [{"update_law": []}, {"update_law": {}}]
    for setting in (*unreadable, {"gamma": 1e200}, {"gamma": 1e-200}, {"epsilon": 1e300}):
        with subtests.test(setting=setting):
            refused(await api_client.post(f"{API}/campaigns", json=SETTINGS | setting), 422, "invalid")
            refused(await api_client.patch(await draft(api_client), json=setting), 422, "invalid")


async def test_a_nul_character_is_refused_not_a_crash(api_client):
    refused(await api_client.post(f"{API}/campaigns", json=SETTINGS | {"name": "a\u0000b"}), 422, "nul_byte")


@pytest.mark.parametrize("name", ["criterion", "group"])
async def test_a_nul_character_in_an_address_is_refused_not_a_crash(api_client, name):
    findings = f"{await draft(api_client)}/analysis/findings"
    refused(await api_client.get(findings, params={name: "a\0b"}), 422, "invalid")


async def test_a_body_that_is_too_large_is_refused(api_client):
    response = await api_client.post(f"{API}/campaigns", json=SETTINGS | {"instructions": "x" * 1_100_000})
    refused(response, 413, "too_large")


async def test_every_refusal_in_the_description_has_the_shape_of_our_refusals(api_client):
    api = (await api_client.get(f"{API}/openapi.json")).json()
    assert all(path.startswith(f"{API}/") for path in api["paths"])
    for path, calls in api["paths"].items():
        for method, call in calls.items():
            assert call["description"], (method, path)
            for status, reply in call["responses"].items():
                if status >= "400":
                    assert reply["content"]["application/json"]["schema"]["$ref"].endswith("/Problem"), (path, status)
                    assert re.search(r"`[a-z_]+`", reply["description"]), (path, status)
    assert "HTTPValidationError" not in api["components"]["schemas"]


async def test_the_reference_shows_every_call_and_setting(api_client, researcher):
    page = (await researcher.get("/admin/api")).text
    api = (await api_client.get(f"{API}/openapi.json")).json()
    for calls in api["paths"].values():
        for call in calls.values():
            assert f'id="{call["operationId"]}"' in page
    for name in CampaignSettings.model_fields:
        assert f"<code>{name}</code>" in page


async def test_only_a_number_is_a_score(api_client, subtests):
    for score in ("50", "1_0", "٣", True, None):
        with subtests.test(score=score):
            hit = await hit_for(api_client, await launched(api_client))
            refused(await answer(api_client, hit, scores=(1, 2, score)), 422, "invalid")


async def test_an_archived_campaign_is_listed_apart(api_client):
    address = await draft(api_client)
    archived = await api_client.post(f"{address}/transitions", json={"action": "archive"})
    assert archived.json()["archived_at"] is not None
    assert (await api_client.get(f"{API}/campaigns")).json() == {"campaigns": []}
    (one,) = (await api_client.get(f"{API}/campaigns", params={"archived": True})).json()["campaigns"]
    assert one["status"] == "draft"
    await api_client.post(f"{address}/transitions", json={"action": "restore"})
    (one,) = (await api_client.get(f"{API}/campaigns")).json()["campaigns"]
    assert one["archived_at"] is None
    await api_client.post(f"{address}/transitions", json={"action": "launch"})
    refused(await api_client.post(f"{address}/transitions", json={"action": "archive"}), 409, "wrong_status")


async def test_a_campaign_is_copied_without_its_answers(api_client):
    address = await launched(api_client)
    await answer(api_client, await hit_for(api_client, address))
    reply = await api_client.post(f"{address}/copies")
    assert reply.status_code == 201
    copy = reply.json()
    assert (copy["status"], copy["items"], copy["judgments_taken"]) == ("draft", 6, 0)
    assert copy["settings"]["name"].endswith(" (copy)")


async def test_a_copy_may_have_a_name_of_its_own_and_no_items(api_client):
    copies = f"{await draft(api_client)}/copies"
    copy = (await api_client.post(copies, json={"name": " Second study ", "items": False})).json()
    assert (copy["settings"]["name"], copy["items"]) == ("Second study", 0)
    for wrong in ({"name": "x" * 501}, {"title": "Second study"}):
        refused(await api_client.post(copies, json=wrong), 422, "invalid")


async def test_the_name_of_an_erased_annotator_is_a_new_annotator_in_every_process(app, api_client, database_url):
    address = await launched(api_client)
    other_app = create_app(Settings(database_url=database_url))
    async with other_app.router.lifespan_context(other_app), http_client(other_app) as other_client:
        other_client.headers.update(api_client.headers)
        slug = address.rpartition("/")[2]
        assert await hit_for(api_client, address)
        await erase_person_and_return_erasure(app.state.database, slug, "A1", "anonymise", now=NOW)
        hits = [await hit_for(client, address) for client in (other_client, api_client)]
    assert hits[0]["id"] == hits[1]["id"]


async def test_lines_of_a_txt_file_are_items_and_other_lines_if_the_request_says_so(api_client):
    settings = {"name": "Requests", "question": "How polite?"}
    address = f"{API}/campaigns/{(await api_client.post(f'{API}/campaigns', json=settings)).json()['slug']}"
    form = {"file": ("a.txt", b"Send it.\nPlease, send it\n", "text/plain")}
    assert (await api_client.post(f"{address}/items", files=form)).json()["imported"] == 2
    body = {"content": b"Send it.\nPlease, send it\nNow\n", "headers": {"content-type": "text/csv"}}
    refused = (await api_client.post(f"{address}/items", **body)).json()["error"]
    assert (refused["code"], refused["details"]["read_as"]) == ("ragged_row", "lines")
    again = await api_client.post(f"{address}/items", params={"read_as": "lines", "replace": "true"}, **body)
    assert again.json()["imported"] == 3
