"""Hold all calls of a restored database: calls of the backup may have been made after it."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

RESTORED_PROBLEM = "Restored from a backup: check at the platform whether this was counted."

HOLD_CALLS = text("""
    UPDATE server_calls SET state = 'unknown', attempt = NULL, problem = :problem
    WHERE state IN ('prepared', 'sending', 'unknown', 'failed') RETURNING id
""")


async def hold_server_calls_after_restore_and_count_them(database: AsyncEngine) -> int:
    """Let no call be made before a person repeats it, and return the number of calls that are held."""
    async with database.begin() as connection:
        return len((await connection.execute(HOLD_CALLS, {"problem": RESTORED_PROBLEM})).all())
