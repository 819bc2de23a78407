"""Members of campaigns: for everybody else a campaign is not there."""

import asyncio
import re
from collections import defaultdict
from datetime import UTC, datetime

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts import invitations, members, shared_links, users
from app.accounts.roles import NEED_BY_ROUTE
from app.database.audit_log import CURRENT_ACTOR, Actor
from app.errors import Conflict
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.accounts.reaching import fill_path, log_in_with_role
from tests.annotation.hits.campaigns import (
    NOW,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    wait_until,
)
from tests.quality.deciding import answer_hits as campaign_with_answers

MADE = {"name": "Nouns", "question": "How often?"}


def owners(engine: AsyncEngine, campaign):
    roles = "SELECT u.name, m.role FROM campaign_members m JOIN users u ON u.id = m.user_id WHERE campaign_id = :id"
    return fetch_rows(engine, roles + " ORDER BY 1", id=campaign.id)


async def shared(engine: AsyncEngine, name: str, role: str, campaign):
    """Create a guest of the server with this role in a campaign."""
    async with engine.begin() as connection:
        user = await users.insert_and_return_user_or_refuse(connection, name, now=NOW, role="guest")
        await members.try_to_insert_member(connection, campaign, user, role, now=NOW)
        return user


async def test_whoever_creates_a_campaign_owns_it_and_lists_show_what_is_theirs(app, client, engine):
    others = await create_running_campaign(engine, name="Verbs")
    _, token = await log_in_with_role(app, client, "member")
    bearer = {"authorization": f"Bearer {token}"}
    made = (await client.post("/api/v1/campaigns", json=MADE, headers=bearer)).json()["slug"]
    listed = (await client.get("/api/v1/campaigns", headers=bearer)).json()["campaigns"]
    assert [one["slug"] for one in listed] == [made]
    home = (await client.get("/admin")).text
    assert (made in home, others.slug in home) == (True, False)
    assert f'value="{others.slug}"' not in (await client.get("/admin/account")).text
    missing = await client.get(f"/admin/campaigns/{others.slug}")
    nowhere = await client.get("/admin/campaigns/nowhere")
    assert missing.status_code == nowhere.status_code == 404
    assert missing.text.replace(others.slug, "nowhere") == nowhere.text
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, made)
    assert await owners(engine, campaign) == [("one.member.none", "owner")]


async def test_a_copy_belongs_to_who_made_it_and_tells_of_no_other_copies(app, client, engine):
    campaign, hidden = (
        await create_running_campaign(engine, name="Verbs"),
        await create_running_campaign(engine, name="Verbs (copy)"),
    )
    await log_in_with_role(app, client, "member", "manager", campaign)
    copied = await client.post(f"/admin/campaigns/{campaign.slug}/copy")
    slug = copied.headers["location"].split("/")[3]
    assert await fetch_value(engine, "SELECT name FROM campaigns WHERE slug = :slug", slug=slug) == "Verbs (copy)"
    assert slug != hidden.slug
    async with engine.begin() as connection:
        assert await owners(engine, await load_campaign_by_slug_or_refuse(connection, slug)) == [
            ("one.member.manager", "owner")
        ]


async def test_a_guest_who_manages_a_campaign_makes_none_of_it(app, client, engine):
    campaign = await create_running_campaign(engine)
    await log_in_with_role(app, client, "guest", "manager", campaign)
    refused = await client.post(f"/admin/campaigns/{campaign.slug}/copy")
    assert (refused.status_code, "role_forbids" in refused.text) == (403, True)
    # Several sentences are no heading.
    assert '<h1>You can’t do this here</h1>\n<p class="refusal">Your role on this server is' in refused.text
    assert "/copy" not in (await client.get(f"/admin/campaigns/{campaign.slug}")).text


