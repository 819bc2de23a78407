"""A campaign on a Citus cluster has no payments. Its address is enough for Easel to take PostgreSQL for a cluster."""

import pytest
import pytest_asyncio
from sqlalchemy import make_url

from app.errors import Conflict
from app.payments.connections import ConnectionSettings, check_and_store_payment_settings_or_refuse
from tests.annotation.hits.campaigns import NOW, create_running_campaign
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.payments.studies import connector_to


@pytest_asyncio.fixture
async def database_url(database_url):
    return make_url(database_url).update_query_dict({"cluster": "citus"}).render_as_string(hide_password=False)


@pytest.mark.parametrize("page", ["payments", "submissions"])
async def test_its_pages_say_so(app, researcher, page):
    campaign = await create_running_campaign(app.state.database)
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/{page}")
    assert reply.status_code == 409
    assert "Campaigns on a Citus cluster cannot have payments." in reply.text


@pytest.mark.parametrize("list_name", ["payments", "submissions"])
async def test_a_program_gets_the_code(app, api_client, list_name):  # noqa: F811
    campaign = await create_running_campaign(app.state.database)
    reply = await api_client.get(f"{API}/campaigns/{campaign.slug}/{list_name}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "payments_on_cluster")


async def test_a_budget_is_refused_through_every_door(engine):
    campaign = await create_running_campaign(engine)
    with pytest.raises(Conflict) as refusal:
        await check_and_store_payment_settings_or_refuse(
            engine, connector_to("http://127.0.0.1:1"), campaign, ConnectionSettings(budget=500), now=NOW
        )
    assert refusal.value.code == "payments_on_cluster"
