"""Calls to the platform's service that a person waits for: what stands in their way, and what their failure means."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.service import CallRefused, PlatformService, ServiceFailure
from app.designs.campaign import Campaign
from app.errors import BadGateway, Conflict
from app.payments.connections import ServiceConnector, has_token, load_account_or_refuse

T = TypeVar("T")  # Python 3.11 has no other way


async def load_account_with_token_or_refuse(connection: AsyncConnection, campaign: Campaign) -> Row[Any]:
    """Return the account of a campaign. Raises `Conflict` (`no_budget`, `no_token`)."""
    account = await load_account_or_refuse(connection, campaign)
    if not has_token(account):
        raise Conflict(
            "Easel has no token to call the platform with. Enter one under Payments.",
            code="no_token",
        )
    return account


def service_with_token_of_account_or_refuse(connector: ServiceConnector, account: Row[Any]) -> PlatformService:
    """Return the service of an account. Raises `Conflict` (`service_refused`) if its token cannot be read."""
    try:
        return connector.service_with_token_of_account(account)
    except CallRefused as refused:
        raise Conflict(refused.message, code="service_refused") from None


async def call_service_or_refuse(make_call: Callable[[], Awaitable[T]], *, about: str = "the study") -> T:
    """Return what a call returns.

    Args:
        make_call: The call.
        about: What a person should look at on the platform if the outcome is unclear.

    Raises:
        Conflict: `service_refused`.
        BadGateway: `service_unavailable`.

    """
    try:
        return await make_call()
    except CallRefused as refused:
        raise Conflict(refused.message, code="service_refused") from None
    except ServiceFailure as failure:
        raise BadGateway(
            f"{failure.message} Look at {about} on the platform before you try again.", code="service_unavailable"
        ) from None
