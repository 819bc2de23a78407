"""What has changed since somebody looked.

Every response keeps the id of the transaction that wrote it, and all transactions below a snapshot's xmin are finished,
so reading from the last xmin on misses nothing. But a server that crashed gives out ids again, of transactions that
left no trace: never those up to an answer that was committed.
"""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Record

# A restored database holds ids that its own transactions have yet to reach; 3 is PostgreSQL's first id of all.
SETTLE_RESTORED = text("""
    UPDATE responses SET transaction_id = '3' WHERE transaction_id > (SELECT pg_current_xact_id())
""")

# Up to where everything has been read, and since when the server runs.
WATERMARK = """
    least(pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
          coalesce((SELECT transaction_id::text::bigint + 1 FROM responses ORDER BY transaction_id DESC LIMIT 1), 3))
    AS watermark, pg_postmaster_start_time() AS server_started"""


class News(Record):
    """What `changes` found: of no item, None."""

    revision: int
    watermark: int
    server_started: datetime
    new_numbers: list[int] | None
    new_scores: list[float] | None
    new_variances: list[float] | None
    new_judgments: list[int] | None


NEWS = tuple(name for name in News.__annotations__ if name != "revision")


def changes(*, campaign: str, revision: str, since: str) -> str:
    """SQL for what was written since a watermark, and the next watermark. Of another revision all is new.

    MATERIALIZED, so that no statistics can talk PostgreSQL into going through all responses of the campaign instead.
    """
    return f"""
    WITH recent AS MATERIALIZED (
        SELECT campaign_id, items FROM responses WHERE transaction_id >= CAST({since} AS xid8)
    ), changed AS (
        SELECT DISTINCT unnest(items) AS number FROM recent WHERE campaign_id = {campaign}
    )
    SELECT {WATERMARK}, array_agg(subject) AS new_numbers,
           array_agg(score) AS new_scores, array_agg(variance) AS new_variances, array_agg(judgments) AS new_judgments
    FROM posteriors WHERE campaign_id = {campaign} AND revision = {revision} AND criterion = 0
    AND subject = ANY (ARRAY(SELECT number FROM changed))"""  # noqa: S608  (made of constants)


OF_CAMPAIGN = changes(campaign="c.id", revision="c.revision", since="CAST(:since AS text)")

CHANGES = text(f"""
    SELECT c.revision, {", ".join(f"news.{name}" for name in NEWS)}
    FROM campaigns c, LATERAL ({OF_CAMPAIGN}) AS news WHERE c.id = :campaign
""")  # noqa: S608  (made of constants)


NOW = text(f"SELECT {WATERMARK}")


async def watermark(connection: AsyncConnection) -> int:
    """Up to where everything is read by whoever reads after this."""
    return int((await connection.execute(NOW)).one().watermark)


async def settle_restored(connection: AsyncConnection) -> None:
    """Before a server starts: what a dump brought along was written before anything this database will write."""
    await connection.execute(SETTLE_RESTORED)
