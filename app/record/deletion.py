"""Delete a campaign with its whole record."""

from sqlalchemy import delete, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.cluster import coordinator_tables_of_campaigns
from app.database.content_tables import item_versions
from app.database.tables import campaigns, decisions, posteriors, responses
from app.errors import Conflict
from app.record.law_storage import TAKE_STORE_LOCK

# Holds the account first, so that no payment is added meanwhile.
LOCK_ACCOUNT_OF_PAYMENTS = text("SELECT 1 FROM payment_accounts WHERE campaign_id = :campaign FOR UPDATE")
HAS_UNSETTLED_PAYMENTS = text("""
    SELECT EXISTS (SELECT 1 FROM payments
                   WHERE campaign_id = :campaign AND state IN ('prepared', 'sending', 'unknown'))
""")

COUNT_FAILED_PAYMENTS_AND_CALLS = text("""
    SELECT (SELECT count(*) FROM payments WHERE campaign_id = :campaign AND state = 'failed') AS payments,
        (SELECT count(*) FROM server_calls WHERE campaign_id = :campaign AND state = 'failed') AS calls
""")

HAS_UNSETTLED_SERVER_CALLS = text("""
    SELECT EXISTS (SELECT 1 FROM server_calls
                   WHERE campaign_id = :campaign AND state IN ('prepared', 'sending', 'unknown'))
""")


async def has_unsettled_payments(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether money is owed, or may have been sent, that only this campaign knows of."""
    return bool((await connection.execute(HAS_UNSETTLED_PAYMENTS, {"campaign": campaign_id})).scalar_one())


async def has_unsettled_server_calls(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether people may lack the credit that a call to their platform gives."""
    return bool((await connection.execute(HAS_UNSETTLED_SERVER_CALLS, {"campaign": campaign_id})).scalar_one())


async def count_failed_payments_and_calls(connection: AsyncConnection, campaign_id: int) -> tuple[int, int]:
    """Return the numbers of payments and calls that failed for certain: people may lack these, and nothing waits."""
    row = (await connection.execute(COUNT_FAILED_PAYMENTS_AND_CALLS, {"campaign": campaign_id})).one()
    return row.payments, row.calls


async def unsettled_payments_or_calls_error_or_none(connection: AsyncConnection, campaign_id: int) -> Conflict | None:
    """Return why a campaign cannot be deleted yet: `payments_unsettled`, `calls_unsettled`, or None."""
    if await has_unsettled_payments(connection, campaign_id):
        return Conflict(
            "Payments of this campaign are not sent yet, or it is unclear whether they were. Send or cancel them on "
            "the Payments page, and approve or reject the submissions that wait, then delete the campaign. Nothing "
            "was changed.",
            code="payments_unsettled",
        )
    if await has_unsettled_server_calls(connection, campaign_id):
        return Conflict(
            "Calls to the platform of this campaign’s annotators are not made yet, or it is unclear whether they were "
            "counted. Settle or cancel them on the page Calls to the platform, then delete the campaign. Nothing was "
            "changed.",
            code="calls_unsettled",
        )
    return None


async def delete_campaign_and_all_its_data_or_refuse(connection: AsyncConnection, campaign_id: int) -> None:
    """Delete a campaign, its rehearsal and all of their data. Waits for answers that are being stored in the rehearsal.

    The caller must hold `revisions.block_answers_until_transaction_ends` for the campaign.

    Raises:
        Conflict: `payments_unsettled`, `calls_unsettled`.

    """
    await connection.execute(LOCK_ACCOUNT_OF_PAYMENTS, {"campaign": campaign_id})
    if error := await unsettled_payments_or_calls_error_or_none(connection, campaign_id):
        raise error
    conditions = campaigns.c.id == campaign_id, campaigns.c.rehearsal_of == campaign_id
    for erased_id in list(
        await connection.scalars(select(campaigns.c.id).where(or_(*conditions)).order_by(campaigns.c.id))
    ):
        await connection.execute(TAKE_STORE_LOCK, {"campaign": erased_id})
        for table in (decisions, responses, posteriors, item_versions, *coordinator_tables_of_campaigns()):
            await connection.execute(delete(table).where(table.c.campaign_id == erased_id))
    await connection.execute(delete(campaigns).where(or_(*conditions)))
