"""What somebody who asks may do and see: as a researcher, by a token, or by a read-only link."""

from dataclasses import dataclass, replace
from typing import Self

from sqlalchemy import ColumnElement, exists, func, true

from app.auth.roles import (
    IN_CAMPAIGN,
    OF_NO_CAMPAIGN,
    SCOPE_OF,
    SEE,
    gives,
    grants,
    role_forbids,
    scope_forbids,
    stronger,
)
from app.database.sharing_tables import campaign_members
from app.database.tables import campaigns
from app.errors import Forbidden

# A rehearsal is reached by whoever reaches its campaign.
SHARED_AS = func.coalesce(campaigns.c.rehearsal_of, campaigns.c.id)


@dataclass(frozen=True)
class Access:
    """Of one request.

    user_id: a row's, 0 for whoever came by a read-only link. role: for the whole server. member: their role in the
    campaign that the request names. scopes: of a token; None for who is logged in. only: the one campaign of a token,
    by its row's id. reaches: whether that is the one which the request names, if it names one.
    """

    user_id: int
    role: str
    member: str | None = None
    scopes: tuple[str, ...] | None = None
    only: int | None = None
    reaches: bool = True

    def may(self, need: str) -> bool:
        """Whether their roles allow it, and the token's scopes."""
        return self.allowed(need) and (self.scopes is None or SCOPE_OF.get(need) in self.scopes)

    def allowed(self, need: str) -> bool:
        """Whether their roles allow it."""
        return need in grants(self.role, self.member) and not (self.only is not None and need in OF_NO_CAMPAIGN)

    @property
    def sees(self) -> bool:
        """Whether the campaign that the request names is there for them."""
        return self.reaches and self.allowed(SEE)

    @property
    def role_here(self) -> str:
        """What they are called in the campaign that the request names, or on the server."""
        everywhere = self.role if self.role in IN_CAMPAIGN else None
        return stronger(self.member, everywhere or self.member) if self.member else self.role

    def in_campaign(self, member: str | None) -> Self:
        """The same in a campaign in which they have this role."""
        return replace(self, member=member)


def require_need(who: Access, need: str) -> None:
    """Raises `Forbidden`: `role_forbids`, `token_of_one_campaign`, `scope_forbids`."""
    if who.may(need):
        return
    if who.only is not None and need in OF_NO_CAMPAIGN & grants(who.role, who.member):
        raise Forbidden(
            "This token is for one campaign, and this is about the whole server. Nothing was changed.",
            code="token_of_one_campaign",
        )
    if who.scopes is not None and who.allowed(need):
        raise scope_forbids(list(who.scopes), need)
    raise role_forbids(who.role_here, need)


def visible(who: Access | None, need: str = SEE) -> ColumnElement[bool]:
    """SQL: the rows of `campaigns` of which somebody may do what has this need; None for who may do everything."""
    if who is None:
        return true()
    theirs = campaign_members.c
    of_them = (theirs.campaign_id == SHARED_AS, theirs.user_id == who.user_id)
    found = true() if need in grants(who.role) else exists().where(*of_them, theirs.role.in_(gives(need)))
    return found if who.only is None else found & (who.only == SHARED_AS)
