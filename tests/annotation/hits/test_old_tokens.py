"""After a restored dump ids are given out again: a page that was open before it does not answer as somebody else."""

import re
from itertools import product

import pytest

from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_rows, fetch_value, form_fields


async def page_of_a_visitor(client, campaign):
    return (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text


async def restore_and_arrive_again(app, client, campaign):
    """Lose the assignment, as a dump does that is older, and let another visitor get its ids."""
    engine = app.state.database
    await execute_sql(engine, "TRUNCATE hits, assignments, annotators RESTART IDENTITY CASCADE")
    page = await page_of_a_visitor(client, campaign)
    assert await fetch_value(engine, "SELECT id FROM assignments") == 1
    return page


FORMS = {
    "answer": {},
    "answer of no HIT": {"hit": ""},
    "answer of no number": {"hit": "x"},
    "answer without scores": {"score-0": "", "score-1": ""},
    "change": {"replaces": "1"},
    "undo": {"undo": ""},
    "finish": {"finish": ""},
    "step": {"step": "consent", "version": "1", "answer": "yes"},
    "report": {"broken": "1"},
    "report of no item": {"broken": "99"},
}


HEADERS = {"page": {}, "script": {"x-easel": "fetch"}}
WAYS = (*FORMS, "page", "draft", "draft of no HIT", "large draft")


async def send_from_old_page(client, address, form, way, headers):
    """Return the reply to what the page with this form sends in one of the ways."""
    if way == "page":
        return await client.get(address, params={"t": form["token"]}, headers=headers)
    if "draft" in way:
        draft = {"token": form["token"], "hit": int(form["hit"]), "entries": {"0": {"score": "9"}}}
        draft |= {"hit": 99} if way == "draft of no HIT" else {}
        draft |= {"entries": {str(item): {} for item in range(10_000)}} if way == "large draft" else {}
        return await client.put(address, json=draft, headers=headers)
    return await client.post(address, data=form | FORMS[way], headers=headers)


async def test_a_page_from_before_a_restored_dump_opens_nobody_elses(app, client):
    campaign = await create_running_campaign(app.state.database, undo=True)
    address = f"/link/{campaign.link_key}"
    before = form_fields(await page_of_a_visitor(client, campaign))
    after = form_fields(await restore_and_arrive_again(app, client, campaign))
    assert before["hit"] == after["hit"]
    stored = await stored_state(app.state.database)
    open_ways, storing_ways = [], []
    for way, sender in product(WAYS, HEADERS):
        reply = await send_from_old_page(client, address, before, way, HEADERS[sender])
        if reply.status_code != 410 or "Open the study" not in reply.text:
            open_ways.append((way, sender, reply.status_code))
        if await stored_state(app.state.database) != stored:
            storing_ways.append((way, sender))
            stored = await stored_state(app.state.database)
    assert (open_ways, storing_ways) == ([], [])
    assert (await client.post(address, data=after)).status_code == 200
    assert await fetch_value(app.state.database, "SELECT count(*) FROM responses") == 1


async def stored_state(engine):
    """All that a page can change."""
    tables = ("hits", "responses", "visits", "media_reports", "decisions", "annotators", "assignments")
    return [await fetch_rows(engine, f"SELECT * FROM {table}") for table in tables]


@pytest.mark.parametrize("way", ["undo", "change"])
async def test_an_old_page_changes_no_answer(app, client, way):
    campaign = await create_running_campaign(app.state.database, undo=True)
    address = f"/link/{campaign.link_key}"
    before = form_fields(await page_of_a_visitor(client, campaign))
    after = form_fields(await restore_and_arrive_again(app, client, campaign))
    await client.post(address, data=after)
    number = await fetch_value(app.state.database, "SELECT seq FROM responses")
    stored = await stored_state(app.state.database)
    sent = {"token": before["token"], "undo": ""} if way == "undo" else before | {"replaces": str(number)}
    assert (await client.post(address, data=sent)).status_code == 410
    assert await stored_state(app.state.database) == stored


async def test_a_page_that_was_open_during_the_upgrade_goes_on(app, client):
    """Its token does not say when its assignment was made."""
    campaign = await create_running_campaign(app.state.database)
    address = f"/link/{campaign.link_key}"
    form = form_fields(await page_of_a_visitor(client, campaign))
    tokens = app.state.worker_tokens
    assignment = tokens.read_token_or_refuse(form["token"], "link", campaign.link_key).assignment
    old = tokens._serializer("link", campaign.link_key).dumps([assignment.campaign_id, assignment.assignment_id])
    reply = await client.post(address, data=form | {"token": old})
    assert reply.status_code == 200
    assert re.search(r'name="hit" value="\d+"', reply.text)
    await execute_sql(app.state.database, "UPDATE assignments SET arrived_at = arrived_at + interval '1 minute'")
    assert (await client.get(address, params={"t": old})).status_code == 410
