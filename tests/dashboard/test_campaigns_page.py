"""The list of campaigns over HTTP: filtered, sorted and tagged by its address."""

import re
from datetime import timedelta

import pytest

from app.campaigns import lifecycle
from app.text.ages import describe_age
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)

pytestmark = pytest.mark.usefixtures("app")


@pytest.fixture
async def campaigns(engine):
    """Create a draft, a running campaign with an answer, and an archived campaign."""
    draft = await create_running_campaign(engine, launched=False, name="Nouns", tags=["pilot", "German"])
    running = await create_running_campaign(engine, name="Verbs", tags=["Pilot"])
    archived = await create_running_campaign(engine, name="Adverbs")
    me = await create_annotator(engine, running)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, archived.slug, "finish", now=NOW)
        await lifecycle.change_campaign_status_or_refuse(connection, archived.slug, "archive", now=NOW)
    return draft, running, archived


async def names(client, query=""):
    page = (await client.get(f"/admin{query}")).text
    return re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', page)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Verbs", "Nouns"]),
        ("?search=NOUN", ["Nouns"]),
        ("?search=german", ["Nouns"]),
        ("?status=running", ["Verbs"]),
        ("?status=archived", ["Adverbs"]),
        ("?archived=true", ["Adverbs"]),
        ("?tag=pilot", ["Verbs", "Nouns"]),
        ("?tag=German&status=draft", ["Nouns"]),
        ("?sort=name", ["Nouns", "Verbs"]),
        ("?sort=answer", ["Verbs", "Nouns"]),
        ("?search=nothing", []),
    ],
)
async def test_campaigns_are_found_and_sorted_by_the_address(researcher, campaigns, query, found):
    assert await names(researcher, query) == found


async def test_an_empty_search_says_so_and_leads_back(researcher, campaigns):
    assert (
        'No campaign matches. <a href="/admin">Show all campaigns</a>'
        in (await researcher.get("/admin?search=nothing")).text
    )


async def test_an_unknown_status_or_order_is_refused(researcher, subtests):
    for query in ("status=lost", "sort=colour", f"tag={'x' * 41}"):
        with subtests.test(query=query):
            assert (await researcher.get(f"/admin?{query}")).status_code == 422


async def test_the_goal_of_a_campaign_is_shown_as_far_as_it_is_known(engine, researcher):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=30, goal="intervals", goal_width=40)
    for k in range(6):
        me = await create_annotator(engine, campaign, f"ann {k}")
        await submit_scores(
            engine, me, await try_to_lease_hit(engine, me), scores=[10.0, 30.0 + k, 50.0, 70.0 - k, 90.0]
        )
    assert ">100 % of 95 %</td>" in (await researcher.get("/admin")).text


async def test_tags_are_edited_in_the_list_which_stays_as_it_was(researcher, campaigns):
    draft, *_ = campaigns
    reply = await researcher.post(
        f"/admin/campaigns/{draft.slug}/tags", data={"tags": " pilot , Pilot,second run ", "view": "?status=draft"}
    )
    assert (reply.status_code, reply.headers["location"]) == (303, "/admin?status=draft")
    listed = (await researcher.get("/admin?status=draft")).text
    assert re.findall(r'tag=[^"]*">([^<]*)</a>', listed) == ["pilot", "second run"]


async def test_tags_can_change_after_a_launch_and_leave_a_plan_valid(engine, researcher, campaigns):
    _, running, _ = campaigns
    reply = await researcher.post(f"/admin/campaigns/{running.slug}/tags", data={"tags": "main"})
    assert reply.status_code == 303
    assert await names(researcher, "?tag=main") == ["Verbs"]


@pytest.mark.parametrize("tags", ["x" * 41, ",".join("abcdefghijk")])
async def test_too_many_or_too_long_tags_are_refused(researcher, campaigns, tags):
    draft, *_ = campaigns
    reply = await researcher.post(
        f"/admin/campaigns/{draft.slug}/tags", data={"tags": tags}, headers={"accept": "application/json"}
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "tags_invalid")


async def test_viewers_find_campaigns_and_change_no_tags(app, client, engine, campaigns):
    _, running, _ = campaigns
    await log_in_with_role(app, client, "guest", "viewer", running)
    page = (await client.get("/admin?tag=pilot")).text
    assert ("Verbs" in page, "Edit tags" in page) == (True, False)


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=30), "just now"),
        (timedelta(minutes=26), "26 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=30), f"{NOW - timedelta(days=30):%Y-%m-%d}"),
        (-timedelta(seconds=5), "just now"),
    ],
)
def test_ages_are_told_in_the_unit_that_fits(age, text):
    assert describe_age(NOW - age, NOW) == text
