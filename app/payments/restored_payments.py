"""Hold all money of a restored database: payments of the backup may have been made after it."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

RESTORED_PROBLEM = "Restored from a backup: check at the platform whether this was paid."

# Whatever can still be sent, by a turn of the background work or by a person. `sending` may have been paid since.
# Rewards are settled by the status of their submissions, so no person has to look.
HOLD_PAYMENTS = text("""
    UPDATE payments SET problem = :problem, state = CASE state WHEN 'sending' THEN 'unknown' ELSE state END
    WHERE CASE kind WHEN 'bonus' THEN state IN ('prepared', 'sending', 'unknown', 'failed') ELSE state = 'sending' END
    RETURNING id
""")

# Approving pays, too, and the backup does not know whom researchers excluded after it.
STOP_PAYMENT_WORK = text("UPDATE payment_accounts SET send_through = 0, approves = false")


async def hold_payments_after_restore_and_count_them(database: AsyncEngine) -> int:
    """Let no payment be sent before a person sends it again, approve nothing, and return the number of payments that
    are held.
    """
    async with database.begin() as connection:
        held = (await connection.execute(HOLD_PAYMENTS, {"problem": RESTORED_PROBLEM})).all()
        await connection.execute(STOP_PAYMENT_WORK)
    return len(held)
