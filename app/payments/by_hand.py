"""Payments that a person makes on the platform's own page, by a list for each study."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.payments.connections import load_account_or_refuse
from app.payments.ledger import LOCK_ACCOUNT, MADE_BY_HAND
from app.payments.sending import cancel_payments_of_erased_people

# Whether the money went is unknown until the researcher has uploaded the list. A payment that equals an unclear one
# waits: the platform's list could not tell the two apart.
TAKE_PREPARED_PAYMENTS_BY_HAND = text("""
    UPDATE payments p SET state = 'unknown', bulk_id = :by_hand, batch = :batch, sending_at = :now, problem = '',
        paid_before = NULL, looked_at = NULL, amounts_seen = NULL
    WHERE p.campaign_id = :campaign AND p.study = :study AND p.kind = 'bonus' AND p.state = 'prepared'
    AND NOT EXISTS (
        SELECT 1 FROM payments u WHERE u.campaign_id = p.campaign_id AND u.submission = p.submission
        AND u.kind = 'bonus' AND u.amount = p.amount AND u.state IN ('sending', 'unknown'))
    RETURNING p.id, p.submission, p.amount
""")

LIST_STUDIES_TO_PAY_BY_HAND = text("""
    SELECT study, count(*) AS number, sum(amount) AS amount FROM payments p
    WHERE campaign_id = :campaign AND kind = 'bonus' AND state = 'prepared' GROUP BY study ORDER BY study
""")

LIST_DOWNLOADED_LISTS = text("""
    SELECT study, batch, count(*) AS number, sum(amount) AS amount, min(sending_at) AS downloaded_at FROM payments
    WHERE campaign_id = :campaign AND state = 'unknown' AND bulk_id = :by_hand
    GROUP BY study, batch ORDER BY min(sending_at)
""")

LOAD_DOWNLOADED_LIST = text("""
    SELECT id, submission, amount FROM payments
    WHERE campaign_id = :campaign AND state = 'unknown' AND bulk_id = :by_hand AND batch = :batch ORDER BY id
""")


async def claim_payments_to_make_by_hand(
    connection: AsyncConnection, campaign: Campaign, study: str, *, now: datetime
) -> Sequence[Row[Any]]:
    """Return the prepared payments of a study for the platform's own page. From now on Easel does not send them.

    Raises:
        Conflict: `no_budget`, `nothing_to_pay`.

    """
    await load_account_or_refuse(connection, campaign)
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    await cancel_payments_of_erased_people(connection, campaign.id, now=now)
    parameters = {
        "campaign": campaign.id,
        "study": study,
        "by_hand": MADE_BY_HAND,
        "batch": secrets.token_hex(8),
        "now": now,
    }
    rows = sorted((await connection.execute(TAKE_PREPARED_PAYMENTS_BY_HAND, parameters)).all())
    if not rows:
        raise Conflict(
            "No payment of this study is prepared, or an earlier one of the same amount is unclear. Nothing was "
            "changed.",
            code="nothing_to_pay",
        )
    await log_change(connection, "payments.by_hand", campaign, about=str(len(rows)))
    return rows


async def load_payments_of_downloaded_list_or_refuse(
    connection: AsyncConnection, campaign: Campaign, batch: str
) -> Sequence[Row[Any]]:
    """Return a list that was downloaded before, without payments that a person decided about since.

    Raises:
        Conflict: `nothing_to_pay`.

    """
    parameters = {"campaign": campaign.id, "by_hand": MADE_BY_HAND, "batch": batch}
    rows = (await connection.execute(LOAD_DOWNLOADED_LIST, parameters)).all()
    if not rows:
        raise Conflict("All payments on this list were settled before. Nothing was changed.", code="nothing_to_pay")
    await log_change(connection, "payments.by_hand", campaign, about=str(len(rows)))
    return rows


async def list_studies_to_pay_by_hand(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return the studies with prepared payments, with their number and amount."""
    return (await connection.execute(LIST_STUDIES_TO_PAY_BY_HAND, {"campaign": campaign_id})).all()


async def list_downloaded_payment_lists(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return the lists that were downloaded and are not decided yet."""
    parameters = {"campaign": campaign_id, "by_hand": MADE_BY_HAND}
    return (await connection.execute(LIST_DOWNLOADED_LISTS, parameters)).all()
