"""Addresses without TLS are refused in the settings, by every door, unless the operator allows them."""

import asyncio
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli.commands import easel
from tests.annotation.hits.campaigns import create_running_campaign, fetch_value
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)

PLAIN_CALL = "http://panel.example/credit?who={id}"
PLAIN_WEBHOOK = "http://hook.example/"
PANEL: dict[str, Any] = {"panel_title": "Lab pool", "panel_query": "who={{who}}"}


@pytest.fixture
def calls_without_tls_are_allowed():
    """Not here: the operator's settings are the default ones."""


@contextmanager
def settings_changed(app, **changes):
    settings = app.state.settings
    app.state.settings = settings.model_copy(update=changes)
    yield
    app.state.settings = settings


@pytest.fixture(autouse=True)
def own_settings(app):
    """Tests of other folders may have made this application, with other settings."""
    with settings_changed(app, webhooks_inside=False):
        yield


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.mark.parametrize("settings", [{"call_completed": PLAIN_CALL}, {"alert_webhook": PLAIN_WEBHOOK}])
async def test_programs_and_files_cannot_enter_them(engine, api_client, settings):  # noqa: F811  (the fixture)
    campaign = await create_running_campaign(engine, **PANEL)
    made = await api_client.post(f"{API}/campaigns", json={"name": "New", "question": "How?"} | PANEL | settings)
    changed = await api_client.patch(f"{API}/campaigns/{campaign.slug}", json=settings)
    ((setting, address),) = settings.items()
    file = f"name: File\nquestion: How?\npanel_title: Lab\npanel_query: who={{{{who}}}}\n{setting}: {address}\n"
    sent = await api_client.post(f"{API}/campaigns/files", content=file)
    for reply in (made, changed, sent):
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "address_without_tls")
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 1


async def test_the_form_shows_the_refusal_at_the_field(engine, researcher):
    campaign = await create_running_campaign(engine, **PANEL)
    page = f"/admin/campaigns/{campaign.slug}/settings/visit"
    form = PANEL | {"call_completed": PLAIN_CALL, "call_method": "GET"}
    reply = await researcher.post(page, data=form)
    assert reply.status_code == 422
    assert "Easel calls addresses only over TLS" in reply.text


async def test_the_command_refuses_them(engine, database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    campaign = await create_running_campaign(engine, **PANEL)
    words = ["campaign", "edit", campaign.slug, "--call-completed", PLAIN_CALL]
    result = await asyncio.to_thread(lambda: CliRunner().invoke(easel, words))
    assert result.exit_code == 1
    assert "begin it with https://" in result.output


async def test_an_address_from_before_stays_and_the_operator_may_allow_them(
    engine,
    app,
    api_client,  # noqa: F811  (the fixture)
):
    campaign = await create_running_campaign(engine, **PANEL)
    address = f"{API}/campaigns/{campaign.slug}"
    with settings_changed(app, webhooks_inside=True):
        assert (await api_client.patch(address, json={"call_completed": PLAIN_CALL})).status_code == 200
    assert (await api_client.patch(address, json={"minutes_per_hit": 3})).status_code == 200


async def test_the_settings_of_the_application_decide_and_not_its_environment(
    engine,
    api_client,  # noqa: F811  (the fixture)
    monkeypatch,
):
    campaign = await create_running_campaign(engine, **PANEL)
    monkeypatch.setenv("EASEL_WEBHOOKS_INSIDE", "1")
    reply = await api_client.patch(f"{API}/campaigns/{campaign.slug}", json={"call_completed": PLAIN_CALL})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "address_without_tls")
