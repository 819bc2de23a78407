"""A member of one campaign sends ids of another: what these name is not there, and nothing changes.

Ids in addresses are tried one by one in `test_members.py`; here are those in queries, forms and bodies, and in cookies.
"""

from datetime import UTC, datetime

import pytest

from app.accounts import invitations, shared_links, users
from app.annotation.hits import submission
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.remarks import Remark
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)

KEPT = ("items", "check_items", "hits", "responses", "decisions", "invitations", "campaign_links")


async def everything(engine):
    rows = {table: await fetch_rows(engine, f"SELECT {table}::text FROM {table} ORDER BY 1") for table in KEPT}
    return rows | {
        "tokens": await fetch_rows(engine, "SELECT id, user_id FROM api_tokens ORDER BY 1")
    }  # a use is noted


@pytest.mark.parametrize("act", ["checks", "unmark"])
async def test_an_item_of_another_draft(app, client, engine, act):
    mine = await create_running_campaign(engine, items=6, name="Verbs", launched=False)
    theirs = await create_running_campaign(engine, items=20, name="Nouns", launched=False)
    await log_in_with_role(app, client, "guest", "owner", mine)
    before = await everything(engine)
    body = {"item": "v15", "action": "gold", "expected": "80", "tolerance": ""}
    refused = await client.post(f"/admin/campaigns/{mine.slug}/items/{act}", data=body)
    assert (refused.status_code, "has no item" in refused.text) == (404, True)
    assert (await client.post(f"/admin/campaigns/{theirs.slug}/items/{act}", data=body)).status_code == 404
    assert await everything(engine) == before


async def test_a_hit_and_an_answer_of_another_campaign(app, client, engine):
    mine, theirs = (
        await create_running_campaign(engine, name="Verbs"),
        await create_running_campaign(engine, name="Nouns"),
    )
    ann = [await create_annotator(engine, one, "ann", "api") for one in (mine, theirs)]
    answered = await try_to_lease_hit(engine, ann[1])
    receipt = await submit_scores(engine, ann[1], answered)
    hits = [await try_to_lease_hit(engine, one) for one in ann]
    _, token = await log_in_with_role(app, client, "guest", "owner", mine)
    bearer = {"authorization": f"Bearer {token}"}
    answer = {"annotator": "ann", "scores": [50] * len(hits[0].items)}
    before = await everything(engine)
    for hit, more, told in (
        (hits[1], {}, (404, "hit_not_found")),
        (answered, {}, (404, "hit_not_found")),
        (answered, {"replaces": receipt.seq}, (404, "hit_not_found")),
        (hits[0], {"replaces": receipt.seq}, (409, "answer_final")),
    ):
        refused = await client.post(f"/api/v1/hits/{hit.id}/response", json=answer | more, headers=bearer)
        assert (refused.status_code, refused.json()["error"]["code"]) == told
    assert await everything(engine) == before


async def test_a_token_for_a_campaign_that_is_not_there_and_tokens_of_others(app, client, engine):
    mine, theirs = (
        await create_running_campaign(engine, name="Verbs"),
        await create_running_campaign(engine, name="Nouns"),
    )
    other, _ = await log_in_with_role(app, client, "member", "owner", theirs)
    (theirs_token,) = await fetch_rows(engine, "SELECT id FROM api_tokens WHERE user_id = :id", id=other.id)
    await log_in_with_role(app, client, "guest", "owner", mine)
    before = await everything(engine)
    asked = {"name": "notebook", "scope": ["read"], "campaign": theirs.slug}
    assert (await client.post("/admin/account/tokens", data=asked)).status_code == 404
    assert (await client.post(f"/admin/account/tokens/{theirs_token[0]}/revoke")).status_code == 404
    assert await everything(engine) == before


async def test_an_invitation_to_the_server_is_none_to_a_campaign_and_the_other_way_round(
    app, client, researcher, engine
):
    mine = await create_running_campaign(engine)
    async with engine.begin() as connection:
        for campaign, words in ((None, "server"), (mine, "campaign")):
            now = datetime.now(UTC)
            await invitations.create_invitation_and_return_token(
                connection, campaign, "viewer", words, inviter_id=None, now=now
            )
    numbers = dict(await fetch_rows(engine, "SELECT words, id FROM invitations"))
    await log_in_with_role(app, client, "guest", "owner", mine)
    before = await everything(engine)
    wrong = f"/admin/people/invitations/{numbers['campaign']}/withdraw"
    assert (await researcher.post(wrong)).status_code == 404
    wrong = f"/admin/campaigns/{mine.slug}/invitations/{numbers['server']}/withdraw"
    assert (await client.post(wrong)).status_code == 404
    assert await everything(engine) == before


async def test_a_remark_of_another_campaign_is_not_among_those_of_this_one(app, client, engine):
    mine, theirs = (
        await create_running_campaign(engine, name="Verbs"),
        await create_running_campaign(engine, name="Nouns", comment_on="HIT"),
    )
    visit = await create_annotator(engine, theirs)
    hit = await try_to_lease_hit(engine, visit)
    said = Answer(dict.fromkeys(hit.items, 50.0), remarks={"hit": Remark("Heard there.")}, source="page")
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, visit, hit.id, said, now=NOW)
    _, token = await log_in_with_role(app, client, "guest", "manager", mine)
    bearer = {"authorization": f"Bearer {token}"}
    for params in ({}, {"annotator": "A1"}, {"words": "heard"}, {"kind": "comments"}):
        page = await client.get(f"/admin/campaigns/{mine.slug}/remarks", params=params)
        assert (page.status_code, "Heard there." in page.text) == (200, False)
        found = await client.get(f"/api/v1/campaigns/{mine.slug}/remarks", params=params, headers=bearer)
        assert (found.status_code, "Heard there." in found.text) == (200, False)
    await execute_sql(engine, "UPDATE campaign_members SET campaign_id = :id", id=theirs.id)
    assert "Heard there." in (await client.get(f"/admin/campaigns/{theirs.slug}/remarks")).text


async def test_the_cookie_of_a_read_only_link_opens_no_other_campaign(app, client, engine):
    mine, theirs = (
        await create_running_campaign(engine, name="Verbs"),
        await create_running_campaign(engine, name="Nouns"),
    )
    async with engine.begin() as connection:
        await users.find_oldest_user_or_create_admin(connection, now=datetime.now(UTC))
        secret = await shared_links.create_shared_link_and_return_secret(
            connection, mine, "", maker_name="ada", now=datetime.now(UTC)
        )
    sent = {"cookie": f"{app.state.cookie_name}_link={secret}"}
    for path in ("", "/analysis", "/analysis/tables/agreement.csv", "/match-quality.csv", "/export/items.csv"):
        page = await client.get(f"/admin/campaigns/{theirs.slug}{path}", headers=sent)
        assert (page.status_code, page.headers.get("location", "")[:6]) == (303, "/login"), path
    assert (await client.get(f"/admin/campaigns/{mine.slug}", headers=sent)).status_code == 200
