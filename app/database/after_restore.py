"""Repair of a database that was restored from a dump, before it is served."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# A restored database holds ids that its own transactions have yet to reach; 3 is PostgreSQL's first transaction id.
RESET_RESTORED_TRANSACTION_IDS = text("""
    UPDATE responses SET transaction_id = '3' WHERE transaction_id > (SELECT pg_current_xact_id())
""")


async def reset_restored_transaction_ids(connection: AsyncConnection) -> None:
    """Mark restored responses as older than everything that this database will write. Call before serving."""
    await connection.execute(RESET_RESTORED_TRANSACTION_IDS)
