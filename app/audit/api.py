"""API: the audit log."""

from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from app.audit import found
from app.audit.found import Found
from app.audit.routes import Asked, Page, of
from app.auth.guards import program
from app.database.campaign import campaign_by_slug
from app.web import Transaction, refusals

router = APIRouter(
    prefix="/api/v1",
    tags=["Audit log"],
    dependencies=[Depends(program)],
    responses=refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`"}),
)


class Line(BaseModel):
    """A change, as it was written down in the transaction that made it."""

    at: datetime
    who: str = Field(description="A login name; it stays when the researcher is removed.")
    way: str = Field(description="page, api, command or server: how they did it.")
    campaign: str | None = Field(description="The slug of the campaign, if it is of one.")
    action: str = Field(description="What was done, such as `settings.changed`.")
    about: str
    before: dict[str, Any] | None = Field(description="What was, by name.")
    after: dict[str, Any] | None = Field(description="What is.")


class Lines(BaseModel):
    total: int
    lines: list[Line]

    @classmethod
    def of(cls, some: Found) -> Self:
        """From a page of them."""
        named = [{"at": row.noted_at} | row._asdict() for row in some.lines]
        return cls.model_validate({"total": some.total, "lines": named})


Size = Annotated[int, Query(ge=1, le=1000, description="Lines of a page.")]


@router.get("/log")
async def get_log(connection: Transaction, asked: Asked, page: Page = 1, size: Size = 100) -> Lines:
    """Who changed what on the whole server, newest first."""
    return Lines.of(await found.page_of(connection, asked, page, size))


@router.get("/campaigns/{slug}/log", responses=refusals({404: "`campaign_not_found`"}))
async def get_log_of_campaign(
    connection: Transaction, slug: str, asked: Asked, page: Page = 1, size: Size = 100
) -> Lines:
    """Who changed what in a campaign, newest first."""
    campaign = await campaign_by_slug(connection, slug)
    return Lines.of(await found.page_of(connection, of(campaign, asked), page, size))
