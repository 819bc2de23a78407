"""Pairwise comparison from the form to the scores: what is sent, stored, read and exported."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from app.campaigns import form_input, form_values, lifecycle
from app.campaigns.setting_types import can_law_read_design
from app.database.bulk import open_snapshot
from app.designs.answer import Answer, Form
from app.designs.pairwise import Pairwise
from app.errors import Conflict, Invalid
from app.inference.online.laws import ONLINE_LAWS
from app.record import replay
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.unsaved import unsaved

ITEMS = [7, 3]
LAWS = [name for name, law in ONLINE_LAWS.items() if can_law_read_design(Pairwise(), law)]


def stored(fields, design=None):
    """Return the values of the two items, left and right, after a form."""
    design = design or Pairwise()
    return design.checked_values_in_item_order_or_refuse(design.parse_answer(Form(fields, "form"), ITEMS), ITEMS)


@pytest.mark.parametrize(("chosen", "places"), [("7", [1.0, 2.0]), ("3", [2.0, 1.0]), ("tie", [1.0, 1.0])])
def test_a_choice_is_two_places(chosen, places):
    assert stored({"preferred": chosen}) == places


def test_what_is_no_choice_is_refused(subtests):
    for fields, code in (
        ({}, "scores_missing"),
        ({"preferred": ""}, "scores_missing"),
        ({"preferred": "5"}, "scores_unknown"),
        ({"preferred": "left"}, "scores_unknown"),
        ({"preferred": "-7"}, "scores_unknown"),
    ):
        with subtests.test(fields=fields, code=code):
            with pytest.raises(Invalid) as refused:
                stored(fields)
            assert refused.value.code == code


def test_who_must_choose_cannot_say_that_the_two_are_equal():
    with pytest.raises(Invalid) as refused:
        stored({"preferred": "tie"}, Pairwise(ties_allowed=False))
    assert refused.value.code == "answer_impossible"
    assert "equal" not in Pairwise(ties_allowed=False).task_message_for_first_page(unsaved())


@given(st.dictionaries(st.sampled_from(["preferred", "score-7", "hit"]), st.text(max_size=4)), st.booleans())
def test_whatever_a_browser_can_send_is_two_places_or_refused_with_a_message(fields, ties_allowed):
    design = Pairwise(ties_allowed=ties_allowed)
    places, refused = outcome(lambda: stored(fields, design))
    assert refused or places in ([1.0, 2.0], [2.0, 1.0], [1.0, 1.0][: 2 * ties_allowed])
    assert refused in (None, "scores_missing", "scores_unknown", "answer_impossible")


@given(st.dictionaries(st.sampled_from([7, 3, 9]), st.floats() | st.integers(-1, 3).map(float)))
def test_whatever_a_program_can_send_too(sent):
    places, refused = outcome(lambda: Pairwise().checked_values_in_item_order_or_refuse(Answer(sent), ITEMS))
    assert refused or places in ([1.0, 2.0], [2.0, 1.0], [1.0, 1.0])
    assert refused in (None, "scores_missing", "scores_unknown", "score_out_of_range")


def outcome(read):
    """Return the stored values, or the code of the refusal, which has words too."""
    try:
        return read(), None
    except Invalid as refusal:
        return None, refusal.code if refusal.message else "without words"


def test_the_form_of_settings_asks_whether_ties_are_allowed():
    filled = form_values.new_campaign_form_values() | {"name": "Verbs", "question": "Which?", "design": "pairwise"}
    assert form_input.parse_settings_form(filled).design_settings == {
        "ties_allowed": False,
        "submit_on_choice": False,
    }  # a switch that is off is left out
    assert form_input.parse_settings_form(filled | {"pairwise.ties_allowed": "on"}).design_settings == {
        "ties_allowed": True,
        "submit_on_choice": False,
    }


async def test_a_page_asks_takes_and_shows_it(app, client, researcher):
    campaign = await create_running_campaign(app.state.database, items=4, judgments_per_item=2, design="pairwise")
    started = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
    fields = {"token": hidden(started.text, "token"), "hit": hidden(started.text, "hit")}
    left = started.text.partition('data-side="')[2].partition('"')[0]
    for wrong, said in (({}, "Nothing was chosen yet."), ({"preferred": "99"}, "not in this HIT")):
        assert said in (await client.post(started.url.path, data=fields | wrong)).text
    answered = await client.post(started.url.path, data=fields | {"preferred": left})
    assert "1 task done" in answered.text
    again = await client.post(started.url.path, data=fields | {"preferred": "tie"})
    assert "had been stored already" in again.text
    ((items, places),) = await fetch_rows(app.state.database, "SELECT items, values FROM responses")
    assert (left, places) == ("00", [1.0, 2.0])  # what stood on the left comes first
    for page in (
        "",
        f"?item=v{items[0]}",
        "/analysis",
        "/analysis?part=scores",
        "/settings/question",
        "/export",
        "/share",
    ):
        reply = await researcher.get(f"/admin/campaigns/{campaign.slug}{page}")
        assert reply.status_code == 200, page
    item = (await researcher.get(f"/admin/campaigns/{campaign.slug}?item=v{items[0]}")).text
    assert '<td class="words">chosen, left</td>' in item


def hidden(html, name):
    return html.partition(f'name="{name}" value="')[2].partition('"')[0]


async def test_programs_answer_with_places_and_exports_have_them(app, api_client):  # noqa: F811  (the fixture)
    address = "/api/v1/campaigns"
    new = {"name": "Verbs", "question": "Which?", "judgments_per_item": 9, "design": "pairwise"}
    made = (await api_client.post(address, json=new)).json()
    assert made["settings"]["design_settings"] == {"ties_allowed": True, "submit_on_choice": False}
    assert (made["settings"]["items_per_hit"], made["settings"]["update_law"]) == (2, "trueskill")
    address = f"{address}/{made['slug']}"
    await api_client.post(f"{address}/items", files={"file": ("items.csv", b"id,text\na,run\nb,abide\n")})
    await api_client.post(f"{address}/transitions", json={"action": "launch"})
    for places in ({"a": 1, "b": 2}, {"a": 1, "b": 1}, {"a": 2, "b": 1}):
        hit = (await api_client.post(f"{address}/hits", json={"annotator": "ann"})).json()["hit"]
        response = f"/api/v1/hits/{hit['id']}/response"
        wrong = await api_client.post(response, json={"annotator": "ann", "values": {"a": 1, "b": 3}})
        assert wrong.json()["error"]["code"] == "score_out_of_range"
        assert "a whole number from 1 to 2" in wrong.json()["error"]["message"]
        assert (await api_client.post(response, json={"annotator": "ann", "values": places})).status_code == 200
    exported = (await api_client.get(f"{address}/export/responses?format=csv")).text
    rows = list(csv.DictReader(io.StringIO(exported)))
    told = [
        [row[name] for row in sorted(rows, key=lambda row: (int(row["seq"]), row["item"]))]
        for name in ("score", "rank")
    ]
    assert told == [["1.0", "2.0", "1.0", "1.0", "2.0", "1.0"], ["1", "2", "1", "1", "2", "1"]]
    wins = (await api_client.get(f"{address}/analysis/scores/expected_wins")).json()["rows"]
    assert {row["id"]: row["score"] for row in wins} == {"a": 50.0, "b": 50.0}  # half a win for a tie
    assert (await api_client.get(f"{address}/verify")).json()["clean"] is True


@pytest.mark.parametrize("law", LAWS)
async def test_what_a_simulated_crowd_believes_is_found_again_and_replayed_to_the_bit(engine, law):
    campaign = await create_running_campaign(engine, items=20, judgments_per_item=16, design="pairwise", update_law=law)
    rng = np.random.default_rng(5)
    hits = await answer_hits_by_simulated_annotators_and_count(
        engine,
        campaign,
        hits=160,
        annotators=8,
        population=population_with_random_bias_only(0.1),
        truth_column=None,
        rng=rng,
        clock=lambda: NOW,
    )
    truth = np.random.default_rng(5).random(20)  # what the crowd drew first
    scores = [score for (score,) in await fetch_rows(engine, "SELECT score FROM current_posteriors ORDER BY number")]
    assert hits > 150
    assert pearsonr(scores, truth).statistic > 0.9
    async with open_snapshot(engine) as connection:
        found = await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )
    assert found == replay.Verification(hits, 20, 0, [])


async def test_the_side_on_which_an_item_stands_is_left_to_chance(engine):
    campaign = await create_running_campaign(engine, items=2, judgments_per_item=40, design="pairwise")
    who = await create_annotator(engine, campaign)
    left = []
    for _ in range(40):
        hit = await try_to_lease_hit(engine, who)
        left.append(hit.items[0])
        await submit_scores(engine, who, hit, scores=[1.0, 2.0])
    assert 8 < left.count(0) < 32


async def test_a_single_item_that_is_left_is_not_asked_alone(engine):
    campaign = await create_running_campaign(engine, items=3, judgments_per_item=1, design="pairwise")
    who = await create_annotator(engine, campaign)
    await submit_scores(engine, who, await try_to_lease_hit(engine, who), scores=[1.0, 2.0])
    assert (await find_or_lease_next_hit(engine, who)).reason == "all_done"


async def test_a_campaign_of_one_item_is_not_launched_since_nothing_could_be_compared(engine):
    campaign = await create_running_campaign(engine, items=1, launched=False, design="pairwise")
    with pytest.raises(Conflict) as refused:
        async with engine.begin() as connection:
            await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    assert refused.value.code == "too_few_items"
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "draft"
