"""Forms that a page sends by its script: the reply is what has changed, or why nothing was stored."""

import re

import pytest

from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows, fetch_value, form_fields
from tests.media.files import png, with_files

SCRIPT = {"x-easel": "fetch", "accept": "application/json"}


@pytest.fixture
def engine(app):
    return app.state.database


async def test_a_change_that_is_not_complete_is_refused_and_the_page_stays(client, engine):
    campaign = await create_running_campaign(engine)
    address = f"/link/{campaign.link_key}"
    first = form_fields((await client.post(address, follow_redirects=True)).text)
    await client.post(address, data=first)
    page = (await client.post(address, data={"token": first["token"], "undo": "1"})).text
    change = first | {"replaces": re.findall(r'name="replaces" value="(\d+)"', page)[0]}
    empty = change | dict.fromkeys((name for name in first if name.startswith("score-")), "")
    reply = await client.post(address, data=empty, headers=SCRIPT)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "scores_missing")
    plain = await client.post(address, data=empty)
    assert plain.status_code == 200
    assert "Submit the change" in plain.text
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_a_report_of_media_is_kept_without_another_page(client, engine):
    campaign = await with_files(engine, {f"{name}.png": png(grey=k) for k, name in enumerate("abcde")}, content="image")
    address = f"/link/{campaign.link_key}"
    form = form_fields((await client.post(address, follow_redirects=True)).text)
    reply = await client.post(address, data=form | {"broken": "02"}, headers=SCRIPT)
    assert (reply.status_code, reply.content) == (204, b"")
    assert len(await fetch_rows(engine, "SELECT item FROM media_reports")) == 1


async def test_who_starts_keeps_the_language_that_they_chose(client, engine):
    campaign = await create_running_campaign(engine)
    for chosen in ({"lang": "de"}, {}):
        reply = await client.post(f"/link/{campaign.link_key}", params=chosen)
        assert reply.status_code == 303
        assert ("lang=de" in reply.headers["location"]) is bool(chosen)
