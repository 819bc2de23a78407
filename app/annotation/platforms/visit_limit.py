"""Limits on new visits by a campaign's open link, and on HITs held by people who have not touched them.

A visitor with the link, or with an invented id of a platform, can come back under a new name any number of times. So
new visits are counted per network address and per campaign, per hour (see `rate_limit`).
"""

import hmac
import logging
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from cachetools import LRUCache
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.rate_limit import (
    ALLOWANCE_WINDOW,
    AllowanceExhausted,
    charge_all_allowances_or_refuse,
    statement_that_charges_counts_with_room,
    time_until_full_sql,
)
from app.database.alerts import store_alert_unless_known
from app.database.session import Driver, fetch_first_value_or_none
from app.errors import TooManyVisits
from app.settings import Settings

log = logging.getLogger(__name__)

MAX_REMEMBERED_VISITORS = 4_096

REFUSED_VISITS_ADVICE = (
    "More new people came from one network address within an hour than the limit allows. If they are a class or "
    "an office that shares a network address, raise “New people per network address” in the settings."
)

# The campaign's own count has an empty address.
VISIT_SHARES_SQL = """
    SELECT CAST(:address AS bytea), CAST(:share AS interval)
    UNION ALL SELECT '', CAST(:share_of_all AS interval)
"""
SELECT_PEOPLE_PER_ADDRESS = text("SELECT people_per_address FROM campaigns WHERE id = :campaign")
CHARGE_VISIT = statement_that_charges_counts_with_room(VISIT_SHARES_SQL)

SELECT_WAIT_FOR_NEXT_VISIT = text(f"""
    WITH shares (address, share) AS ({VISIT_SHARES_SQL})
    SELECT max({time_until_full_sql("shares.share")} + shares.share) - CAST(:window AS interval)
    FROM visit_allowances v JOIN shares ON shares.address = v.address WHERE v.campaign_id = :campaign
""")


COUNT_REFUSED_VISIT = text("""
    INSERT INTO visit_refusals AS r (campaign_id, day, refused)
    VALUES (:campaign, CAST(CAST(:now AS timestamptz) AT TIME ZONE 'UTC' AS date), 1)
    ON CONFLICT (campaign_id, day) DO UPDATE SET refused = r.refused + 1
    RETURNING refused
""")

COUNT_RECENT_REFUSALS = text("""
    SELECT coalesce(sum(refused), 0) FROM visit_refusals
    WHERE campaign_id = :campaign AND day >= CAST(CAST(:now AS timestamptz) AT TIME ZONE 'UTC' AS date) - 1
""")


@dataclass(frozen=True)
class Visitor:
    """Origin of a visitor who only has the link: a keyed hash of the network address."""

    address_hash: bytes
    limits: Settings

    async def charge_visit_or_refuse(self, connection: Driver, campaign_id: int, *, now: datetime) -> None:
        """Count a new visit. Raises `TooManyVisits` (details `retry_after_seconds`) and alerts the campaign owner."""
        people_per_address = await fetch_first_value_or_none(
            connection, SELECT_PEOPLE_PER_ADDRESS, {"campaign": campaign_id}
        )
        visit = {
            "campaign": campaign_id,
            "address": self.address_hash,
            "window": ALLOWANCE_WINDOW,
            "share": ALLOWANCE_WINDOW / (people_per_address or self.limits.visits_per_address),
            "share_of_all": ALLOWANCE_WINDOW / self.limits.visits_per_campaign,
        }
        try:
            await charge_all_allowances_or_refuse(connection, CHARGE_VISIT, visit, 2, now=now)
        except AllowanceExhausted:
            await store_refused_visit_and_alert(connection, campaign_id, now=now)
            wait: timedelta = await fetch_first_value_or_none(
                connection, SELECT_WAIT_FOR_NEXT_VISIT, {**visit, "now": now}
            )
            raise too_many_visits_error(wait) from None


async def store_refused_visit_and_alert(connection: Driver, campaign_id: int, *, now: datetime) -> None:
    """Count a refused visit. The 1st, 10th, 100th, ... of a day raises an alert."""
    refused: int = await fetch_first_value_or_none(
        connection, COUNT_REFUSED_VISIT, {"campaign": campaign_id, "now": now}
    )
    if str(refused).strip("0") == "1":
        log.warning("campaign %s: %d visits were turned away today", campaign_id, refused)
        occasion, about = f"{now:%Y-%m-%d} {refused}", f"{refused:,} so far today"
        await store_alert_unless_known(
            connection, campaign_id, "turned_away", occasion, about=about, because=REFUSED_VISITS_ADVICE
        )


async def count_refused_visits_of_two_days(connection: AsyncConnection, campaign_id: int, *, now: datetime) -> int:
    """Return the number of visits refused today and yesterday."""
    return int((await connection.execute(COUNT_RECENT_REFUSALS, {"campaign": campaign_id, "now": now})).scalar_one())


def too_many_visits_error(wait: timedelta) -> TooManyVisits:
    seconds = max(1, math.ceil(wait.total_seconds()))
    return TooManyVisits(
        "Many people have started this task at once, so the door is closed for a moment. Please open the link again in "
        f"{-(-seconds // 60)} min. If you have started already, you can go on.",
        retry_after_seconds=seconds,
    )


@dataclass(frozen=True)
class VisitLimiter:
    """Factory of visitors. It stores network addresses only as keyed hashes, and only as long as they count.

    The hashes of the latest addresses are remembered in memory.
    """

    secret_key: str
    limits: Settings
    visitors: LRUCache[str, Visitor] = field(default_factory=lambda: LRUCache(MAX_REMEMBERED_VISITORS), repr=False)

    def visitor_of_ip_address(self, address: str) -> Visitor:
        if (visitor := self.visitors.get(address)) is None:
            key = hmac.new(self.secret_key.encode(), f"address {address}".encode(), sha256).digest()[:16]
            visitor = self.visitors[address] = Visitor(key, self.limits)
        return visitor
