"""Pages that were opened before an upgrade name items by number; what is sent from them is taken, or shown again."""

import re

from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows, form_fields
from tests.media.files import png, with_files


async def opened(client, campaign):
    return (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text


async def by_number(engine, page):
    """Return the fields of an earlier page's form: each item scored by its number."""
    fields = form_fields(page)
    (items,) = (await fetch_rows(engine, "SELECT items FROM hits WHERE id = :hit", hit=int(fields["hit"])))[0]
    return {name: fields[name] for name in ("token", "hit")} | {f"score-{item}": str(item) for item in items}, items


async def test_an_answer_by_number_is_stored_at_its_items(engine, client):
    campaign = await create_running_campaign(engine, items=6)
    form, items = await by_number(engine, await opened(client, campaign))
    await client.post(f"/link/{campaign.link_key}", data=form)
    assert await fetch_rows(engine, "SELECT items, values FROM responses") == [(items, [float(item) for item in items])]


async def test_an_answer_by_number_that_is_refused_is_shown_again_at_its_items(engine, client):
    campaign = await create_running_campaign(engine, items=6)
    page = await opened(client, campaign)
    form, items = await by_number(engine, page)
    form[f"score-{items[1]}"] = ""
    reply = await client.post(f"/link/{campaign.link_key}", data=form)
    assert "Not all items have a score yet: 2 of 5" in reply.text
    kept = re.findall(r'name="score-0\d".*?value="(\d*)"', reply.text, re.DOTALL)
    assert kept == [str(item) if item != items[1] else "" for item in items]


async def test_a_draft_by_number_is_shown_at_its_items(engine, client):
    campaign = await create_running_campaign(engine, items=6)
    page = await opened(client, campaign)
    form, items = await by_number(engine, page)
    entries = {str(items[2]): {"score": 71, "first_touch_ms": 5, "changes": 1, "input_kind": "mouse"}}
    draft = {"token": form["token"], "hit": int(form["hit"]), "entries": entries}
    assert (await client.put(f"/link/{campaign.link_key}", json=draft)).status_code == 204
    again = (await client.get(f"/link/{campaign.link_key}", params={"t": form["token"]})).text
    assert re.findall(r'name="score-0\d".*?value="(\d*)"', again, re.DOTALL) == ["", "", "71", "", ""]


async def test_a_report_by_number_is_kept(engine, client):
    campaign = await with_files(engine, {f"{name}.png": png(grey=k) for k, name in enumerate("abcde")}, content="image")
    form, items = await by_number(engine, await opened(client, campaign))
    await client.post(f"/link/{campaign.link_key}", data=form | {"broken": str(items[3])})
    assert await fetch_rows(engine, "SELECT item FROM media_reports") == [(items[3],)]


async def test_a_report_names_its_item_by_position_and_one_of_no_item_is_not_kept(engine, client):
    campaign = await with_files(engine, {f"{name}.png": png(grey=k) for k, name in enumerate("abcde")}, content="image")
    form, items = await by_number(engine, await opened(client, campaign))
    for broken in ("03", "07", "", "x"):
        reply = await client.post(f"/link/{campaign.link_key}", data=form | {"broken": broken})
        assert reply.status_code == 200
        assert ("an item that this task does not show" in reply.text) is (broken != "03")
    script = {"x-easel": "fetch", "accept": "application/json"}
    refused = await client.post(f"/link/{campaign.link_key}", data=form | {"broken": "07"}, headers=script)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "item_not_shown")
    assert await fetch_rows(engine, "SELECT item FROM media_reports") == [(items[3],)]
