"""Known answers in a column of the items, used as gold items from every door."""

import json
import re

import pytest

from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.annotation.hits.criteria import criteria_settings
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import create_draft, import_items

TRUTH = "id,text,truth\n" + "".join(f"t{k},sentence {k},{k * 10}\n" for k in range(11))
GOLD = "SELECT external_id, expected FROM check_items ORDER BY (expected->>'value')::float, number"


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    campaign = await create_draft(engine, hits_per_annotator=6, checks_percent=20)
    await import_items(engine, campaign, TRUTH)
    return campaign


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


async def use(researcher, campaign, **said):
    address = f"/admin/campaigns/{campaign.slug}/items/known-answers"
    return await researcher.post(address, data={"column": "truth", "count": "3", "tolerance": "10"} | said)


async def test_the_items_and_the_step_quality_offer_the_known_answers(researcher, campaign):
    sentence = "11 items have a known answer in the column “truth”, from 0 to 100."
    for path in ("/items", "/settings/quality"):
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}{path}")).text
        assert sentence in words(page)
        assert "Use known answers as gold" in page
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text
    assert re.search(r'id="known-tolerance"[^>]* value="15"', page)
    assert re.search(r'id="known-count"[^>]* max="11" value="10"', page)


async def test_gold_items_are_spread_over_the_known_answers(researcher, engine, campaign):
    assert (await use(researcher, campaign)).status_code == 303
    assert await fetch_rows(engine, GOLD) == [
        ("t0", {"value": 0.0, "tolerance": 10.0}),
        ("t5", {"value": 50.0, "tolerance": 10.0}),
        ("t10", {"value": 100.0, "tolerance": 10.0}),
    ]
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 8


async def test_items_that_stay_in_the_study_are_not_used_twice(researcher, engine, campaign):
    assert (await use(researcher, campaign, keep="on", count="6")).status_code == 303
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 11
    assert (await use(researcher, campaign, keep="on", count="5")).status_code == 303
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 11
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text)
    assert "known answer in the column" not in page


async def test_what_cannot_be_gold_is_refused_with_what_was_entered(researcher, engine, campaign, subtests):
    for said, status, sentence in (
        ({"count": "12"}, 422, "only 11 items of this draft have a known answer in “truth”"),
        ({"column": "oracle"}, 422, "No item has a possible answer in the column “oracle”."),
        ({"count": "many"}, 422, "Check count: the number of gold items must be from 1 to 1,000"),
        ({"tolerance": "-2"}, 422, "Check tolerance"),
    ):
        with subtests.test(said=said):
            reply = await use(researcher, campaign, **said)
            assert reply.status_code == status
            assert sentence in words(reply.text)
            assert '<details class="add" id="known-answers" open>' in reply.text
            assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0


async def test_values_that_no_answer_can_have_are_counted_and_never_used(researcher, engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, TRUTH + "x1,no answer,\nx2,too high,400\nx3,a word,much\n")
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text)
    assert "11 items have a known answer" in page
    assert "2 other values, such as “400”, are not possible here." in page


async def test_shares_on_a_scale_of_points_are_refused(researcher, api_client, engine):  # noqa: F811  (the fixture)
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text,truth\n" + "".join(f"s{k},text {k},0.{k}\n" for k in range(5)))
    reply = await api_client.post(f"/api/v1/campaigns/{campaign.slug}/items/known-answers", json={"count": 2})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "known_answers_other_scale")
    assert "run from 0.0 to 0.4, but scores from 0 to 100" in reply.json()["error"]["message"]
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text
    assert "Use known answers as gold" not in page


async def test_labels_of_the_design_are_known_answers_and_others_are_not(api_client, engine):  # noqa: F811  (the fixture)
    campaign = await create_draft(engine, design="ordinal", design_settings={"labels": ["bad", "fair", "good"]})
    await import_items(
        engine, campaign, "id,text,truth\na,one,good\nb,two,bad\nc,three,superb\nd,four,fair\ne,five,good\n"
    )
    address = f"/api/v1/campaigns/{campaign.slug}/items/known-answers"
    reply = await api_client.post(address, json={"count": 2, "tolerance": 1, "keep": True})
    assert reply.json() == {"ids": ["b", "e"]}
    assert await fetch_rows(engine, "SELECT external_id, expected FROM check_items ORDER BY number") == [
        ("b (gold)", {"labels": ["bad"], "tolerance": 1.0}),
        ("e (gold)", {"labels": ["good"], "tolerance": 1.0}),
    ]


async def test_in_comparisons_the_highest_are_expected_before_the_lowest(api_client, engine):  # noqa: F811  (the fixture)
    campaign = await create_draft(engine, design="pairwise", items_per_hit=2)
    await import_items(engine, campaign, TRUTH)
    address = f"/api/v1/campaigns/{campaign.slug}/items/known-answers"
    assert (await api_client.post(address, json={"count": 4})).json() == {"ids": ["t9", "t10", "t0", "t1"]}
    places = await fetch_rows(engine, "SELECT external_id, expected->'place' FROM check_items ORDER BY number")
    assert places == [("t9", 1), ("t10", 1), ("t0", 2), ("t1", 2)]


async def test_in_comparisons_items_that_are_not_apart_are_refused(api_client, engine):  # noqa: F811  (the fixture)
    campaign = await create_draft(engine, design="pairwise", items_per_hit=2)
    await import_items(engine, campaign, "id,text,truth\na,one,5\nb,two,5\nc,three,5\n")
    address = f"/api/v1/campaigns/{campaign.slug}/items/known-answers"
    for count in (1, 2):
        reply = await api_client.post(address, json={"count": count})
        assert reply.json()["error"]["code"] == "known_answers_too_few"


async def test_a_campaign_file_uses_known_answers(api_client, engine):  # noqa: F811  (the fixture)
    rows = [{"id": f"r{k}", "text": f"row {k}", "truth": 10 * k} for k in range(11)]
    content = {"name": "Known", "question": "How good?", "items": {"rows": rows, "known_answers": {"count": 2}}}
    upload = {"file": ("known.yaml", json.dumps(content))}
    reply = await api_client.post("/api/v1/campaigns/files", files=upload)
    assert reply.status_code == 201, reply.text
    assert await fetch_rows(engine, GOLD) == [("r0", {"value": 0.0}), ("r10", {"value": 100.0})]


async def test_a_campaign_file_without_such_answers_creates_nothing(api_client, engine):  # noqa: F811  (the fixture)
    content = {"name": "None", "question": "How?", "items": {"rows": [{"id": "a", "text": "b"}], "known_answers": {}}}
    upload = {"file": ("none.yaml", json.dumps(content))}
    reply = await api_client.post("/api/v1/campaigns/files", files=upload)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "known_answers_missing")
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0


async def test_a_column_of_known_answers_cannot_be_about_several_criteria(api_client, engine):  # noqa: F811
    campaign = await create_draft(engine, criteria=criteria_settings(2))
    await import_items(engine, campaign, TRUTH)
    reply = await api_client.post(f"/api/v1/campaigns/{campaign.slug}/items/known-answers", json={"count": 2})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "known_answers_by_criteria")
