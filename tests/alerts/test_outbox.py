"""Alerts go out once each, are tried again a bounded number of times, and keep nothing waiting."""

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from email import message_from_string
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from pydantic import SecretStr

from app.alerts.outbox import MAX_MESSAGES_IN_FLIGHT, MAX_MESSAGES_IN_FLIGHT_PER_CAMPAIGN, MAX_TRIES_PER_MESSAGE, Outbox
from app.alerts.silence import store_alerts_of_silent_campaigns
from app.background.loop import BackgroundLoop
from app.campaigns import lifecycle, settings_edits
from app.campaigns.campaign_file import format_campaign_file
from app.database.alerts import MAX_ALERTS_PER_HOUR, store_alert_unless_known
from app.http.dependencies import get_now
from app.settings import Settings
from tests.alerts.receivers import mail_server, webhook_receiver
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.campaigns.drafts import apply_action

LATER = timedelta(days=1)
KINDS = "SELECT kind, about FROM alerts ORDER BY id"


@pytest.fixture(autouse=True)
def webhooks_without_tls_are_allowed(monkeypatch):
    """Allow webhooks without TLS, because the receivers are on loopback."""
    monkeypatch.setenv("EASEL_WEBHOOKS_INSIDE", "1")


def outbox_of(engine, **settings):
    return Outbox(engine, Settings(**{"webhooks_inside": True} | settings), "secret", get_now)


def soon():
    """Return a time just after the alerts raised so far."""
    return datetime.now(UTC) + timedelta(seconds=1)


async def held(engine, campaign, name="A7", because=""):
    async with engine.begin() as connection:
        await store_alert_unless_known(connection, campaign.id, "held", f"of {name}", about=name, because=because)


async def test_an_alert_is_posted_to_the_campaigns_webhook_once(engine):
    with webhook_receiver() as got:
        campaign = await create_running_campaign(engine, alert_webhook=got.address)
        await held(engine, campaign, because="Too fast.")
        assert await outbox_of(engine, public_url="https://easel.example").send_due_messages_and_count(now=soon()) == 1
        assert await outbox_of(engine).send_due_messages_and_count(now=soon() + LATER) == 0
    ((_, body),) = got.messages
    told = json.loads(body)
    assert (told["kind"], told["about"], told["because"]) == ("held", "A7", "Too fast.")
    assert told["page"] == f"https://easel.example/admin/campaigns/{campaign.slug}"


async def test_of_several_processes_one_sends(engine):
    with webhook_receiver() as got:
        campaign = await create_running_campaign(engine, alert_webhook=got.address)
        for number in range(8):
            await held(engine, campaign, f"A{number}")
        now = soon()
        # Those that find all messages they may take taken leave the others to the next round.
        while any(await asyncio.gather(*(outbox_of(engine).send_due_messages_and_count(now=now) for _ in range(4)))):
            pass
        assert len(got.messages) == 8
        assert len({json.loads(body)["id"] for _, body in got.messages}) == 8


async def test_what_fails_is_tried_again_later_each_time_and_given_up(engine):
    with webhook_receiver(*[500] * (MAX_TRIES_PER_MESSAGE + 1)) as got:
        campaign = await create_running_campaign(engine, alert_webhook=got.address)
        await held(engine, campaign)
        now = soon()
        assert await outbox_of(engine).send_due_messages_and_count(now=now) == 1
        assert await outbox_of(engine).send_due_messages_and_count(now=now + timedelta(seconds=59)) == 0
        assert await outbox_of(engine).send_due_messages_and_count(now=now + timedelta(seconds=61)) == 1
        for day in range(2, MAX_TRIES_PER_MESSAGE + 4):
            await outbox_of(engine).send_due_messages_and_count(now=now + day * LATER)
        assert len(got.messages) == MAX_TRIES_PER_MESSAGE
    assert await fetch_rows(engine, "SELECT sent_at, problem FROM alert_messages") == [
        (None, "The receiver answered with status 500.")
    ]


