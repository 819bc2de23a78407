"""The id of a row is written in one way; for any other there is no such page."""

import re

from app.accounts import tokens, users
from app.accounts.roles import NEED_BY_ROUTE
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_value

NAMES = ("user_id", "token_id", "invitation", "link", "alert", "answer", "hit_id")
WITH_IDS = [address for address in NEED_BY_ROUTE if any(f"{{{name}}}" in address for name in NAMES)]
OTHER_SPELLINGS = [
    *("+1", "%201", "1%20", "1%0A", "01", "1_000", "-1", "0", "1.0", "1e0", "0x1", "%D9%A3", "%EF%BC%91", "1%00"),
    *(str(2**63), "9" * 30, "x"),
]


async def test_no_address_takes_another_spelling_of_an_id(app, researcher):
    assert len(WITH_IDS) > 10
    campaign = await create_running_campaign(app.state.database)
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)
    headers = {"authorization": f"Bearer {token}"}
    found = []
    for address in WITH_IDS:
        method, path = address.split()
        path = path.replace("{slug}", campaign.slug).replace("{annotator}", "A1").replace("{action}", "exclude")
        for spelled in OTHER_SPELLINGS:
            written = re.sub(r"\{[a-z_]+\}", spelled, path)
            body = {"json": {"annotator": "ann", "scores": [1], "reason": "x"}} if path.startswith("/api") else {}
            reply = await researcher.request(method, written, headers=headers, **body)
            found += [(address, spelled, reply.status_code)] if reply.status_code != 404 else []
    assert found == []


async def test_a_form_names_its_hit_by_a_plain_id(app, client):
    campaign = await create_running_campaign(app.state.database)
    address = f"/link/{campaign.link_key}"
    page = (await client.post(address, follow_redirects=True)).text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    for spelled in ("+1", " 1", "01", "1_0", "\u0661", "x"):
        reply = await client.post(address, data={"token": token[1], "hit": spelled})
        assert reply.status_code == 404, spelled
        assert "hit_not_found" in reply.text or "does not exist" in reply.text
    assert await fetch_value(app.state.database, "SELECT count(*) FROM responses") == 0
