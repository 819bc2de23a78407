"""A program looks at annotators, and holds, excludes and restores them."""

from tests.annotation.hits.campaigns import execute_sql, fetch_rows, fetch_value
from tests.api.conftest import API
from tests.quality.deciding import POSTERIORS, answer_hits, verify_campaign
from tests.quality.test_annotators_page import took

REASON = {"reason": "Answers at random."}


async def test_annotators_are_listed_with_what_they_did(engine, api_client):
    campaign, _, _ = await answer_hits(engine, people=3, hits=2)
    listed = (await api_client.get(f"{API}/campaigns/{campaign.slug}/annotators")).json()
    assert listed["total"] == 3
    assert [one["name"] for one in listed["annotators"]] == ["A1", "A2", "A3"]
    first = listed["annotators"][0]
    assert (first["hits_answered"], first["hits_counted"], first["barred"], first["findings"]) == (2, 2, None, [])
    assert sum(first["histogram"]) == 10
    one = await api_client.get(f"{API}/campaigns/{campaign.slug}/annotators/{first['pseudonym']}")
    assert one.json() == first
    assert (listed["comparing"], first["pay_per_hour"]) == (False, None)
    assert first["with_others"]["low"] < first["with_others"]["value"] < first["with_others"]["high"]


async def test_annotators_are_sorted_and_paged_by_each_column(engine, api_client, subtests):
    for sort in ("name", "answers", "seconds", "last", "standing"):
        with subtests.test(sort=sort):
            campaign, *_ = await answer_hits(engine, people=3, hits=1)
            address = f"{API}/campaigns/{campaign.slug}/annotators"
            await api_client.post(f"{address}/A2/hold", json=REASON)
            by = {"sort": sort, "limit": 2}
            pages = [(await api_client.get(address, params=by | {"offset": offset})).json() for offset in (0, 2)]
            assert sorted(one["name"] for page in pages for one in page["annotators"]) == ["A1", "A2", "A3"]
            assert [len(page["annotators"]) for page in pages] == [2, 1]
            if sort == "standing":
                assert pages[0]["annotators"][0]["name"] == "A2"


async def test_an_annotator_is_excluded_and_restored(engine, api_client):
    campaign, _, _ = await answer_hits(engine)
    before = await fetch_rows(engine, POSTERIORS)
    address = f"{API}/campaigns/{campaign.slug}/annotators/A1"
    assert (await api_client.post(f"{address}/exclude", json=REASON)).status_code == 204
    told = (await api_client.get(address)).json()
    assert (told["barred"]["how"], told["barred"]["by"], told["hits_counted"]) == ("excluded", "admin", 0)
    assert (await verify_campaign(engine, campaign)).responses == 4
    refused = await api_client.post(f"{address}/exclude", json=REASON)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "already_excluded")
    assert (await api_client.post(f"{address}/restore", json=REASON)).status_code == 204
    assert await fetch_rows(engine, POSTERIORS) == before


async def test_one_answer_is_excluded_and_marked_among_its_annotators(engine, api_client):
    campaign, _, _ = await answer_hits(engine)
    seq = await fetch_value(engine, "SELECT min(seq) FROM responses")
    address = f"{API}/campaigns/{campaign.slug}"
    assert (await api_client.post(f"{address}/answers/{seq}/exclude", json=REASON)).status_code == 204
    answers = (await api_client.get(f"{address}/annotators/A1/answers")).json()
    assert [(one["number"] == seq, one["counts"]) for one in answers] == [(False, True), (True, False)]
    assert answers[1]["excluded"] == "Answers at random. (admin)"
    assert len(answers[0]["judged"]) == 5


async def test_nothing_is_decided_without_a_reason_or_about_nobody(engine, api_client):
    campaign, _, _ = await answer_hits(engine, people=1, hits=1)
    address = f"{API}/campaigns/{campaign.slug}"
    for path, sent, status, code in (
        ("annotators/A1/hold", {"reason": " "}, 422, "reason_missing"),
        ("annotators/A1/hold", {"reason": "x" * 501}, 422, "invalid"),
        ("annotators/A1/praise", REASON, 422, "invalid"),
        ("annotators/A9/hold", REASON, 404, "annotator_not_found"),
        ("answers/99999/exclude", REASON, 404, "response_not_found"),
    ):
        refused = await api_client.post(f"{address}/{path}", json=sent)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code), path


async def test_hours_and_pay_leave_out_the_time_in_which_a_hit_was_only_left_open(engine, api_client):
    campaign, _, _ = await answer_hits(engine, people=1, hits=10, pay_per_hit=0.2)
    await took(engine, {1: 30})
    left_open = "UPDATE hits SET issued_at = issued_at - interval '5 hours' WHERE id = (SELECT max(id) FROM hits)"
    await execute_sql(engine, left_open)
    (told,) = (await api_client.get(f"{API}/campaigns/{campaign.slug}/annotators")).json()["annotators"]
    assert (round(told["hours"], 4), round(told["pay_per_hour"], 2), told["median_seconds"]) == (0.0833, 24.0, 30.0)


async def test_pay_per_hour_is_null_for_a_person_with_few_tasks(engine, api_client):
    campaign, _, _ = await answer_hits(engine, people=1, hits=9, pay_per_hit=0.2)
    await took(engine, {1: 30})
    (line,) = (await api_client.get(f"{API}/campaigns/{campaign.slug}/annotators")).json()["annotators"]
    assert (line["median_seconds"], line["pay_per_hour"]) == (30.0, None)
