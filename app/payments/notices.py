"""Signed notices of the platform's service: each makes the campaign due."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import Forbidden
from app.payments.connections import ServiceConnector, find_account_by_hook_key_or_refuse, platform_service_of_account

MIN_TIME_BETWEEN_TURNS = timedelta(seconds=30)
TIME_NOTICES_ARE_KEPT = timedelta(days=7)  # the service repeats one for two days

STORE_NOTICE_ONCE = text("""
    INSERT INTO service_notices (campaign_id, event_id, received_at) VALUES (:campaign, :event, :now)
    ON CONFLICT DO NOTHING RETURNING event_id
""")
# One turn reads all submissions, so many notices at once make one turn.
MAKE_ACCOUNT_DUE_SOON = text("""
    UPDATE payment_accounts
    SET due_at = least(due_at, greatest(CAST(:now AS timestamptz), checked_at + CAST(:pause AS interval)))
    WHERE campaign_id = :campaign AND due_at IS NOT NULL
""")
DELETE_OLD_NOTICES = text("DELETE FROM service_notices WHERE campaign_id = :campaign AND received_at < :before")


async def make_campaign_due_by_notice_or_refuse(
    connection: AsyncConnection,
    connector: ServiceConnector,
    *,
    platform_name: str,
    hook_key: str,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
) -> None:
    """Make the campaign due at once, or half a minute after its last turn; each notice counts once.

    Its content is not read: the turn finds what changed.

    Raises:
        NotFound: No campaign has this address.
        Forbidden: `signature_wrong`.

    """
    account = await find_account_by_hook_key_or_refuse(connection, platform_name, hook_key)
    secret = connector.hook_secret_or_none(account)
    notice = platform_service_of_account(account).read_notice(secret, headers, body) if secret else None
    if notice is None:
        raise Forbidden("The signature of this notice is not valid.", code="signature_wrong")
    parameters = {"campaign": account.campaign_id, "event": notice.event_id[:200], "now": now}
    if (await connection.execute(STORE_NOTICE_ONCE, parameters)).one_or_none() is None:
        return
    await connection.execute(
        DELETE_OLD_NOTICES, {"campaign": account.campaign_id, "before": now - TIME_NOTICES_ARE_KEPT}
    )
    soon = {"campaign": account.campaign_id, "now": now, "pause": MIN_TIME_BETWEEN_TURNS}
    await connection.execute(MAKE_ACCOUNT_DUE_SOON, soon)
