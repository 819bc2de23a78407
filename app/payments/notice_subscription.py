"""The subscription to the notices of the platform's service: begun and ended by a person, and looked after.

The secret of the signatures is stored before the service is told to send anything. A subscription to the campaign's
address that an interrupted try left is ended before a new one is made.
"""

from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.service import CallRefused, PlatformService, ServiceFailure, Subscription
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.payments.connections import ServiceConnector
from app.payments.service_calls import (
    call_service_or_refuse,
    load_account_with_token_or_refuse,
    service_with_token_of_account_or_refuse,
)

NOTICES = "your subscriptions"

LOAD_SUBSCRIPTION = text("SELECT hook_subscription FROM payment_accounts WHERE campaign_id = :campaign")
STORE_NOTICE_SECRET = text("UPDATE payment_accounts SET hook_secret = :secret WHERE campaign_id = :campaign")
# If two people subscribe at once, one is told that there is a subscription.
STORE_SUBSCRIPTION_ONCE = text("""
    UPDATE payment_accounts SET hook_subscription = :subscription, hook_problem = ''
    WHERE campaign_id = :campaign AND hook_subscription = '' RETURNING campaign_id
""")
REPLACE_SUBSCRIPTION = text("""
    UPDATE payment_accounts SET hook_subscription = :subscription, hook_problem = ''
    WHERE campaign_id = :campaign AND hook_subscription = :replaced RETURNING campaign_id
""")
CLEAR_SUBSCRIPTION = text("""
    UPDATE payment_accounts SET hook_subscription = '', hook_problem = '', hook_secret = NULL
    WHERE campaign_id = :campaign AND hook_subscription = :subscription
""")
STORE_PROBLEM_OF_SUBSCRIPTION = text("""
    UPDATE payment_accounts SET hook_problem = :problem
    WHERE campaign_id = :campaign AND hook_subscription = :subscription
""")
SUBSCRIPTION_IS_DISABLED = (
    "The platform has disabled the notices, because it could not deliver them for days. End the notices and subscribe "
    "again once the server can be reached."
)
SUBSCRIPTION_IS_GONE = "The platform no longer has the subscription to notices. End it, then subscribe again."


def notice_address(base_url: str, account: Row[Any]) -> str:
    """Return the address that gets the notices of a campaign's account."""
    return f"{base_url}{PLATFORMS[account.platform].entry_path('hook')}/{account.hook_key}"


async def subscribe_to_notices_or_refuse(
    database: AsyncEngine, connector: ServiceConnector, campaign: Campaign, base_url: str
) -> None:
    """Let the platform send a signed notice whenever a submission changes.

    Raises:
        Conflict: `no_budget`, `no_token`, `address_not_https`, `subscribed_already`, `service_refused`.
        BadGateway: `service_unavailable`.

    """
    async with database.begin() as connection:
        account = await load_account_with_token_or_refuse(connection, campaign)
    if account.hook_subscription:
        raise subscribed_already_error()
    if not base_url.startswith("https://"):
        raise Conflict(
            f"The platform sends notices only to https:// addresses, but this server is at {base_url}. Set its public "
            "address first (EASEL_PUBLIC_URL). Nothing was changed.",
            code="address_not_https",
        )
    address = notice_address(base_url, account)
    service = service_with_token_of_account_or_refuse(connector, account)
    secret = await call_service_or_refuse(
        lambda: service.load_or_create_notice_secret(account.workspace), about=NOTICES
    )
    async with database.begin() as connection:
        parameters = {"campaign": campaign.id, "secret": connector.cipher.encrypt(secret)}
        await connection.execute(STORE_NOTICE_SECRET, parameters)
    await call_service_or_refuse(lambda: end_earlier_subscriptions(service, account, address), about=NOTICES)
    subscription = await call_service_or_refuse(
        lambda: service.subscribe_to_submissions_and_return_id(account.workspace, address), about=NOTICES
    )
    async with database.begin() as connection:
        stored = {"campaign": campaign.id, "subscription": subscription}
        is_stored = (await connection.execute(STORE_SUBSCRIPTION_ONCE, stored)).one_or_none() is not None
        if is_stored:
            await log_change(connection, "payments.notices_begun", campaign)
    if not is_stored:
        await keep_one_of_two_subscriptions(database, service, account, subscription)
        raise subscribed_already_error()


