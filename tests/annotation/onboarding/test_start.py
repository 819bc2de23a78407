"""Start pressed twice on one page of the open link, by browsers whose scripts do not keep the second press back."""

import asyncio
import re
from datetime import timedelta

import pytest

from app.annotation.onboarding import start_form
from app.http import dependencies
from tests.annotation.hits.campaigns import create_running_campaign, fetch_value
from tests.annotation.platforms.test_doors import doors
from tests.conftest import http_client


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def link(engine):
    return f"/link/{(await create_running_campaign(engine)).link_key}"


async def form_of(client, link):
    """Return what the form of a welcome page sends."""
    (form,) = re.findall(r'<form class="start".*?</form>', (await client.get(link)).text, re.DOTALL)
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))


async def place_after(client, link, form):
    reply = await client.post(link, data=form)
    assert reply.status_code == 303
    token = reply.headers["location"].partition("t=")[2]
    return token.split(".")[0]  # whose page it is, without the time and the signature


async def people(engine):
    return await fetch_value(engine, "SELECT count(*) FROM annotators")


async def test_start_pressed_twice_begins_one_visit(client, engine, link):
    form = await form_of(client, link)
    assert len({await place_after(client, link, form) for _ in range(3)}) == 1
    assert await people(engine) == 1


async def test_presses_at_the_same_time_begin_one_visit(app, client, engine, link):
    form = await form_of(client, link)

    async def press():
        async with http_client(app) as browser:
            return await place_after(browser, link, form)

    assert len(set(await asyncio.gather(*(press() for _ in range(8))))) == 1
    assert await people(engine) == 1


async def test_the_last_visit_that_an_address_may_begin_can_be_pressed_twice_at_once(app, client, engine, link):
    app.state.visit_limiter = doors(visits_per_address=1)
    form = await form_of(client, link)
    assert len(set(await asyncio.gather(*(place_after(client, link, form) for _ in range(4))))) == 1


async def test_each_page_begins_a_visit_of_its_own(client, engine, link):
    places = [await place_after(client, link, await form_of(client, link)) for _ in range(2)]
    assert len({*places}) == await people(engine) == 2


async def test_a_page_that_was_left_open_begins_the_visit_of_the_next_person(app, client, engine, link, monkeypatch):
    form = await form_of(client, link)
    first = await place_after(client, link, form)
    later = dependencies.utc_now() + start_form.SAME_PRESS + timedelta(seconds=1)
    monkeypatch.setattr(app.state, "utc_now", lambda: later)
    assert await place_after(client, link, form) != first
    assert await people(engine) == 2


async def test_what_is_no_token_of_a_page_begins_a_visit_each_time(client, engine, link, subtests):
    for start in ("", "a" * 32 + "\n", "A" * 32, "ann", "é" * 32):
        with subtests.test(start=start):
            assert await place_after(client, link, {"start": start}) != await place_after(
                client, link, {"start": start}
            )
