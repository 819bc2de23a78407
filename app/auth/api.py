"""API: a token for a name and password."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints

from app.auth import login, passwords, users
from app.database.audit_log import ACTING, Actor
from app.web import Database, Now, address_of, refusals

router = APIRouter(prefix="/api/v1", tags=["Tokens"])


# A length also makes Pydantic look whether a text is one that UTF-8 can say.
Words = Annotated[str, StringConstraints(max_length=200)]


class Credentials(BaseModel):
    name: Words = Field(description="Login name.")
    password: Annotated[str, StringConstraints(max_length=passwords.LONGEST)]
    token_name: Words = Field(default="API", description="What the token is for; shown on the account page.")


class Token(BaseModel):
    token: str = Field(description="Send it as `Authorization: Bearer TOKEN`. It is not shown again.")


@router.post(
    "/tokens",
    status_code=201,
    responses=refusals(
        {
            401: "`wrong_password`",
            422: "`invalid`, `token_name_invalid`",
            429: "`too_many_attempts`; `details.retry_after_seconds` says how long to wait",
        }
    ),
)
async def create_token(request: Request, database: Database, now: Now, credentials: Credentials) -> Token:
    """Make an API token. Tokens last until they are revoked on the account page."""
    address = address_of(request)
    user = await login.authenticated(database, credentials.name, credentials.password, address, now=now)
    ACTING.set(Actor(user.name, "api"))
    async with database.begin() as connection:
        return Token(token=await users.create_api_token(connection, user.id, credentials.token_name, now=now))
