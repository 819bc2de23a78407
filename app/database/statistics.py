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


async def analyze_tables_with_many_new_rows(
    connection: AsyncConnection, tables: Sequence[Table], *, added_count: int
) -> None:
    """Renew the statistics of the tables for which that pays, after this transaction added rows to each."""
    names = [table.name for table in tables]
    outdated = await connection.scalars(FIND_TABLES_WITH_OLD_STATISTICS, {"tables": names, "added": added_count})
    if outdated_names := outdated.all():
        await connection.execute(text(f"ANALYZE {', '.join(outdated_names)}"))