async def keep_one_of_two_subscriptions(
    database: AsyncEngine, service: PlatformService, account: Row[Any], subscription: str
) -> None:
    """End a subscription that another person's came before, or store it if it has ended the other one.

    Raises:
        Conflict: `service_refused`.
        BadGateway: `service_unavailable`.

    """
    subscriptions = await call_service_or_refuse(lambda: service.list_subscriptions(account.workspace), about=NOTICES)
    async with database.begin() as connection:
        first = (await connection.execute(LOAD_SUBSCRIPTION, {"campaign": account.campaign_id})).scalar_one()
        if first == subscription:
            return
        if first not in {row.id for row in subscriptions}:
            parameters = {"campaign": account.campaign_id, "subscription": subscription, "replaced": first}
            if (await connection.execute(REPLACE_SUBSCRIPTION, parameters)).one_or_none() is not None:
                return
    await call_service_or_refuse(lambda: end_subscription_unless_it_is_gone(service, subscription), about=NOTICES)


def subscribed_already_error() -> Conflict:
    return Conflict(
        "The platform already sends notices to this campaign. Nothing was changed.", code="subscribed_already"
    )


async def end_earlier_subscriptions(service: PlatformService, account: Row[Any], address: str) -> None:
    """End the subscriptions to this address. Raises `ServiceFailure`."""
    for subscription in await service.list_subscriptions(account.workspace):
        if subscription.address == address:
            await service.end_subscription(subscription.id)


async def end_notices_or_refuse(database: AsyncEngine, connector: ServiceConnector, campaign: Campaign) -> None:
    """Let the platform send no more notices, and forget the secret of their signatures.

    Raises:
        Conflict: `no_budget`, `no_token`, `not_subscribed`, `service_refused`.
        BadGateway: `service_unavailable`.

    """
    async with database.begin() as connection:
        account = await load_account_with_token_or_refuse(connection, campaign)
    if not account.hook_subscription:
        raise Conflict("There is no subscription to notices. Nothing was changed.", code="not_subscribed")
    service = service_with_token_of_account_or_refuse(connector, account)
    await call_service_or_refuse(
        lambda: end_subscription_unless_it_is_gone(service, account.hook_subscription), about=NOTICES
    )
    async with database.begin() as connection:
        parameters = {"campaign": campaign.id, "subscription": account.hook_subscription}
        await connection.execute(CLEAR_SUBSCRIPTION, parameters)
        await log_change(connection, "payments.notices_ended", campaign)


async def end_subscription_unless_it_is_gone(service: PlatformService, subscription: str) -> None:
    """End a subscription. Raises `ServiceFailure`."""
    try:
        await service.end_subscription(subscription)
    except CallRefused as refused:
        if refused.status != 404:
            raise


async def list_workspace_subscriptions_and_own_id(
    database: AsyncEngine, connector: ServiceConnector, campaign: Campaign
) -> tuple[list[Subscription], str]:
    """Return the subscriptions of the campaign's workspace, and the id of the campaign's own; empty if it has none.

    Raises:
        Conflict: `no_budget`, `no_token`, `service_refused`.
        BadGateway: `service_unavailable`.

    """
    async with database.begin() as connection:
        account = await load_account_with_token_or_refuse(connection, campaign)
    service = service_with_token_of_account_or_refuse(connector, account)
    found = await call_service_or_refuse(lambda: service.list_subscriptions(account.workspace), about=NOTICES)
    return found, account.hook_subscription


async def check_subscription_and_store_problem(
    database: AsyncEngine, service: PlatformService, account: Row[Any]
) -> None:
    """Store a problem if the service disabled or lost the campaign's subscription. What it does not tell stays."""
    if not account.hook_subscription:
        return
    try:
        subscriptions = await service.list_subscriptions(account.workspace)
    except ServiceFailure:
        return
    found = [one for one in subscriptions if one.id == account.hook_subscription]
    problem = "" if found and found[0].is_enabled else SUBSCRIPTION_IS_DISABLED if found else SUBSCRIPTION_IS_GONE
    async with database.begin() as connection:
        parameters = {
            "campaign": account.campaign_id,
            "subscription": account.hook_subscription,
            "problem": problem,
        }
        await connection.execute(STORE_PROBLEM_OF_SUBSCRIPTION, parameters)
