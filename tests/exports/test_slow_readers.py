from sqlalchemy.ext.asyncio import create_async_engine

from tests.annotation.hits.campaigns import create_running_campaign


async def test_downloads_have_connections_of_their_own(app, client, researcher):
    """However slowly downloads are read, annotators do not wait for a connection: here downloads have none at all."""
    campaign = await create_running_campaign(app.state.database)
    reading = app.state.reading_database
    app.state.reading_database = create_async_engine("postgresql+asyncpg://nobody@/none?host=/nowhere")
    for path in ("items.csv", "responses.jsonl"):
        assert (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/{path}")).status_code == 503
    assert (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).status_code == 200
    app.state.reading_database = reading
    assert (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/items.csv")).status_code == 200
