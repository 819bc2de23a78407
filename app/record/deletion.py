"""Delete a campaign with its whole record."""

from sqlalchemy import delete, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns
from app.errors import Conflict
from app.record.law_storage import TAKE_STORE_LOCK

# Holds the account first, so that no payment is added meanwhile.
LOCK_ACCOUNT_OF_PAYMENTS = text("SELECT 1 FROM payment_accounts WHERE campaign_id = :campaign FOR UPDATE")
HAS_UNSETTLED_PAYMENTS = text("""
    SELECT EXISTS (SELECT 1 FROM payments
                   WHERE campaign_id = :campaign AND state IN ('prepared', 'sending', 'unknown'))
""")

HAS_UNSETTLED_SERVER_CALLS = text("""
    SELECT EXISTS (SELECT 1 FROM server_calls
                   WHERE campaign_id = :campaign AND state IN ('prepared', 'sending', 'unknown'))
""")


async def has_unsettled_payments(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether money is owed, or may have been sent, that only this campaign knows of."""
    key = {"campaign": campaign_id}
    await connection.execute(LOCK_ACCOUNT_OF_PAYMENTS, key)
    return bool((await connection.execute(HAS_UNSETTLED_PAYMENTS, key)).scalar_one())


async def has_unsettled_server_calls(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether people may lack the credit that a call to their platform gives."""
    return bool((await connection.execute(HAS_UNSETTLED_SERVER_CALLS, {"campaign": campaign_id})).scalar_one())


async def refuse_deletion_while_payments_or_calls_are_unsettled(connection: AsyncConnection, campaign_id: int) -> None:
    """Raise `Conflict`: `payments_unsettled` if `has_unsettled_payments`; `calls_unsettled` likewise."""
    if await has_unsettled_payments(connection, campaign_id):
        raise Conflict(
            "Payments of this campaign are not sent yet, or it is unclear whether they were. Send or cancel them on "
            "the Payments page, and approve or reject the submissions that wait, then delete the campaign. Nothing "
            "was changed.",
            code="payments_unsettled",
        )
    if await has_unsettled_server_calls(connection, campaign_id):
        raise Conflict(
            "Calls to the platform of this campaign’s annotators are not made yet, or it is unclear whether they were "
            "counted. Settle or cancel them on the page Calls to the platform, then delete the campaign. Nothing was "
            "changed.",
            code="calls_unsettled",
        )


async def delete_campaign_and_all_its_data_or_refuse(connection: AsyncConnection, campaign_id: int) -> None:
    """Delete a campaign, its rehearsal and all of their data. Waits for answers that are being stored.

    Raises:
        Conflict: `payments_unsettled`, `calls_unsettled`.

    """
    await refuse_deletion_while_payments_or_calls_are_unsettled(connection, campaign_id)
    conditions = campaigns.c.id == campaign_id, campaigns.c.rehearsal_of == campaign_id
    for erased_id in list(
        await connection.scalars(select(campaigns.c.id).where(or_(*conditions)).order_by(campaigns.c.id))
    ):
        await connection.execute(TAKE_STORE_LOCK, {"campaign": erased_id})
    await connection.execute(delete(campaigns).where(campaigns.c.id == campaign_id))
