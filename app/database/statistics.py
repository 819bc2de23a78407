"""Statistics for PostgreSQL's planner after many new rows: without them it plans badly until autovacuum runs."""

from collections.abc import Sequence

from sqlalchemy import Table, text
from sqlalchemy.ext.asyncio import AsyncConnection

# As autovacuum decides, but at once: more than 50 rows and a tenth of the table are new since the last statistics.
# Rows of the present transaction are not counted yet, so the caller says how many it added.
FIND_TABLES_WITH_OLD_STATISTICS = text("""
    SELECT relname FROM pg_class
    WHERE oid = ANY(CAST(CAST(:tables AS text[]) AS regclass[]))
    AND :added + coalesce(pg_stat_get_mod_since_analyze(oid), 0) > 50 + greatest(reltuples, 0) / 10
    ORDER BY relname
""")


# PostgreSQL otherwise reports them up to a second later: after the next `ANALYZE`, they would count as new again.
REPORT_CHANGES_AT_COMMIT = text("SELECT pg_stat_force_next_flush()")


async def flush_table_statistics_at_commit(connection: AsyncConnection) -> None:
    """Let PostgreSQL count the rows that this transaction changes as soon as it commits."""
    await connection.execute(REPORT_CHANGES_AT_COMMIT)


async def analyze_tables_with_many_new_rows(
    connection: AsyncConnection, tables: Sequence[Table], *, added_count: int
) -> None:
    """Renew the statistics of the tables for which that pays.

    Args:
        connection: A connection in a transaction.
        tables: The tables.
        added_count: How many rows this transaction has added to each.

    """
    names = [table.name for table in tables]
    outdated = await connection.scalars(FIND_TABLES_WITH_OLD_STATISTICS, {"tables": names, "added": added_count})
    if outdated_names := outdated.all():
        await connection.execute(text(f"ANALYZE {', '.join(outdated_names)}"))