async def test_an_alert_is_mailed(engine):
    with mail_server() as got:
        campaign = await create_running_campaign(
            engine, name="Verbs", alert_emails=["bea@example.org", "cat@example.org"]
        )
        await held(engine, campaign, because="Häufig zu schnell.")
        outbox = outbox_of(engine, smtp_url=SecretStr(got.address), smtp_from="easel@example.org")
        assert await outbox.send_due_messages_and_count(now=soon()) == 2
    mails = [message_from_string(mail) for mail in got.messages]
    assert sorted(mail["To"] for mail in mails) == ["bea@example.org", "cat@example.org"]
    for mail in mails:
        body: Any = mail.get_payload(decode=True)
        assert "Häufig" in body.decode()
        assert mail["Subject"] == "Verbs: A rule held A7."
        assert parsedate_to_datetime(mail["Date"]).tzinfo is not None
        assert mail["Message-ID"].endswith("@example.org>")
    assert await fetch_value(engine, "SELECT bool_and(sent_at IS NOT NULL) FROM alert_messages")


async def test_a_receiver_whose_mail_fails_keeps_no_other_from_being_told_once(engine):
    campaign = await create_running_campaign(engine, alert_emails=["bea@example.org", "cat@example.org"])
    await held(engine, campaign)
    with mail_server(refused="CAT@EXAMPLE.ORG") as got:
        outbox = outbox_of(engine, smtp_url=SecretStr(got.address))
        now = soon()
        for day in range(3):
            await outbox.send_due_messages_and_count(now=now + day * LATER)
    assert [message_from_string(mail)["To"] for mail in got.messages] == ["bea@example.org"]
    rows = await fetch_rows(engine, "SELECT receiver, tries, sent_at IS NOT NULL FROM alert_messages ORDER BY receiver")
    assert rows == [("bea@example.org", 1, True), ("cat@example.org", 3, False)]
    told = await fetch_value(engine, "SELECT problem FROM alert_messages WHERE receiver = 'cat@example.org'")
    assert told == "The mail server did not accept the mail (SMTPRecipientsRefused)."


BAD = ["=?utf-8?q?=0d=0a?=@b.c", "'ada.:lovelace'@lab.org", "a(b@lab.org", "ädä@lab.org", "@", ""]


async def test_stored_addresses_that_are_none_are_noted_and_everybody_else_hears(engine):
    campaign, other = (
        await create_running_campaign(engine),
        await create_running_campaign(engine, alert_emails=["eve@example.org"]),
    )
    await execute_sql(
        engine, "UPDATE campaigns SET alert_emails = :bad WHERE id = :id", bad=[*BAD, "bea@b.org"], id=campaign.id
    )
    for one in (campaign, other):
        await held(engine, one)
    with mail_server() as got:
        outbox = outbox_of(engine, smtp_url=SecretStr(got.address))
        while await outbox.send_due_messages_and_count(now=soon()):
            pass
    assert sorted(message_from_string(mail)["To"] for mail in got.messages) == ["bea@b.org", "eve@example.org"]
    problems = "SELECT receiver, problem FROM alert_messages WHERE sent_at IS NULL ORDER BY receiver"
    assert await fetch_rows(engine, problems) == [
        (address, "This is not a valid e-mail address. Replace it in the settings.") for address in sorted(BAD)
    ]


NAMES = [
    "=?utf-8?q?=0d=0aBcc:_eve=40b.org?=",
    "a\x0b\x85\u2028b",
    "long " * 90,
    "\u202e" * 80 + "é" * 300,
    ": ; , <x@y>",
]


@pytest.mark.parametrize("name", NAMES)
async def test_any_name_of_a_campaign_fits_into_the_subject_of_a_mail(engine, name):
    campaign = await create_running_campaign(engine, alert_emails=["bea@b.org"])
    await execute_sql(engine, "UPDATE campaigns SET name = :name", name=name)
    await held(engine, campaign, because="\r\n.\r\nQUIT\x00".replace("\x00", "\x07") + "x" * 5_000)
    with mail_server() as got:
        await outbox_of(engine, smtp_url=SecretStr(got.address)).send_due_messages_and_count(now=soon())
    (mail,) = got.messages
    assert message_from_string(mail)["To"] == "bea@b.org"
    assert message_from_string(mail)["Bcc"] is None


async def test_a_failure_that_nobody_expected_is_noted_and_the_other_messages_go(engine, monkeypatch):
    def breaks(*_):
        raise AttributeError("about a secret")

    with webhook_receiver() as got:
        campaign = await create_running_campaign(engine, alert_webhook=got.address, alert_emails=["bea@b.org"])
        await held(engine, campaign)
        monkeypatch.setattr("app.alerts.outbox.mail.send_mail", breaks)
        await outbox_of(engine, smtp_url=SecretStr("smtp://127.0.0.1:1")).send_due_messages_and_count(now=soon())
        assert len(got.messages) == 1
    told = await fetch_value(engine, "SELECT problem FROM alert_messages WHERE way = 'email'")
    assert told == "Sending failed (AttributeError)."


