"""Outbox of alerts. The transaction that raises an alert stores one message per receiver; this module sends them
afterwards.

Several processes and machines share the rows. A process takes some messages and sets the time of their next try, so a
process that dies with them loses nothing. A message that was sent but not marked, because the process died in between,
is sent twice, with the same id.

A slow or failing receiver does not delay the others: a process sends several messages at a time in threads of their
own, only a few of one campaign, and those with the fewest tries first.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.alerts import mail, webhook
from app.alerts.settings import deliverable_addresses
from app.alerts.silence import store_alerts_of_silent_campaigns
from app.alerts.webhook import DeliveryFailed
from app.background.metrics import PROCESS_METRICS
from app.background.process import run_in_daemon_thread
from app.background.tasks import KeyedTasks
from app.database.alerts import alert_sentence
from app.settings import Settings

log = logging.getLogger(__name__)

OUTBOX_PAUSE_SECONDS = 5.0
MAX_TRIES_PER_MESSAGE = 6  # repeated after 1, 4, 16, 64 and 256 minutes
MAX_MESSAGES_IN_FLIGHT = 20
MAX_MESSAGES_IN_FLIGHT_PER_CAMPAIGN = 4

TAKE_DUE_MESSAGES = text("""
    WITH due AS (
        SELECT campaign_id, alert_id, way, receiver, tries, next_try_at,
               row_number() OVER (PARTITION BY campaign_id ORDER BY tries, next_try_at) AS place
        FROM alert_messages
        WHERE sent_at IS NULL AND tries < :tries AND next_try_at <= :now AND way = ANY(CAST(:ways AS text[]))
    ), taken AS (
        SELECT m.campaign_id, m.alert_id, m.way, m.receiver
        FROM alert_messages m JOIN due USING (campaign_id, alert_id, way, receiver)
        LEFT JOIN unnest(CAST(:busy AS bigint[]), CAST(:sending AS int[])) AS in_flight (campaign, number)
            ON in_flight.campaign = m.campaign_id
        WHERE m.sent_at IS NULL AND m.next_try_at <= :now AND due.place <= :most_of_one - coalesce(in_flight.number, 0)
        ORDER BY due.tries, due.next_try_at LIMIT :most FOR UPDATE OF m SKIP LOCKED
    )
    UPDATE alert_messages m
    SET tries = m.tries + 1, next_try_at = CAST(:now AS timestamptz) + make_interval(mins => CAST(4 ^ m.tries AS int))
    FROM taken
    WHERE (m.campaign_id, m.alert_id, m.way, m.receiver)
        = (taken.campaign_id, taken.alert_id, taken.way, taken.receiver)
    RETURNING m.campaign_id, m.alert_id, m.way, m.receiver
""")

# What the messages say, in the order in which they were taken.
LOAD_TAKEN_MESSAGES = text("""
    SELECT taken.campaign_id, taken.alert_id, taken.way, taken.receiver, a.kind, a.about, a.because, a.raised_at,
           c.slug, c.name, c.alert_emails, c.alert_webhook
    FROM unnest(CAST(:campaigns AS bigint[]), CAST(:alerts AS bigint[]), CAST(:ways AS text[]),
                CAST(:receivers AS text[])) WITH ORDINALITY AS taken (campaign_id, alert_id, way, receiver, place)
    JOIN alerts a ON a.campaign_id = taken.campaign_id AND a.id = taken.alert_id
    JOIN campaigns c ON c.id = taken.campaign_id
    ORDER BY taken.place
