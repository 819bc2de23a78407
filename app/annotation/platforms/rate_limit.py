"""Rate limits by the generic cell rate algorithm (GCRA), exact over any number of server processes.

A count is one row with a time: when the whole allowance of a window is available again. A use moves the time by its
share of the window, and the time may be at most a window ahead. So a use costs the same however many there were.

If the allowance is raised, earlier uses count with their new, smaller share: what was added is available at once.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import TextClause, text

from app.database.session import Driver, fetch_first_column

ALLOWANCE_WINDOW = timedelta(hours=1)


def time_until_full_sql(share: str) -> str:
    """Return SQL for the time until the whole allowance of the count v is available; `share` is SQL for a use's share
    of the window.
    """
    return f"""(greatest(v.full_at - CAST(:now AS timestamptz), interval '0')
            * CAST(least(1, coalesce(extract(epoch FROM {share}) / extract(epoch FROM v.share), 1)) AS float8))"""


class AllowanceExhausted(Exception):
    """An allowance is used up. Nothing was charged; `charged` are the keys that had room."""

    def __init__(self, charged: Collection[bytes]) -> None:
        super().__init__()
        self.charged = charged


def statement_that_charges_counts_with_room(shares_sql: str) -> TextClause:
    """Return a statement that charges counts of :campaign if all have room.

    It also deletes rows that no longer count anything, and skips locked ones.

    Args:
        shares_sql: SQL for rows with the key of a count, and the share of its window that a use takes.

    """
    return text(f"""
        WITH shares (address, share) AS ({shares_sql}), passed AS (
            DELETE FROM visit_allowances WHERE (campaign_id, address) IN (
                SELECT campaign_id, address FROM visit_allowances
                WHERE full_at < :now AND address NOT IN (SELECT address FROM shares)
                LIMIT 100 FOR UPDATE SKIP LOCKED)
        )
        INSERT INTO visit_allowances AS v (campaign_id, address, full_at, share)
        SELECT :campaign, address, CAST(:now AS timestamptz) + share, share FROM shares
        ON CONFLICT (campaign_id, address) DO UPDATE
        SET full_at = CAST(:now AS timestamptz) + {time_until_full_sql("excluded.share")} + excluded.share,
            share = excluded.share
        WHERE {time_until_full_sql("excluded.share")} + excluded.share
              <= CAST(:window AS interval) + interval '1 millisecond'  -- shares are rounded
        RETURNING address
    """)


async def charge_all_allowances_or_refuse(
    connection: Driver, statement: TextClause, parameters: Mapping[str, Any], count: int, *, now: datetime
) -> None:
    """Charge all counts of a `statement_that_charges_counts_with_room`, or none, in a transaction of its own.

    Raises `AllowanceExhausted`.
    """
    async with connection.transaction():
        times = {"now": now, "window": ALLOWANCE_WINDOW}
        charged_keys: list[bytes] = await fetch_first_column(connection, statement, {**parameters, **times})
        if len(charged_keys) < count:
            raise AllowanceExhausted(charged_keys)  # rolls back what was charged
