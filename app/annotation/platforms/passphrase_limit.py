"""Limit on guesses of a campaign's passphrase, per hour, from one network address and in total.

A guess is charged before it is checked, and refunded if it was right. `visit_limit` describes how counts are stored.
"""

from datetime import datetime, timedelta

from sqlalchemy import text

from app.annotation.platforms.visit_limit import ALLOWANCE_WINDOW, Visitor
from app.database.session import Driver, Record, execute_statement, fetch_first_row
from app.errors import TooManyAttempts

MAX_GUESSES_PER_ADDRESS_AND_HOUR = 20
MAX_GUESSES_PER_CAMPAIGN_AND_HOUR = 1_000
ADDRESS_KEY_PREFIX, CAMPAIGN_GUESSES_KEY = b"guess ", b"guesses"  # keys of the counts

CHARGE_GUESS = text("""
    INSERT INTO visit_allowances AS v (campaign_id, address, full_at)
    VALUES (:campaign, :key, CAST(:now AS timestamptz) + CAST(:share AS interval))
    ON CONFLICT (campaign_id, address) DO UPDATE
    SET full_at = greatest(v.full_at, CAST(:now AS timestamptz)) + CAST(:share AS interval)
    WHERE greatest(v.full_at, CAST(:now AS timestamptz)) + CAST(:share AS interval) <= CAST(:full AS timestamptz)
    RETURNING 1
""")

REFUND_GUESS = text("""
    UPDATE visit_allowances SET full_at = full_at - CAST(:share AS interval)
    WHERE campaign_id = :campaign AND address = :key
""")


def guess_allowances(visitor: Visitor) -> list[tuple[bytes, timedelta]]:
    """Return the key of each count that a guess increments, and the guess's share of the window."""
    return [
        (ADDRESS_KEY_PREFIX + visitor.address_hash, ALLOWANCE_WINDOW / MAX_GUESSES_PER_ADDRESS_AND_HOUR),
        (CAMPAIGN_GUESSES_KEY, ALLOWANCE_WINDOW / MAX_GUESSES_PER_CAMPAIGN_AND_HOUR),
    ]


async def charge_guess(connection: Driver, campaign_id: int, visitor: Visitor, *, now: datetime) -> None:
    """Charge a guess. Raises `TooManyAttempts` (`too_many_attempts`, details `retry_after_seconds`)."""
    for key, share in guess_allowances(visitor):
        values = {"campaign": campaign_id, "key": key, "share": share, "now": now, "full": now + ALLOWANCE_WINDOW}
        if await fetch_first_row(connection, CHARGE_GUESS, values, Record) is None:
            seconds = round(share.total_seconds())
            raise TooManyAttempts(
                "The passphrase was tried too often. Please wait a few minutes, then try again. If you have started "
                "already, you can go on.",
                retry_after_seconds=seconds,
            )


async def refund_guess(connection: Driver, campaign_id: int, visitor: Visitor) -> None:
    """Refund the last guess, because it was right."""
    for key, share in guess_allowances(visitor):
        await execute_statement(connection, REFUND_GUESS, {"campaign": campaign_id, "key": key, "share": share})
