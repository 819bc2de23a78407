"""API: a token for a name and password."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints

from app.auth import login, passwords, tokens
from app.auth.access import Access
from app.auth.roles import SCOPES
from app.database.audit_log import ACTING, Actor
from app.web import Database, Now, address_of, refusals

router = APIRouter(prefix="/api/v1", tags=["Tokens"])


# A length also makes Pydantic look whether a text is one that UTF-8 can say.
Words = Annotated[str, StringConstraints(max_length=200)]


class Credentials(BaseModel):
    name: Words = Field(description="Login name.")
    password: Annotated[str, StringConstraints(max_length=passwords.LONGEST)]
    token_name: Words = Field(default="API", description="What the token is for; shown on the account page.")
    scopes: list[Literal[tuple(SCOPES)]] = Field(  # type: ignore[valid-type]
        default=list(SCOPES),
        max_length=len(SCOPES),
        description="What it may be used for, as far as your role allows it: `read`, `collect` (get HITs and answer "
        "them), `manage` (change and create).",
    )
    campaign: Words | None = Field(default=None, description="The one campaign that it is for, by its slug.")


class Token(BaseModel):
    token: str = Field(description="Send it as `Authorization: Bearer TOKEN`. It is not shown again.")


@router.post(
    "/tokens",
    status_code=201,
    responses=refusals(
        {
            401: "`wrong_password`",
            404: "`campaign_not_found`",
            422: "`invalid`, `token_name_invalid`, `scope_unknown`",
            429: "`too_many_attempts`; `details.retry_after_seconds` says how long to wait",
        }
    ),
)
async def create_token(request: Request, database: Database, now: Now, credentials: Credentials) -> Token:
    """Make an API token. Tokens last until they are revoked on the account page."""
    address = address_of(request)
    user = await login.authenticated(database, credentials.name, credentials.password, address, now=now)
    ACTING.set(Actor(user.name, "api", user.id))
    async with database.begin() as connection:
        who, slug = Access(user.id, user.role), credentials.campaign
        campaign = None if slug is None else await tokens.campaign_for_token(connection, who, slug)
        return Token(
            token=await tokens.create_api_token(
                connection, user.id, credentials.token_name, now=now, scopes=credentials.scopes, campaign=campaign
            )
        )
