"""Alerts are raised in the transaction of what happened, once, and shown until somebody has seen them."""

import pytest

from app.database.alerts import store_alert_unless_known
from app.database.session import borrow_driver_in_transaction
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import create_draft

ALERTS = "SELECT kind, occasion, about, because FROM alerts ORDER BY id"


async def test_of_one_occasion_an_alert_is_raised_once_whoever_tells(engine):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await store_alert_unless_known(connection, campaign.id, "held", "decision 3", about="A7", because="Too fast.")
    async with borrow_driver_in_transaction(engine) as driver:
        await store_alert_unless_known(driver, campaign.id, "held", "decision 3", about="A7", because="Too fast.")
        await store_alert_unless_known(driver, campaign.id, "held", "decision 4", about="A8")
    assert await fetch_rows(engine, ALERTS) == [
        ("held", "decision 3", "A7", "Too fast."),
        ("held", "decision 4", "A8", ""),
    ]


async def test_what_was_taken_back_raises_no_alert(engine):
    campaign = await create_running_campaign(engine)
    async with engine.connect() as connection:
        await store_alert_unless_known(connection, campaign.id, "held", "decision 3", about="A7")
        await connection.rollback()
    assert await fetch_rows(engine, ALERTS) == []


async def test_an_alert_of_a_kind_that_nobody_knows_is_a_mistake_of_ours(engine):
    async with engine.begin() as connection:
        with pytest.raises(KeyError):
            await store_alert_unless_known(connection, 1, "exploded", "1", about="it")


async def test_a_campaign_that_finishes_by_itself_says_so(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1, items_per_hit=5)
    assignment = await create_annotator(engine, campaign)
    await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    assert [(row[0], row[2]) for row in await fetch_rows(engine, ALERTS)] == [("finished", "")]


async def test_an_alert_stands_on_the_page_until_somebody_has_seen_it(engine, researcher):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await store_alert_unless_known(
            connection, campaign.id, "flagged", "item 3", about="item v3", because="<b>It is empty.</b>"
        )
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.get(address)).text
    assert "Flagged by annotators: item v3." in page
    assert "&lt;b&gt;It is empty" in page
    alert = await fetch_value(engine, "SELECT id FROM alerts")
    for _ in range(2):  # a second click changes nothing
        await researcher.post(f"{address}/alerts/{alert}/seen")
    assert "Flagged by" not in (await researcher.get(address)).text
    assert await fetch_value(engine, "SELECT seen_by FROM alerts") == "admin"
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE action = 'alert.seen'") == 1
    assert (await researcher.post(f"{address}/alerts/{alert + 1}/seen")).status_code == 404


async def test_the_settings_say_that_no_mail_is_sent_without_a_mail_server(engine, researcher):
    sentence = "No mail is sent, because no mail server is set up yet"
    for slug, addresses in (("quiet", []), ("mailed", ["ada@example.org"])):
        campaign = await create_draft(engine, name=slug, alert_emails=addresses)
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/advanced")).text
        assert (sentence in page) == bool(addresses)
