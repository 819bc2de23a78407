"""Programs read a campaign by the criterion that they name."""

from tests.annotation.hits.campaigns import fetch_rows
from tests.annotation.hits.criteria import answer_all_hits, create_campaign_with_criteria


async def test_programs_read_by_the_criterion_that_they_name(api_client, engine):
    judged = await create_campaign_with_criteria(engine, 2)
    await answer_all_hits(engine, judged, people=4, hits=8)
    api = f"/api/v1/campaigns/{judged.slug}"
    for criterion, number in (("adequacy", 0), ("fluency", 1)):
        reply = (await api_client.get(f"{api}/posteriors", params={"criterion": criterion})).json()
        assert reply["total"] == 12
        assert [one["score"] for one in reply["posteriors"]] == await stored(engine, number)
    one, other = [
        (await api_client.get(f"{api}/analysis/scores/mean", params={"criterion": name})).json()["rows"]
        for name in ("adequacy", "fluency")
    ]
    assert one != other
    assert one == (await api_client.get(f"{api}/analysis/scores/mean")).json()["rows"]
    assert "halo" in [table["name"] for table in (await api_client.get(f"{api}/analysis")).json()["tables"]]
    halo = (await api_client.get(f"{api}/analysis/tables/halo")).json()
    assert halo["rows"][0]["judgments"] == 160
    for part in ("posteriors", "analysis", "analysis/scores/mean", "analysis/tables/agreement", "export/scores"):
        refused = await api_client.get(f"{api}/{part}", params={"criterion": "style"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "criterion_not_found"), part


async def stored(engine, criterion):
    statement = "SELECT score FROM current_posteriors WHERE criterion = :criterion ORDER BY number"
    return [score for (score,) in await fetch_rows(engine, statement, criterion=criterion)]
