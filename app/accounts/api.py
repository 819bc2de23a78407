"""API: create an API token with a name and password, and read the audit log."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field, StringConstraints

from app.accounts import log_query, login, passwords, tokens
from app.accounts.access import Access
from app.accounts.guards import program_router
from app.accounts.log_query import AuditLogQuery
from app.accounts.roles import NEEDS_BY_SCOPE
from app.database.audit_log import CURRENT_ACTOR, Actor
from app.designs.field_flags import RequestBody
from app.http.dependencies import Database, Now, Transaction, client_network_or_empty, openapi_description_of_refusals
from app.http.paging import Page
from app.http.request_problems import require_known_names_once
from app.record.campaign import load_campaign_by_slug_or_refuse

router = APIRouter(prefix="/api/v1", tags=["Tokens"], dependencies=[Depends(require_known_names_once)])


# A maximum length also makes Pydantic refuse text that UTF-8 cannot encode.
CredentialText = Annotated[str, StringConstraints(max_length=200)]


class Credentials(RequestBody):
    name: CredentialText = Field(description="Login name.")
    password: Annotated[str, StringConstraints(max_length=passwords.MAX_PASSWORD_CHARACTERS)]
    token_name: CredentialText = Field(default="API", description="What the token is for; shown on the account page.")
    scopes: list[Literal[tuple(NEEDS_BY_SCOPE)]] = Field(  # type: ignore[valid-type]
        default=list(NEEDS_BY_SCOPE),
        max_length=len(NEEDS_BY_SCOPE),
        description="What the token may do, as far as your role allows it: `read`, `collect` (get HITs and answer "
        "them), `manage` (change and create).",
    )
    campaign: CredentialText | None = Field(
        default=None, description="Slug of the only campaign that the token is for."
    )


class Token(BaseModel):
    token: str = Field(description="Send it as `Authorization: Bearer TOKEN`. It is not shown again.")


@router.post(
    "/tokens",
    status_code=201,
    responses=openapi_description_of_refusals(
        {
            401: "`wrong_password`",
            404: "`campaign_not_found`",
            422: "`invalid`, `token_name_invalid`, `scope_unknown`",
            429: "`too_many_attempts`; `details.retry_after_seconds` says how long to wait",
        }
    ),
)
async def create_token(request: Request, database: Database, now: Now, credentials: Credentials) -> Token:
    """Create an API token. Tokens last until you revoke them on your account page."""
    address = client_network_or_empty(request)
    user = await login.authenticate_user_by_password_or_refuse(
        database, credentials.name, credentials.password, address, now=now
    )
    CURRENT_ACTOR.set(Actor(user.name, "api", user.id))
    async with database.begin() as connection:
        access, slug = Access(user.id, user.role), credentials.campaign
        campaign = None if slug is None else await tokens.find_visible_campaign_or_refuse(connection, access, slug)
        return Token(
            token=await tokens.issue_token_or_refuse(
                connection, user.id, credentials.token_name, now=now, scopes=credentials.scopes, campaign=campaign
            )
        )


log_router = program_router("/api/v1", "Audit log")


class Line(BaseModel):
    """A change, as the transaction that made it wrote it down."""

    at: datetime
    who: str = Field(description="A login name; it stays when the researcher is removed.")
    way: str = Field(description="page, api, command or server: where it was done.")
    campaign: str | None = Field(description="The slug of the campaign, if the change is in one.")
    action: str = Field(description="The action, such as `settings.changed`.")
    about: str
    before: dict[str, Any] | None = Field(description="Old values by name.")
    after: dict[str, Any] | None = Field(description="New values by name.")


class Lines(BaseModel):
    total: int
    lines: list[Line]

    @classmethod
    def from_log_page(cls, log_page: Page[Any]) -> Self:
        lines = [{"at": row.noted_at} | row._asdict() for row in log_page.rows]
        return cls.model_validate({"total": log_page.total, "lines": lines})


class LogApiQuery(AuditLogQuery):
    """The query of a program, which chooses the length of a page, too."""

    size: int = Field(default=100, ge=1, le=1000, description="Lines per page.")


@log_router.get("/log")
async def get_log(connection: Transaction, query: Annotated[LogApiQuery, Query()]) -> Lines:
    """Return the changes on the whole server, newest first."""
    return Lines.from_log_page(await log_query.load_log_page(connection, query, page_size=query.size))


@log_router.get("/campaigns/{slug}/log", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def get_log_of_campaign(connection: Transaction, slug: str, query: Annotated[LogApiQuery, Query()]) -> Lines:
    """Return the changes in a campaign, newest first."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return Lines.from_log_page(await log_query.load_log_page(connection, query, campaign.id, query.size))
