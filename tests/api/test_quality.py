"""Rules and checks in the API."""

from tests.annotation.hits.campaigns import NOW, create_annotator, execute_sql, fetch_value
from tests.api.test_api import refused
from tests.campaigns.drafts import create_launched_campaign
from tests.quality.deciding import answer_hits

ITEMS = "id,text,check,expected\n" + "".join(f"v{k},verb {k},,\n" for k in range(6)) + "g1,to walk,gold,80\n"


async def test_programs_read_findings_and_checks(app, api_client):
    campaign = await create_launched_campaign(app.state.database, ITEMS)
    await create_annotator(app.state.database, campaign)
    await execute_sql(
        app.state.database,
        """
        INSERT INTO findings (campaign_id, annotator_id, rule, action, seen, said, found_at)
        SELECT :campaign, id, 'gold', 'warn', '{"failed": 5, "shown": 5}', 'Failed 5 of 5 gold items.', :now
        FROM annotators
        """,
        campaign=campaign.id,
        now=NOW,
    )
    (row,) = (await api_client.get(f"/api/v1/campaigns/{campaign.slug}/findings")).json()
    assert (row["annotator"], row["rule"], row["seen"]["failed"], row["barred"]) == ("A1", "gold", 5, None)
    (check,) = (await api_client.get(f"/api/v1/campaigns/{campaign.slug}/checks")).json()
    assert (check["external_id"], check["expected"], check["answers"]) == ("g1", "65 to 95", 0)
    assert (check["histogram"], check["histograms"]) == ([], [])


async def test_programs_read_the_matrix_of_annotators_by_rules(engine, api_client):
    campaign, _, _ = await answer_hits(engine, people=2)
    await create_annotator(engine, campaign, "left")
    address = f"/api/v1/campaigns/{campaign.slug}"
    matrix = (await api_client.get(f"{address}/quality-matrix")).json()
    assert (matrix["total"], matrix["left_early"]) == (2, 1)
    assert [row["annotator"] for row in matrix["annotators"]] == ["A1", "A2"]
    first = matrix["annotators"][0]
    assert {*first["rules"]} == {*matrix["rules"]}
    assert first["rules"]["too_fast"]["state"] == "unknown"
    assert "Needs 12 tasks; so far 2." in first["rules"]["too_fast"]["evidence"]
    second_page = (await api_client.get(f"{address}/quality-matrix?limit=1&offset=1")).json()
    assert [row["annotator"] for row in second_page["annotators"]] == ["A2"]


async def test_programs_decide_about_several_annotators_and_undo_it(engine, api_client):
    campaign, _, _ = await answer_hits(engine)
    address = f"/api/v1/campaigns/{campaign.slug}/annotators/decisions"
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators ORDER BY id LIMIT 1")
    decision = {"action": "hold", "annotators": [pseudonym, "A1", "A3"], "reason": "too fast"}
    held = (await api_client.post(address, json=decision)).json()
    assert held == {"states_before": {"A1": "active", "A3": "active"}, "unchanged": []}
    assert (await api_client.post(address, json=decision)).json() == {"states_before": {}, "unchanged": ["A1", "A3"]}
    undo = {"action": "undo", "states_before": held["states_before"], "reason": "Undone"}
    assert {*(await api_client.post(address, json=undo)).json()["states_before"]} == {"A1", "A3"}
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE barred IS NOT NULL") == 0


async def test_decisions_about_several_annotators_are_refused_with_the_reason(engine, api_client):
    campaign, _, _ = await answer_hits(engine, people=1)
    address = f"/api/v1/campaigns/{campaign.slug}/annotators/decisions"
    for body, status, code in (
        ({"action": "hold", "reason": "too fast"}, 422, "nobody_chosen"),
        ({"action": "hold", "annotators": ["A1"]}, 422, "reason_missing"),
        ({"action": "hold", "annotators": ["A1", "A9"], "reason": "too fast"}, 404, "annotator_not_found"),
        ({"action": "delete", "annotators": ["A1"], "reason": "too fast"}, 422, "invalid"),
    ):
        refused(await api_client.post(address, json=body), status, code)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE barred IS NOT NULL") == 0