async def test_a_rehearsal_is_reached_as_its_campaign_is(app, client, engine):
    campaign, other = (
        await create_running_campaign(engine, name="Verbs"),
        await create_running_campaign(engine, name="Nouns"),
    )
    rehearsals = [
        await create_running_campaign(engine, name=f"{one.name} (rehearsal)", launched=False)
        for one in (campaign, other)
    ]
    for one, copy in zip((campaign, other), rehearsals, strict=True):
        await execute_sql(engine, "UPDATE campaigns SET rehearsal_of = :of WHERE id = :id", of=one.id, id=copy.id)
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    found = [(await client.get(f"/admin/campaigns/{one.slug}")).status_code for one in rehearsals]
    assert found == [200, 404]
    home = (await client.get("/admin")).text
    assert [one.name in home for one in rehearsals] == [True, False]


async def test_an_owner_shares_a_campaign_and_ends_that(app, client, researcher, engine):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}/members"
    user, _ = await log_in_with_role(app, client, "guest")
    assert (await client.get(f"/admin/campaigns/{campaign.slug}")).status_code == 404
    added = await researcher.post(address, data={"name": " One.Guest.None ", "role": "viewer"})
    assert added.headers["location"] == f"{address}?done=member-added"
    assert (await client.get(f"/admin/campaigns/{campaign.slug}")).status_code == 200
    assert (await client.get(address)).status_code == 403
    await researcher.post(f"{address}/{user.id}/role", data={"role": "owner"})
    shown = (await client.get(address)).text
    assert "one.guest.none (you)" in shown
    assert re.findall(r"<option selected>(\w+)", shown)[0] == "owner"
    await execute_sql(engine, "UPDATE campaign_members SET role = 'manager'")
    await researcher.post(f"{address}/{user.id}/remove")
    assert (await client.get(f"/admin/campaigns/{campaign.slug}")).status_code == 404
    said = await fetch_rows(engine, "SELECT action FROM audit_log WHERE action LIKE 'member.%' ORDER BY id")
    assert [row[0] for row in said] == ["member.added", "member.role", "member.removed"]


@pytest.mark.parametrize(
    ("name", "role", "status"), [("nobody", "viewer", 404), ("admin", "king", 422), ("admin", "viewer", 409)]
)
async def test_who_cannot_be_added_is_said(researcher, engine, name, role, status):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        await members.try_to_insert_member(connection, campaign, admin, "owner", now=NOW)
    refused = await researcher.post(f"/admin/campaigns/{campaign.slug}/members", data={"name": name, "role": role})
    assert (refused.status_code, "Nothing was changed" in refused.text) == (status, True)


async def test_the_last_owner_of_a_campaign_stays(researcher, engine):
    campaign = await create_running_campaign(engine)
    ada = await shared(engine, "ada", "owner", campaign)
    address = f"/admin/campaigns/{campaign.slug}/members/{ada.id}"
    for act, data in (("remove", {}), ("role", {"role": "viewer"})):
        refused = await researcher.post(f"{address}/{act}", data=data)
        assert (refused.status_code, "last owner" in refused.text) == (409, True)
    assert await owners(engine, campaign) == [("ada", "owner")]


async def test_two_owners_who_remove_each_other_at_once_leave_one(engine):
    campaign = await create_running_campaign(engine)
    pair = [await shared(engine, name, "owner", campaign) for name in ("ada", "bea")]

    async def remove(user) -> None:
        async with engine.begin() as connection:
            await members.remove_member_unless_last_owner(connection, campaign, user.id)

    async with engine.begin() as connection:
        await members.remove_member_unless_last_owner(connection, campaign, pair[0].id)
        other = asyncio.create_task(remove(pair[1]))
        await wait_until(engine, requests_are_waiting_sql(1))
    with pytest.raises(Conflict, match="last owner"):
        await other
    assert await owners(engine, campaign) == [("bea", "owner")]


