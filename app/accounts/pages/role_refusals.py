"""Refusals for lack of a role: they name the owners of the campaign to readers who may know its members."""

from contextlib import suppress

from fastapi import Request
from starlette.responses import Response

from app.accounts.access import Access
from app.accounts.guards import campaign_slug_in_url_or_none
from app.accounts.members import load_names_of_owners
from app.accounts.roles import ANOTHER_ROLE_HINT, GUEST, SEE_PEOPLE, RoleForbids
from app.database.session import DATABASE_ERRORS
from app.errors import join_names, shortened_names_that_message_shows
from app.http.dependencies import handle_refusal


def may_know_members(access: Access) -> bool:
    """Return whether a reader may know who else works on the campaign that the request names.

    Guests, read-only links and researchers without a role in the campaign may not, unless they see its people anyway.
    """
    is_known = access.user_id != 0 and access.role != GUEST
    return is_known and access.can_see_campaign and (access.member is not None or access.role_allows(SEE_PEOPLE))


async def handle_role_forbids(request: Request, error: Exception) -> Response:
    """Return the refusal, with the owners of the campaign if the reader may know them."""
    assert isinstance(error, RoleForbids)  # noqa: S101  (registered for this class only)
    slug, access = campaign_slug_in_url_or_none(request), getattr(request.state, "access", None)
    can_campaign_owner_help = error.message.endswith(ANOTHER_ROLE_HINT)
    if slug is None or access is None or not can_campaign_owner_help or not may_know_members(access):
        return await handle_refusal(request, error)
    owners: list[str] = []
    with suppress(*DATABASE_ERRORS):
        async with request.app.state.database.connect() as connection:
            owners = await load_names_of_owners(connection, slug)
    if not owners:
        return await handle_refusal(request, error)
    message = f"{error.message.removesuffix(ANOTHER_ROLE_HINT)}Ask an owner of this campaign: {join_names(owners)}."
    named = RoleForbids(message, code=error.code, owners=shortened_names_that_message_shows(owners))
    return await handle_refusal(request, named)
