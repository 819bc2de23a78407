"""Read-only links: a campaign as a viewer sees it, without an account, until the link is withdrawn."""

import re
from datetime import UTC, datetime
from html import unescape

from app.accounts import shared_links
from app.accounts.roles import NEED_BY_ROUTE
from tests.accounts.reaching import log_in_with_role, request_status_and_code
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    try_to_lease_hit,
)
from tests.quality.deciding import answer_hits as campaign_with_answers


async def opened(engine, client, campaign):
    async with engine.begin() as connection:
        secret = await shared_links.create_shared_link_and_return_secret(
            connection, campaign, "co-authors", maker_name="ada", now=datetime.now(UTC)
        )
    return secret, await client.get(f"/shared/{secret}")


async def test_a_link_opens_what_a_viewer_sees_of_one_campaign_and_nothing_else(client, engine):
    campaign, other = await create_running_campaign(engine), await create_running_campaign(engine, name="Nouns")
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "ann", "api"))
    secret, response = await opened(engine, client, campaign)
    assert response.headers["location"] == f"/admin/campaigns/{campaign.slug}"
    assert secret not in response.headers["location"]
    for address, need in NEED_BY_ROUTE.items():
        path = address.split()[1]
        if path.endswith("/events") and need == "see":
            continue
        found = await request_status_and_code(client, address, secret, slug=campaign.slug, hit_id=hit.id)
        if path.startswith("/api/"):
            assert found[0] == 401, address
        elif "{slug}" not in path:
            assert found[0] == 303, (address, "to the login")
        elif need == "see":
            assert found[1] is None, address
        else:
            assert found == (403, "role_forbids"), address
        if "{slug}" in path and not path.startswith("/api/"):
            assert (await request_status_and_code(client, address, secret, slug=other.slug))[0] == 303, address


async def test_a_visitor_finds_no_button_and_no_way_that_is_closed(client, engine):
    campaign, _, _ = await campaign_with_answers(engine, people=2, hits=2, items=6)
    await opened(engine, client, campaign)
    for path in (f"/admin/campaigns/{campaign.slug}?item=v1", f"/admin/campaigns/{campaign.slug}/analysis"):
        page = await client.get(path)
        assert page.status_code == 200
        assert re.findall(r'method="post"', page.text) == []
        for address in re.findall(r'href="(/admin[^"#]*)', page.text):
            assert (await client.get(unescape(address))).status_code == 200, (path, address)


async def test_a_visitor_reads_the_goal_and_the_page_of_its_plan_and_hears_of_no_other_campaign(client, engine):
    campaign, _ = (
        await create_running_campaign(engine, goal="best", best_items=2),
        await create_running_campaign(engine, name="Nouns"),
    )
    await opened(engine, client, campaign)
    for part in ("", "/plan"):
        page = (await client.get(f"/admin/campaigns/{campaign.slug}{part}")).text
        assert "We know the best 2 items" in page
        assert f'href="/admin/campaigns/{campaign.slug}/plan"' in page
        assert 'method="post"' not in page
        assert "/settings" not in page
        assert "Nouns" not in page


async def test_a_link_is_no_login_leaks_nowhere_and_is_kept_by_no_search_engine(client, engine):
    campaign = await create_running_campaign(engine)
    secret, response = await opened(engine, client, campaign)
    page = await client.get(f"/admin/campaigns/{campaign.slug}")
    for one in (response, page):
        assert one.headers["X-Robots-Tag"] == "noindex, nofollow"
        assert one.headers["Referrer-Policy"] == "no-referrer"
        assert one.headers["Cache-Control"] == "no-store"
    assert secret not in page.text
    cookie = response.headers["set-cookie"]
    assert f"Path=/admin/campaigns/{campaign.slug};" in cookie + ";"
    assert "HttpOnly" in cookie
    assert secret.encode() not in await fetch_value(engine, "SELECT token_hash FROM campaign_links")


async def test_a_link_that_is_withdrawn_opens_nothing(researcher, client, engine):
    campaign = await create_running_campaign(engine)
    made = await researcher.post(f"/admin/campaigns/{campaign.slug}/links", data={"words": "co-authors"})
    (address,) = re.findall(r'id="new-shared">[^<]*(/shared/[^<]+)<', made.text)
    assert (await client.get(address)).status_code == 303
    page = f"/admin/campaigns/{campaign.slug}"
    assert (await client.get(page)).status_code == 200
    listed = (await researcher.get(f"{page}/members")).text
    assert address not in listed
    (withdraw,) = re.findall(rf'action="({page}/links/\d+/withdraw)"', listed)
    assert (await researcher.post(withdraw)).status_code == 303
    assert (await client.get(page)).headers["location"].startswith("/login")
    assert (await client.get(address)).status_code == 404
    said = await fetch_rows(engine, "SELECT action FROM audit_log WHERE action LIKE 'link.%' ORDER BY id")
    assert [row[0] for row in said] == ["link.made", "link.withdrawn"]


async def test_a_link_takes_nothing_from_who_is_logged_in(app, client, engine):
    campaign, other = await create_running_campaign(engine), await create_running_campaign(engine, name="Nouns")
    await log_in_with_role(app, client, "guest", "manager", other)
    await opened(engine, client, campaign)
    assert (await client.get(f"/admin/campaigns/{campaign.slug}")).status_code == 200
    assert (await client.get(f"/admin/campaigns/{campaign.slug}/settings/question")).status_code == 403
    assert (await client.get(f"/admin/campaigns/{other.slug}/settings/question")).status_code == 200
    assert (await client.get("/admin/account")).status_code == 200
