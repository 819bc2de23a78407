"""Access of a request: what a researcher, an API token or a read-only link may do and see."""

from dataclasses import dataclass, replace
from typing import Self

from sqlalchemy import ColumnElement, exists, func, true

from app.accounts.roles import (
    NEEDS_BY_CAMPAIGN_ROLE,
    SCOPE_BY_NEED,
    SEE_CAMPAIGN,
    SERVER_NEEDS,
    campaign_roles_allowing,
    needs_granted_by_roles,
    role_forbids_error,
    scope_forbids_error,
    server_role_forbids_error,
    stronger_role,
)
from app.database.sharing_tables import campaign_members
from app.database.tables import campaigns
from app.errors import Forbidden

# A rehearsal is shared with the people of its campaign.
SHARING_CAMPAIGN_ID = func.coalesce(campaigns.c.rehearsal_of, campaigns.c.id)


@dataclass(frozen=True)
class Access:
    """Access of one request.

    Attributes:
        user_id: The researcher's id; 0 for a read-only link.
        role: Role for the whole server.
        member: Role in the campaign that the request names; None without one.
        scopes: Scopes of the token; None for a researcher who is logged in.
        only_campaign_id: The only campaign of the token; None for all campaigns.
        token_reaches_campaign: Whether the token is valid for the campaign that the request names, if it names one.

    """

    user_id: int
    role: str
    member: str | None = None
    scopes: tuple[str, ...] | None = None
    only_campaign_id: int | None = None
    token_reaches_campaign: bool = True

    def can(self, need: str) -> bool:
        """Return whether the roles and the token's scopes allow the need."""
        return self.role_allows(need) and (self.scopes is None or SCOPE_BY_NEED.get(need) in self.scopes)

    def role_allows(self, need: str) -> bool:
        return need in needs_granted_by_roles(self.role, self.member) and not (
            self.only_campaign_id is not None and need in SERVER_NEEDS
        )

    @property
    def can_see_campaign(self) -> bool:
        """Whether the campaign that the request names is visible."""
        return self.token_reaches_campaign and self.role_allows(SEE_CAMPAIGN)

    @property
    def effective_role(self) -> str:
        """Role in the campaign that the request names, or on the server."""
        server_role = self.role if self.role in NEEDS_BY_CAMPAIGN_ROLE else None
        return stronger_role(self.member, server_role or self.member) if self.member else self.role

    def with_member_role(self, role: str | None) -> Self:
        """Return the same access with this role in the campaign."""
        return replace(self, member=role)


def require_need(access: Access, need: str) -> None:
    """Raise `Forbidden` (`role_forbids`, `token_of_one_campaign`, `scope_forbids`) unless access allows it."""
    if access.can(need):
        return
    if access.only_campaign_id is not None and need in SERVER_NEEDS & needs_granted_by_roles(
        access.role, access.member
    ):
        raise Forbidden(
            "Your token is for one campaign only, but this needs a token for the whole server. Nothing was changed.",
            code="token_of_one_campaign",
        )
    if access.scopes is not None and access.role_allows(need):
        raise scope_forbids_error(list(access.scopes), need)
    if need in NEEDS_BY_CAMPAIGN_ROLE.get(access.member or "", set()):
        raise server_role_forbids_error(access.role, need)
    raise role_forbids_error(access.effective_role, need)


def visible_campaigns_sql_condition(access: Access | None, need: str = SEE_CAMPAIGN) -> ColumnElement[bool]:
    """Return an SQL condition for the rows of `campaigns` where the access allows the need; all rows if `access` is
    None.
    """
    if access is None:
        return true()
    member_columns = campaign_members.c
    is_member = (member_columns.campaign_id == SHARING_CAMPAIGN_ID, member_columns.user_id == access.user_id)
    condition = (
        true()
        if need in needs_granted_by_roles(access.role)
        else exists().where(*is_member, member_columns.role.in_(campaign_roles_allowing(need)))
    )
    return (
        condition if access.only_campaign_id is None else condition & (access.only_campaign_id == SHARING_CAMPAIGN_ID)
    )
