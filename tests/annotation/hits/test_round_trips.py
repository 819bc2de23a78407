"""How many statements a request of the serving path sends: each is a round trip to the database."""

import asyncio

import pytest

from app.accounts import tokens, users
from app.database.session import driver_of
from tests.annotation.hits.campaigns import NOW, create_running_campaign, form_fields
from tests.annotation.hits.test_old_tokens import page_of_a_visitor

FETCH = {"x-easel": "fetch"}


@pytest.fixture
def count_statements(app):
    """Return a function that awaits a request and counts the statements on connections that were used before."""

    async def count(request):
        statements = []
        drivers = [await driver_of(connection) for connection in app.state.serving_connections._idle]
        loggers = [lambda logged: statements.append(logged.query)] * len(drivers)
        for driver, logger in zip(drivers, loggers, strict=True):
            driver.add_query_logger(logger)
        reply = await request
        await asyncio.sleep(0)  # asyncpg calls loggers in the next round of the loop
        for driver, logger in zip(drivers, loggers, strict=True):
            driver.remove_query_logger(logger)
        assert reply.status_code in (200, 204), reply.text
        return len(statements)

    return count


async def test_a_page_sends_no_statement_to_check_its_token(app, client, count_statements):
    campaign = await create_running_campaign(app.state.database, undo=True)
    address = f"/link/{campaign.link_key}"
    form = form_fields(await page_of_a_visitor(client, campaign))
    mine = {"token": form["token"]}
    draft = mine | {"hit": int(form["hit"]), "entries": {}}
    assert await count_statements(client.get(address, params={"t": form["token"]})) == 2  # state, texts
    await client.put(address, json=draft)  # the first one may renew the lease
    assert await count_statements(client.put(address, json=draft)) == 1
    # The first answer also asks for types of columns, which each connection knows from then on.
    form = form_fields((await client.post(address, data=form, headers=FETCH)).text)
    # BEGIN, lock with state, store with lease, COMMIT
    assert await count_statements(client.post(address, data=form, headers=FETCH)) == 4
    assert await count_statements(client.post(address, data=mine | {"undo": ""}, headers=FETCH)) == 3
    # Who may not leave is answered as if they had asked for a HIT.
    assert await count_statements(client.post(address, data=mine | {"finish": ""}, headers=FETCH)) == 3


async def test_a_hit_and_its_answer_through_the_api_send_eight_statements(app, client, count_statements):
    campaign = await create_running_campaign(app.state.database)
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)
    client.headers["authorization"] = f"Bearer {token}"
    who = {"annotator": "ann"}

    def next_hit():
        return client.post(f"/api/v1/campaigns/{campaign.slug}/hits", json=who)

    def answer(hit):
        scores = [50] * len(hit["items"])
        return client.post(f"/api/v1/hits/{hit['id']}/response", json=who | {"scores": scores})

    await answer((await next_hit()).json()["hit"])
    assert await count_statements(next_hit()) == 3  # token, state, lease
    hit = (await next_hit()).json()["hit"]
    assert await count_statements(answer(hit)) == 5  # token and HIT, BEGIN, lock, store, COMMIT