async def test_an_address_that_was_taken_out_of_the_settings_gets_no_mail(engine):
    campaign = await create_running_campaign(engine, alert_emails=["bea@b.org"])
    await held(engine, campaign)
    await execute_sql(engine, "UPDATE campaigns SET alert_emails = '{}'")
    with mail_server() as got:
        await outbox_of(engine, smtp_url=SecretStr(got.address)).send_due_messages_and_count(now=soon())
    assert got.messages == []


async def test_silent_receivers_keep_those_of_other_campaigns_waiting_for_nothing(engine):
    """Not even while they are tried: a campaign has a few places of its own."""
    with socket.create_server(("127.0.0.1", 0)) as silent, webhook_receiver() as got:
        slow = await create_running_campaign(engine, alert_webhook=f"http://127.0.0.1:{silent.getsockname()[1]}/")
        for number in range(MAX_MESSAGES_IN_FLIGHT + 5):
            await held(engine, slow, f"A{number}")
        await execute_sql(engine, "UPDATE alert_messages SET next_try_at = next_try_at - interval '1 day'")
        await held(engine, await create_running_campaign(engine, alert_webhook=got.address))
        outbox = outbox_of(engine)
        await outbox.start_sending_due_messages_and_count(now=soon())
        await outbox.sending.wait(first_only=True)  # the silent receiver ends none
        assert await fetch_value(engine, "SELECT count(*) FROM alert_messages WHERE sent_at IS NOT NULL") == 1
        assert len(outbox.sending) == MAX_MESSAGES_IN_FLIGHT_PER_CAMPAIGN
        await outbox.start_sending_due_messages_and_count(now=soon())
        assert len(outbox.sending) == MAX_MESSAGES_IN_FLIGHT_PER_CAMPAIGN
        await outbox.stop()


async def test_without_a_mail_server_mails_wait_for_one(engine):
    campaign = await create_running_campaign(engine, alert_emails=["bea@example.org"])
    await held(engine, campaign)
    assert await outbox_of(engine).send_due_messages_and_count(now=soon()) == 0
    with mail_server() as got:
        await outbox_of(engine, smtp_url=SecretStr(got.address)).send_due_messages_and_count(now=soon())
        assert len(got.messages) == 1


async def test_a_mail_server_that_is_away_is_tried_again(engine):
    campaign = await create_running_campaign(engine, alert_emails=["bea@example.org"])
    await held(engine, campaign)
    outbox = outbox_of(engine, smtp_url=SecretStr("smtp://127.0.0.1:1"))
    await outbox.send_due_messages_and_count(now=soon())
    assert (await fetch_value(engine, "SELECT problem FROM alert_messages")).startswith(
        "The mail server did not accept"
    )


async def test_it_looks_for_as_long_as_it_runs_also_after_the_database_was_away(engine):
    away = [ConnectionRefusedError()]

    async def clock():
        if away:
            raise away.pop()
        return soon()

    with webhook_receiver() as got:
        campaign = await create_running_campaign(engine, alert_webhook=got.address)
        outbox = Outbox(engine, Settings(webhooks_inside=True), "secret", clock)
        loop = BackgroundLoop("alerts", outbox.raise_silence_alerts_and_start_sending, pause_seconds=0.01)
        loop.start()
        for number in range(2):
            await held(engine, campaign, f"A{number}")
            await wait_until(engine, "SELECT bool_and(sent_at IS NOT NULL) FROM alert_messages")
        await loop.stop()
        assert [json.loads(body)["about"] for _, body in got.messages] == ["A0", "A1"]


async def test_whoever_flags_everything_fills_no_mailbox(engine):
    campaign = await create_running_campaign(engine, alert_webhook="https://hook.example/")
    for number in range(MAX_ALERTS_PER_HOUR + 5):
        await held(engine, campaign, f"A{number}")
    assert await fetch_value(engine, "SELECT count(*) FROM alert_messages") == MAX_ALERTS_PER_HOUR
    assert await fetch_value(engine, "SELECT count(*) FROM alerts") == MAX_ALERTS_PER_HOUR + 5


async def test_a_campaign_without_addresses_sends_nothing(engine):
    await held(engine, await create_running_campaign(engine))
    assert await fetch_value(engine, "SELECT count(*) FROM alert_messages") == 0


