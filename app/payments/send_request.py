"""Requests of people to send the prepared bonuses."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.payments.connections import has_token, load_account_or_refuse
from app.payments.ledger import LOCK_ACCOUNT
from app.payments.money import money_text
from app.payments.sending import cancel_payments_of_erased_people

LOAD_PREPARED_BONUSES = text("""
    SELECT coalesce(max(id), 0) AS through, coalesce(sum(amount), 0) AS amount, count(*) AS number FROM payments
    WHERE campaign_id = :campaign AND kind = 'bonus' AND state = 'prepared'
""")
REQUEST_SENDING = text("""
    UPDATE payment_accounts SET due_at = :now, send_through = greatest(send_through, CAST(:through AS bigint))
    WHERE campaign_id = :campaign
""")


@dataclass(frozen=True)
class ShownPayments:
    """The prepared bonuses that a person saw: the highest id, and the total in hundredths."""

    through: int
    amount: int


@dataclass(frozen=True)
class PreparedBonuses(ShownPayments):
    """The prepared bonuses as they are now."""

    count: int


async def request_sending_of_prepared_payments_or_refuse(
    connection: AsyncConnection, campaign: Campaign, *, shown_payments: ShownPayments | None = None, now: datetime
) -> None:
    """Let the background work send all bonuses that are prepared now.

    Args:
        connection: A connection in a transaction.
        campaign: The campaign.
        shown_payments: What the person saw of them; None: they want all, whatever they are.
        now: The time.

    Raises:
        Conflict: `no_budget`, `no_token`, `payments_changed`: they differ from what was shown.

    """
    account = await load_account_or_refuse(connection, campaign)
    if not has_token(account):
        raise Conflict(
            "Easel has no token to send payments with. Enter one, or pay by hand. Nothing was sent.", code="no_token"
        )
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    await cancel_payments_of_erased_people(connection, campaign.id, now=now)
    prepared = await load_prepared_bonuses(connection, campaign.id)
    if shown_payments is not None and (shown_payments.through, shown_payments.amount) != (
        prepared.through,
        prepared.amount,
    ):
        raise Conflict(
            "The payments have changed since you loaded the page, so nothing was sent. Check them again: "
            f"{money_text(prepared.amount, account.currency)} can be sent now.",
            code="payments_changed",
            through=prepared.through,
            amount=prepared.amount,
        )
    parameters = {"campaign": campaign.id, "now": now, "through": prepared.through}
    await connection.execute(REQUEST_SENDING, parameters)
    await log_change(
        connection,
        "payments.send",
        campaign,
        about=str(prepared.count),
        new_values={"amount": money_text(prepared.amount, account.currency)},
    )


async def load_prepared_bonuses(connection: AsyncConnection, campaign_id: int) -> PreparedBonuses:
    row = (await connection.execute(LOAD_PREPARED_BONUSES, {"campaign": campaign_id})).one()
    return PreparedBonuses(row.through, int(row.amount), row.number)
