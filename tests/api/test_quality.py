"""Rules and checks in the API."""

from tests.annotation.hits.campaigns import NOW, create_annotator, execute_sql
from tests.campaigns.drafts import create_launched_campaign

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