async def test_each_silence_of_a_running_campaign_is_one_alert(engine):
    campaign = await create_running_campaign(engine, alert_quiet_minutes=30)
    begun = datetime.now(UTC)
    await store_alerts_of_silent_campaigns(engine, now=begun + timedelta(minutes=29))
    assert await fetch_rows(engine, KINDS) == []
    for minutes in (31, 60, 600):
        await store_alerts_of_silent_campaigns(engine, now=begun + timedelta(minutes=minutes))
    assert await fetch_rows(engine, KINDS) == [("quiet", "30 minutes")]
    ann = await create_annotator(engine, campaign)
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann), now=begun + timedelta(minutes=610))
    await store_alerts_of_silent_campaigns(engine, now=begun + timedelta(minutes=620))
    assert len(await fetch_rows(engine, KINDS)) == 1
    await store_alerts_of_silent_campaigns(engine, now=begun + timedelta(minutes=641))
    assert len(await fetch_rows(engine, KINDS)) == 2


@pytest.mark.parametrize("action", ["pause", "finish"])
async def test_who_is_not_asked_cannot_be_silent(engine, action):
    campaign = await create_running_campaign(engine, alert_quiet_minutes=30)
    await apply_action(engine, campaign, action)
    await store_alerts_of_silent_campaigns(engine, now=datetime.now(UTC) + LATER)
    assert await fetch_rows(engine, KINDS) == []


async def test_silence_counts_from_the_resumption(engine):
    campaign = await create_running_campaign(engine, alert_quiet_minutes=30)
    await apply_action(engine, campaign, "pause")
    await execute_sql(engine, "UPDATE campaigns SET launched_at = now() - interval '3 days'")
    await apply_action(engine, campaign, "resume")
    await store_alerts_of_silent_campaigns(engine, now=datetime.now(UTC) + timedelta(minutes=29))
    assert await fetch_rows(engine, KINDS) == []


async def test_addresses_are_in_no_file_and_the_log_says_only_that_they_changed(engine, researcher):
    private: dict[str, Any] = {"alert_webhook": "https://hook.example/T0KEN", "alert_emails": ["bea@example.org"]}
    campaign = await create_running_campaign(engine, **private)
    settings = lifecycle.unchecked_settings_with_deliverable_emails(campaign)
    assert "hook.example" not in format_campaign_file(settings)
    assert "bea@" not in (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/settings.json")).text
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: it.model_copy(update={"alert_webhook": None})
        )
    changed = "SELECT before, after FROM audit_log WHERE action = 'settings.changed'"
    assert await fetch_rows(engine, changed) == [({"alert_webhook": "•••"}, {"alert_webhook": None})]


async def test_the_page_shows_how_alerts_were_sent_and_the_key_that_signs_them(engine, researcher):
    campaign = await create_running_campaign(
        engine, alert_webhook="http://127.0.0.1:1/", alert_emails=["bea@example.org"]
    )
    await held(engine, campaign)
    await outbox_of(engine).send_due_messages_and_count(now=soon())
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/alerts")).text
    assert "The receiver could not be reached" in page
    assert "EASEL_SMTP_URL" in page
    assert 'id="signing-key"' in page


@pytest.mark.parametrize("address", ["=?utf-8?q?=0d=0a?=@b.c", "'ada.:lovelace'@lab.org", "ädä@lab.org", "a(b@lab.org"])
async def test_an_address_that_a_mail_cannot_go_to_is_refused_and_the_field_says_so(engine, researcher, address):
    campaign = await create_running_campaign(engine)
    page = f"/admin/campaigns/{campaign.slug}/settings/advanced"
    refused = await researcher.post(page, data={"alert_emails": f"bea@example.org\n{address}"})
    assert refused.status_code == 422
    assert "is not an e-mail address such as ada@example.org" in refused.text
    assert await fetch_value(engine, "SELECT alert_emails FROM campaigns") == []


async def test_a_campaign_with_an_address_of_an_earlier_version_is_read_without_it(engine, researcher):
    campaign = await create_running_campaign(engine)
    await execute_sql(engine, "UPDATE campaigns SET alert_emails = '{=?utf-8?q?=0d=0a?=@b.c,bea@example.org}'")
    await held(engine, campaign)
    address = f"/admin/campaigns/{campaign.slug}"
    for page in ("", "/alerts", "/settings/advanced"):
        assert (await researcher.get(address + page)).status_code == 200
    assert "it is not a valid mail address" in (await researcher.get(f"{address}/alerts")).text
