"""Two campaigns with items and people of the same names, annotated at once: each keeps to itself."""

import asyncio
import csv
import io
import re
from typing import Any

from tests.annotation.hits.campaigns import execute_sql, form_fields
from tests.api.conftest import API
from tests.api.test_api import answer, hit_for
from tests.conftest import http_client

NUMBER_OF_ITEMS, ANSWERS_OF_CAMPAIGN = 12, 8


async def launch_campaign(api_client, noun: str) -> tuple[str, str]:
    """Return the API's address of a campaign about a noun, and its link for annotators."""
    settings = {"name": noun, "question": "How often?", "items_per_hit": 3, "judgments_per_item": 4, "welcome": False}
    slug = (await api_client.post(f"{API}/campaigns", json=settings)).json()["slug"]
    address = f"{API}/campaigns/{slug}"
    table = "id,text\n" + "".join(f"v{number},{noun} {number}\n" for number in range(NUMBER_OF_ITEMS))
    kind = {"content-type": "text/csv"}
    sent = await api_client.post(f"{address}/items", params={"shown": "text"}, content=table, headers=kind)
    assert sent.json()["imported"] == NUMBER_OF_ITEMS
    launched = (await api_client.post(f"{address}/transitions", json={"action": "launch"})).json()
    return address, launched["links"]["link"]


async def end_lease(app, hit_id: int) -> None:
    statement = "UPDATE hits SET expires_at = now() - interval '1 second' WHERE id = :hit"
    await execute_sql(app.state.database, statement, hit=hit_id)


async def annotate_through_api(app, api_client, address: str, noun: str) -> None:
    """Answer in time, change an answer, answer late, send an answer again, and come back after the lease."""
    for person in ("ann", "bob"):
        hit = await hit_for(api_client, address, person)
        assert {item["text"].split()[0] for item in hit["items"]} == {noun}
        receipt = (await answer(api_client, hit, person)).json()
        assert (await answer(api_client, hit, person, (90, 50, 10), replaces=receipt["seq"])).status_code == 200
    late = await hit_for(api_client, address, "late")
    await end_lease(app, late["id"])
    assert [(await answer(api_client, late, "late")).json()["repeated"] for _ in range(2)] == [False, True]
    slow = await hit_for(api_client, address, "slow")
    await end_lease(app, slow["id"])
    assert (await hit_for(api_client, address, "slow"))["id"] == slow["id"]
    assert (await answer(api_client, slow, "slow")).status_code == 200


async def annotate_on_page(app, link: str, noun: str) -> None:
    """Keep a draft of one HIT, answer it, and change that answer on the next page."""
    async with http_client(app) as client:
        address = (await client.post(link)).headers["location"]
        page = (await client.get(address)).text
        assert {*re.findall(r"(?:cat|dog)(?= \d)", page)} == {noun}
        fields = form_fields(page)
        draft = {"token": fields["token"], "hit": int(fields["hit"]), "entries": {}}
        assert (await client.put(address, json=draft)).status_code == 204
        await client.post(address, data=fields)
        shown = (await client.post(address, data={"token": fields["token"], "undo": "1"})).text
        replaced = dict(re.findall(r'name="(replaces)" value="(\d+)"', shown))
        changed = {name: "77" if name.startswith("score-") else value for name, value in form_fields(shown).items()}
        assert "1 task done" in (await client.post(address, data=changed | replaced)).text


async def export_rows(api_client, address: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO((await api_client.get(f"{address}/export/responses")).text)))


async def test_two_campaigns_annotated_at_once_share_nothing(app, api_client):
    campaigns = {noun: await launch_campaign(api_client, noun) for noun in ("cat", "dog")}
    await asyncio.gather(
        *(annotate_through_api(app, api_client, address, noun) for noun, (address, _) in campaigns.items()),
        *(annotate_on_page(app, link, noun) for noun, (_, link) in campaigns.items()),
    )
    (cats, _), (dogs, _) = campaigns.values()
    excluded = await api_client.post(f"{cats}/annotators/A1/exclude", json={"reason": "Clicks through."})
    assert excluded.status_code == 204
    for address, judgments in ((cats, 12), (dogs, 15)):
        campaign = (await api_client.get(address)).json()
        assert campaign["judgments_taken"] == judgments
        verified = (await api_client.get(f"{address}/verify")).json()
        assert (verified["clean"], verified["responses"]) == (True, judgments // 3)
        assert len(await export_rows(api_client, address)) == 3 * ANSWERS_OF_CAMPAIGN
