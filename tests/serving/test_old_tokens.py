"""After a restored dump ids are given out again: a page that was open before it does not answer as somebody else."""

import re

import pytest

from tests.serving.campaigns import execute, fields_of, running, value


async def page_of_a_visitor(client, campaign):
    return (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text


async def restore_and_arrive_again(app, client, campaign):
    """Lose the assignment, as a dump does that is older, and let another visitor get its ids."""
    engine = app.state.database
    await execute(engine, "TRUNCATE hits, assignments, annotators RESTART IDENTITY CASCADE")
    page = await page_of_a_visitor(client, campaign)
    assert await value(engine, "SELECT id FROM assignments") == 1
    return page


@pytest.mark.parametrize("way", ["answer", "page", "draft", "finish"])
async def test_a_page_from_before_a_restored_dump_opens_nobody_elses(app, client, way):
    campaign = await running(app.state.database)
    address = f"/link/{campaign.link_key}"
    before = fields_of(await page_of_a_visitor(client, campaign))
    after = fields_of(await restore_and_arrive_again(app, client, campaign))
    assert before["hit"] == after["hit"]
    if way == "page":
        reply = await client.get(address, params={"t": before["token"]})
    elif way == "draft":
        reply = await client.put(address, json={"token": before["token"], "hit": int(before["hit"]), "entries": {}})
    else:
        reply = await client.post(address, data=before if way == "answer" else {"token": before["token"], "finish": ""})
    assert reply.status_code == 410
    assert "Open the task" in reply.text
    assert await value(app.state.database, "SELECT count(*) FROM responses") == 0
    assert (await client.post(address, data=after)).status_code == 200
    assert await value(app.state.database, "SELECT count(*) FROM responses") == 1


async def test_a_page_that_was_open_during_the_upgrade_goes_on(app, client):
    """Its token does not say when its assignment was made."""
    campaign = await running(app.state.database)
    address = f"/link/{campaign.link_key}"
    form = fields_of(await page_of_a_visitor(client, campaign))
    tokens = app.state.worker_tokens
    assignment = tokens.read(form["token"], "link", campaign.link_key).assignment
    old = tokens._at("link", campaign.link_key).dumps([assignment.campaign, assignment.assignment])
    reply = await client.post(address, data=form | {"token": old})
    assert reply.status_code == 200
    assert re.search(r'name="hit" value="\d+"', reply.text)
    await execute(app.state.database, "UPDATE assignments SET arrived_at = arrived_at + interval '1 minute'")
    assert (await client.get(address, params={"t": old})).status_code == 410
