"""How often somebody may try the passphrase of a campaign's link: so often an hour from one network address, and so
often in all. A try is written down before it is looked at, and taken back when it was right.

The counts are kept as those of new visits are; see `doors`.
"""

from datetime import datetime, timedelta

from sqlalchemy import text

from app.crowd.doors import WINDOW, Visitor
from app.database.session import Driver, Record, execute, fetch_one
from app.errors import TooManyAttempts

PER_ADDRESS = 20
PER_CAMPAIGN = 1_000
OF_ADDRESS, OF_ALL = b"guess ", b"guesses"  # begin the keys of the rows

TRY = text("""
    INSERT INTO visit_allowances AS v (campaign_id, address, full_at)
    VALUES (:campaign, :key, CAST(:now AS timestamptz) + CAST(:share AS interval))
    ON CONFLICT (campaign_id, address) DO UPDATE
    SET full_at = greatest(v.full_at, CAST(:now AS timestamptz)) + CAST(:share AS interval)
    WHERE greatest(v.full_at, CAST(:now AS timestamptz)) + CAST(:share AS interval) <= CAST(:full AS timestamptz)
    RETURNING 1
""")

TAKE_BACK = text("""
    UPDATE visit_allowances SET full_at = full_at - CAST(:share AS interval)
    WHERE campaign_id = :campaign AND address = :key
""")


def counts(visitor: Visitor) -> list[tuple[bytes, timedelta]]:
    """Of each count that a try moves on, its key and by how much."""
    return [(OF_ADDRESS + visitor.address, WINDOW / PER_ADDRESS), (OF_ALL, WINDOW / PER_CAMPAIGN)]


async def note_try(connection: Driver, campaign_id: int, visitor: Visitor, *, now: datetime) -> None:
    """Raises `TooManyAttempts` (`too_many_attempts`, details `retry_after_seconds`)."""
    for key, share in counts(visitor):
        values = {"campaign": campaign_id, "key": key, "share": share, "now": now, "full": now + WINDOW}
        if await fetch_one(connection, TRY, values, Record) is None:
            seconds = round(share.total_seconds())
            raise TooManyAttempts(
                "The passphrase was tried too often. Please wait a few minutes, then try again. Whoever has started "
                "already can go on.",
                retry_after_seconds=seconds,
            )


async def take_back(connection: Driver, campaign_id: int, visitor: Visitor) -> None:
    """The last try: it was right."""
    for key, share in counts(visitor):
        await execute(connection, TAKE_BACK, {"campaign": campaign_id, "key": key, "share": share})
