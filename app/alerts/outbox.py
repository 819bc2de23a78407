"""Alerts on their way out: each is a row from the transaction on that raised it, and is sent after that.

Several processes and machines share the rows: a process takes some for itself and says when they may be tried again,
so one that dies with them in hand loses nothing. What was sent and not marked, because the process died in between, is
sent twice, with the same id.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.alerts import mail, webhook
from app.alerts.quiet import raise_quiet
from app.alerts.webhook import Undelivered
from app.database.alerts import said
from app.database.session import TROUBLE
from app.settings import Settings

log = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0
TRIES = 6  # after 1, 4, 16, 64 and 256 minutes
AT_ONCE = 10

TAKE = text("""
    WITH due AS (
        SELECT campaign_id, alert_id, way FROM alert_messages
        WHERE sent_at IS NULL AND tries < :tries AND next_try_at <= :now AND way = ANY(CAST(:ways AS text[]))
        ORDER BY next_try_at LIMIT :at_once FOR UPDATE SKIP LOCKED
    )
    UPDATE alert_messages m
    SET tries = m.tries + 1, next_try_at = CAST(:now AS timestamptz) + make_interval(mins => CAST(4 ^ m.tries AS int))
    FROM due, alerts a, campaigns c
    WHERE (m.campaign_id, m.alert_id, m.way) = (due.campaign_id, due.alert_id, due.way)
    AND a.campaign_id = m.campaign_id AND a.id = m.alert_id AND c.id = m.campaign_id
    RETURNING m.campaign_id, m.alert_id, m.way, a.kind, a.about, a.because, a.raised_at, c.slug, c.name,
              c.alert_emails, c.alert_webhook
""")

SENT = text("""
    UPDATE alert_messages SET sent_at = :now, problem = NULL
    WHERE campaign_id = :campaign AND alert_id = :alert AND way = :way
""")

FAILED = text("""
    UPDATE alert_messages SET problem = :problem
    WHERE campaign_id = :campaign AND alert_id = :alert AND way = :way
""")


class Outbox:
    """Sends what is due, for as long as this process runs."""

    def __init__(
        self, database: AsyncEngine, settings: Settings, secret: str, clock: Callable[[], Awaitable[datetime]]
    ) -> None:
        self.database = database
        self.settings = settings
        self.secret = secret
        self.clock = clock

    async def run(self) -> None:
        """Until it is cancelled. While the database is away it waits, and before the first look: a start is busy."""
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                now = await self.clock()
                await raise_quiet(self.database, now=now)
                while await self.send_due(now=now) == AT_ONCE:
                    pass
            except TROUBLE as trouble:
                log.warning("alerts wait until the database is back: %s", trouble)

    async def send_due(self, *, now: datetime) -> int:
        """Try to send messages that are due, `AT_ONCE` at most; how many."""
        ways = ["webhook", "email"] if self.settings.smtp_url else ["webhook"]
        parameters = {"now": now, "tries": TRIES, "ways": ways, "at_once": AT_ONCE}
        async with self.database.begin() as connection:
            due = (await connection.execute(TAKE, parameters)).all()
        await asyncio.gather(*(self.send(message, now=now) for message in due))
        return len(due)

    async def send(self, message: Row[Any], *, now: datetime) -> None:
        """Send a message, in no transaction, and note how it went."""
        key = {"campaign": message.campaign_id, "alert": message.alert_id, "way": message.way}
        try:
            await asyncio.to_thread(self.by_mail if message.way == "email" else self.by_webhook, message, now)
        except Undelivered as problem:
            log.warning("an alert of %s was not sent by %s: %s", message.slug, message.way, problem)
            statement, parameters = FAILED, key | {"problem": str(problem)}
        else:
            statement, parameters = SENT, key | {"now": now}
        async with self.database.begin() as connection:
            await connection.execute(statement, parameters)

    def by_mail(self, message: Row[Any], _now: datetime) -> None:
        """Raises `Undelivered`. It blocks."""
        if not message.alert_emails:
            raise Undelivered("There is no address any more.")
        words = said(message.kind, message.about)
        page = self.page_of(message.slug)
        lines = [words, message.because, f"{message.raised_at:%Y-%m-%d %H:%M} UTC", page]
        assert self.settings.smtp_url is not None  # noqa: S101  (`send_due` takes no mails without it)
        server = self.settings.smtp_url.get_secret_value()
        told = "\n\n".join(line for line in lines if line) + "\n"
        mail.send(server, self.settings.smtp_from, message.alert_emails, f"{message.name}: {words}", told)

    def by_webhook(self, message: Row[Any], now: datetime) -> None:
        """Raises `Undelivered`. It blocks."""
        if message.alert_webhook is None:
            raise Undelivered("There is no address any more.")
        document = {
            "id": message.alert_id,
            "kind": message.kind,
            "campaign": message.slug,
            "about": message.about,
            "because": message.because,
            "said": said(message.kind, message.about),
            "raised_at": message.raised_at.isoformat(),
            "page": self.page_of(message.slug),
        }
        key = webhook.key_of(self.secret, message.campaign_id)
        inside = self.settings.webhooks_inside
        webhook.post(message.alert_webhook, document, key, int(now.timestamp()), inside=inside)

    def page_of(self, slug: str) -> str:
        """A link to the campaign where the server knows its own address; else the path."""
        return f"{self.settings.public_url or ''}/admin/campaigns/{slug}"