""")

IS_MESSAGE_SQL = "campaign_id = :campaign AND alert_id = :alert AND way = :way AND receiver = :receiver"
MARK_MESSAGE_SENT = text(f"UPDATE alert_messages SET sent_at = :now, problem = NULL WHERE {IS_MESSAGE_SQL}")
MARK_MESSAGE_FAILED = text(f"UPDATE alert_messages SET problem = :problem WHERE {IS_MESSAGE_SQL}")


class Outbox:
    """Sends messages that are due; call `raise_silence_alerts_and_start_sending` repeatedly."""

    def __init__(
        self, database: AsyncEngine, settings: Settings, secret: str, clock: Callable[[], Awaitable[datetime]]
    ) -> None:
        self.database = database
        self.settings = settings
        self.secret = secret
        self.clock = clock
        self.sending = KeyedTasks[tuple[int, int, str, str]]("alert messages")

    async def raise_silence_alerts_and_start_sending(self) -> None:
        """Raise alerts of silence, and start to send all messages that are due."""
        now = await self.clock()
        await store_alerts_of_silent_campaigns(self.database, now=now)
        while await self.start_sending_due_messages_and_count(now=now):
            if len(self.sending) >= MAX_MESSAGES_IN_FLIGHT:
                await self.sending.wait(first_only=True)

    async def stop(self) -> None:
        """Cancel running deliveries; another process or the next start tries them again."""
        await self.sending.stop()

    async def send_due_messages_and_count(self, *, now: datetime) -> int:
        """Try to send messages that are due, as many as fit at a time, and wait for the end. Return their number."""
        count = await self.start_sending_due_messages_and_count(now=now)
        await self.sending.wait()
        return count

    async def start_sending_due_messages_and_count(self, *, now: datetime) -> int:
        """Take messages that are due, as many as there is room for, and send them concurrently. Return their number."""
        busy = Counter(campaign for campaign, *_ in self.sending)
        parameters = {
            "now": now,
            "tries": MAX_TRIES_PER_MESSAGE,
            "ways": ["webhook", "email"] if self.settings.smtp_url else ["webhook"],
            "busy": [*busy.keys()],
            "sending": [*busy.values()],
            "most_of_one": MAX_MESSAGES_IN_FLIGHT_PER_CAMPAIGN,
            "most": MAX_MESSAGES_IN_FLIGHT - len(self.sending),
        }
        async with self.database.begin() as connection:
            taken = (await connection.execute(TAKE_DUE_MESSAGES, parameters)).all()
            if not taken:
                return 0
            campaigns, alerts, ways, receivers = map(list, zip(*taken, strict=True))
            keys = {"campaigns": campaigns, "alerts": alerts, "ways": ways, "receivers": receivers}
            due = (await connection.execute(LOAD_TAKEN_MESSAGES, keys)).all()
        for message in due:
            key = message.campaign_id, message.alert_id, message.way, message.receiver
            if key not in self.sending:  # else its last try is still running
                self.sending.start(key, partial(self.send_message_and_store_result, message, now=now))
        return len(due)

    async def send_message_and_store_result(self, message: Row[Any], *, now: datetime) -> None:
        """Send a message outside any transaction, and store the result."""
        key = {"campaign": message.campaign_id, "alert": message.alert_id}
        key |= {"way": message.way, "receiver": message.receiver}
        try:
            if message.way == "email":
                await run_in_daemon_thread(partial(self.deliver_by_mail, message), "alert")
            else:
                await self.deliver_by_webhook(message, now)
        except Exception as problem:
            error_text = (
                str(problem) if isinstance(problem, DeliveryFailed) else f"Sending failed ({type(problem).__name__})."
            )
            traceback_error = None if isinstance(problem, DeliveryFailed) else problem
            log.warning(
                "an alert of %s was not sent by %s: %s", message.slug, message.way, error_text, exc_info=traceback_error
            )
            PROCESS_METRICS.count("easel_outbox_failed_total", message.way)
            statement, parameters = MARK_MESSAGE_FAILED, key | {"problem": error_text}
        else:
            statement, parameters = MARK_MESSAGE_SENT, key | {"now": now}
        async with self.database.begin() as connection:
            await connection.execute(statement, parameters)

    def deliver_by_mail(self, message: Row[Any]) -> None:
        """Send a message by mail. Raises `DeliveryFailed`. This call blocks."""
        if message.receiver not in message.alert_emails:
            raise DeliveryFailed("This address is no longer in the settings.")
        if not deliverable_addresses([message.receiver]):
            raise DeliveryFailed("This is not a valid e-mail address. Replace it in the settings.")
        sentence = alert_sentence(message.kind, message.about)
        page = self.campaign_url_or_path(message.slug)
        lines = [sentence, message.because, f"{message.raised_at:%Y-%m-%d %H:%M} UTC", page]
        assert self.settings.smtp_url is not None  # noqa: S101  (without it, `start_sending_due_messages_and_count` takes no mails)
        server = self.settings.smtp_url.get_secret_value()
        body = "\n\n".join(line for line in lines if line) + "\n"
        mail.send_mail(server, self.settings.smtp_from, message.receiver, f"{message.name}: {sentence}", body)

    async def deliver_by_webhook(self, message: Row[Any], now: datetime) -> None:
        """Send a message to the webhook. Raises `DeliveryFailed`."""
        if message.alert_webhook is None:
            raise DeliveryFailed("The settings no longer have a webhook.")
        document = {
            "id": message.alert_id,
            "kind": message.kind,
            "campaign": message.slug,
            "about": message.about,
            "because": message.because,
            "said": alert_sentence(message.kind, message.about),
            "raised_at": message.raised_at.isoformat(),
            "page": self.campaign_url_or_path(message.slug),
        }
        key = webhook.signing_key_of_campaign_webhook(self.secret, message.campaign_id)
        allow_private = self.settings.webhooks_inside
        await webhook.post_signed_webhook(
            message.alert_webhook, document, key, int(now.timestamp()), allow_private=allow_private
        )

    def campaign_url_or_path(self, slug: str) -> str:
        """Return the URL of the campaign's page; only its path if the server does not know its own address."""
        return f"{self.settings.public_url or ''}/admin/campaigns/{slug}"
