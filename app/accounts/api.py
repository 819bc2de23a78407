"""API: create an API token with a name and password."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints

from app.accounts import login, passwords, tokens
from app.accounts.access import Access
from app.accounts.roles import NEEDS_BY_SCOPE
from app.database.audit_log import CURRENT_ACTOR, Actor
from app.http.dependencies import Database, Now, client_network, document_refusals

router = APIRouter(prefix="/api/v1", tags=["Tokens"])


# A maximum length also makes Pydantic refuse text that UTF-8 cannot encode.
CredentialText = Annotated[str, StringConstraints(max_length=200)]


class Credentials(BaseModel):
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
    responses=document_refusals(
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
    address = client_network(request)
    user = await login.authenticate(database, credentials.name, credentials.password, address, now=now)
    CURRENT_ACTOR.set(Actor(user.name, "api", user.id))
    async with database.begin() as connection:
        access, slug = Access(user.id, user.role), credentials.campaign
        campaign = None if slug is None else await tokens.find_campaign_for_token(connection, access, slug)
        return Token(
            token=await tokens.create_api_token(
                connection, user.id, credentials.token_name, now=now, scopes=credentials.scopes, campaign=campaign
            )
        )
