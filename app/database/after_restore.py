"""What a database that was restored from a dump needs before it is served."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# A restored database holds ids that its own transactions have yet to reach; 3 is PostgreSQL's first id of all.
RESET_RESTORED_TRANSACTION_IDS = text("""
    UPDATE responses SET transaction_id = '3' WHERE transaction_id > (SELECT pg_current_xact_id())
""")


async def reset_restored_transaction_ids(connection: AsyncConnection) -> None:
    """Before a server starts: what a dump brought along was written before anything this database will write."""
    await connection.execute(RESET_RESTORED_TRANSACTION_IDS)