async def test_a_rehearsal_has_no_members_of_its_own_and_a_command_makes_none(engine):
    campaign = await create_running_campaign(engine)  # as a command does, for which nobody is logged in
    assert await owners(engine, campaign) == []
    acting = CURRENT_ACTOR.set(Actor("ada", "page", (await shared(engine, "ada", "owner", campaign)).id))
    made = await create_running_campaign(engine, name="Nouns")
    CURRENT_ACTOR.reset(acting)
    assert await owners(engine, made) == [("ada", "owner")]


async def test_what_belongs_to_another_campaign_is_not_found_under_this_one(app, researcher, engine):
    here, _, _ = await campaign_with_answers(engine, people=2, hits=1, name="Verbs")
    there, _, _ = await campaign_with_answers(engine, people=2, hits=1, name="Nouns")
    _, token = await log_in_with_role(app, researcher, "owner")
    owner = await shared(engine, "ada", "viewer", there)
    mine, theirs = await ids_of(engine, here), await ids_of(engine, there) | {"user_id": owner.id}
    assert theirs.keys() >= ids_in_addresses()
    before = await everything(engine)
    fields_by_address = fields_of_json_bodies(app.openapi())
    tried = 0
    for address in NEED_BY_ROUTE:
        method, path = address.split()
        swapped = [name for name in theirs if f"{{{name}}}" in path]
        if "{slug}" not in path or not swapped:
            continue
        for name in swapped:
            known = mine | {"action": "exclude", name: theirs[name]}
            headers = {"authorization": f"Bearer {token}"} if path.startswith("/api/") else {}
            values = {"reason": "x", "rule": "remove", "decision": "sent"}
            known_values = {field: value for field, value in values.items() if field in fields_by_address[address]}
            body = {"json": known_values} if headers else {"data": values | {"role": "owner", "sure": "yes"}}
            sent = {} if method == "GET" else body
            response = await researcher.request(
                method, fill_path(path, slug=here.slug, **known), headers=headers, **sent
            )
            assert response.status_code == 404, (address, name, response.text)
            tried += 1
    assert tried > 8
    assert await everything(engine) == before


def fields_of_json_bodies(description) -> defaultdict[str, set[str]]:
    """Return the names of the fields that the JSON body of each address may have; others are refused first."""
    fields = defaultdict[str, set[str]](set)
    for path, calls in description["paths"].items():
        for method, call in calls.items():
            schema = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            name = schema.get("$ref", "").rpartition("/")[2]
            fields[f"{method.upper()} {path}"] = {
                *description["components"]["schemas"].get(name, {}).get("properties", ())
            }
    return fields


async def ids_of(engine: AsyncEngine, campaign):
    """Return an ID of each kind of object of a campaign, by the parameter's name in addresses."""
    alert = "INSERT INTO alerts (campaign_id, kind, occasion, about) VALUES (:id, 'held', 'A1', 'A1')"
    await execute_sql(engine, alert, id=campaign.id)
    async with engine.begin() as connection:
        await invitations.create_invitation_and_return_token(
            connection, campaign, "viewer", "", inviter_id=None, now=datetime.now(UTC)
        )
        await shared_links.create_shared_link_and_return_secret(connection, campaign, "", maker_name="ada", now=NOW)
    await execute_sql(
        engine,
        """INSERT INTO erasures (campaign_id, receipt, annotator_id, rule, requested_by, requested_at, due_at)
           SELECT campaign_id, 'E-' || campaign_id, min(id), 'anonymise', 'ada', :now, :now FROM annotators
           WHERE campaign_id = :id GROUP BY campaign_id""",
        id=campaign.id,
        now=NOW,
    )
    payment = """INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason,
                     request_key, line, created_by, created_at)
                 SELECT campaign_id, min(id), 's1', '', 100, 'GBP', '', 'k', 1, 'ada', :now FROM annotators
                 WHERE campaign_id = :id GROUP BY campaign_id"""
    await execute_sql(engine, payment, id=campaign.id, now=NOW)
    call = """INSERT INTO server_calls (campaign_id, annotator_id, assignment_id, outcome)
              SELECT campaign_id, min(annotator_id), min(id), 'completed' FROM assignments
              WHERE campaign_id = :id GROUP BY campaign_id"""
    await execute_sql(engine, call, id=campaign.id)
    named_annotators = "SELECT min(pseudonym) FROM named_annotators WHERE campaign_id = :id"
    return {
        "annotator": await fetch_value(engine, named_annotators, id=campaign.id),
        "person": await fetch_value(engine, named_annotators, id=campaign.id),
        "receipt": f"E-{campaign.id}",
        "answer": await fetch_value(engine, "SELECT max(seq) FROM responses WHERE campaign_id = :id", id=campaign.id),
        "alert": await fetch_value(engine, "SELECT max(id) FROM alerts WHERE campaign_id = :id", id=campaign.id),
        "payment": await fetch_value(engine, "SELECT max(id) FROM payments WHERE campaign_id = :id", id=campaign.id),
        "call": await fetch_value(engine, "SELECT max(id) FROM server_calls WHERE campaign_id = :id", id=campaign.id),
        "invitation": await fetch_value(
            engine, "SELECT max(id) FROM invitations WHERE campaign_id = :id", id=campaign.id
        ),
        "link": await fetch_value(engine, "SELECT max(id) FROM campaign_links WHERE campaign_id = :id", id=campaign.id),
    }


def ids_in_addresses() -> set[str]:
    """Return the parameter names in campaign addresses that identify a row of a campaign."""
    words = {
        "slug",
        "action",
        "ending",
        "file",
        "list_name",
        "name",
        "section",
        "method",
        "what",
        "step",
        "platform",
    }  # the same for all campaigns
    return {
        name for address in NEED_BY_ROUTE if "{slug}" in address for name in re.findall(r"\{(\w+)\}", address)
    } - words


async def everything(engine):
    return [
        await fetch_rows(engine, f"SELECT * FROM {table} ORDER BY 1, 2")
        for table in ("decisions", "alerts", "campaign_members", "annotators", "invitations", "campaign_links")
    ]


async def test_an_answer_is_not_found_under_another_annotator(researcher, engine):
    campaign, _, rows = await campaign_with_answers(engine, people=2, hits=1)
    of_first = "SELECT seq FROM responses WHERE annotator_id = :id"
    seq = await fetch_value(engine, of_first, id=rows[0])
    address = f"/admin/campaigns/{campaign.slug}/annotators/A2/answers/{seq}/exclude"
    refused = await researcher.post(address, data={"reason": "x"})
    assert (refused.status_code, await fetch_rows(engine, "SELECT 1 FROM decisions")) == (404, [])


async def test_an_item_of_another_campaign_is_not_shown(researcher, engine):
    here, _, _ = await campaign_with_answers(engine, people=1, hits=1, items=6, name="Verbs")
    await campaign_with_answers(engine, people=1, hits=1, items=20, name="Nouns")
    shown = await researcher.get(f"/admin/campaigns/{here.slug}?item=v15")
    assert (shown.status_code, "item_not_found" in shown.text) == (404, True)


async def test_a_viewer_reads_nothing_about_people(app, client, researcher, engine):
    campaign, _, _ = await campaign_with_answers(engine, people=2, hits=2, items=6)
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    pseudonyms = [row[0] for row in await fetch_rows(engine, "SELECT pseudonym FROM annotators")]
    secrets = ["A1<", "A2<", "ann 0", "ann 1", *pseudonyms, campaign.link_key]
    address = f"/admin/campaigns/{campaign.slug}"
    everything = f"{address}?item=v1"
    assert "A1" in (await researcher.get(everything)).text
    for path in (address, everything, f"{address}/match-quality", f"{address}/analysis"):
        text = (await client.get(path)).text
        assert not [secret for secret in secrets if secret in text], path
