"""API: the audit log."""

from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from app.accounts.guards import require_program
from app.audit import log_query
from app.audit.log_query import AuditLogPage
from app.audit.pages import LogFilterQuery, LogPageNumber, limit_log_to_campaign
from app.database.campaign import load_campaign_by_slug
from app.http.dependencies import Transaction, document_refusals

router = APIRouter(
    prefix="/api/v1",
    tags=["Audit log"],
    dependencies=[Depends(require_program)],
    responses=document_refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`"}),
)


class Line(BaseModel):
    """A change, as the transaction that made it wrote it down."""

    at: datetime
    who: str = Field(description="A login name; it stays when the researcher is removed.")
    way: str = Field(description="page, api, command or server: how it was done.")
    campaign: str | None = Field(description="The slug of the campaign, if the change is in one.")
    action: str = Field(description="The action, such as `settings.changed`.")
    about: str
    before: dict[str, Any] | None = Field(description="Old values by name.")
    after: dict[str, Any] | None = Field(description="New values by name.")


class Lines(BaseModel):
    total: int
    lines: list[Line]

    @classmethod
    def from_log_page(cls, log_page: AuditLogPage) -> Self:
        lines = [{"at": row.noted_at} | row._asdict() for row in log_page.lines]
        return cls.model_validate({"total": log_page.total, "lines": lines})


LogPageSize = Annotated[int, Query(ge=1, le=1000, description="Lines of a page.")]


@router.get("/log")
async def get_log(
    connection: Transaction, log_filter: LogFilterQuery, page: LogPageNumber = 1, size: LogPageSize = 100
) -> Lines:
    """Return the changes on the whole server, newest first."""
    return Lines.from_log_page(await log_query.load_log_page(connection, log_filter, page, size))


@router.get("/campaigns/{slug}/log", responses=document_refusals({404: "`campaign_not_found`"}))
async def get_log_of_campaign(
    connection: Transaction, slug: str, log_filter: LogFilterQuery, page: LogPageNumber = 1, size: LogPageSize = 100
) -> Lines:
    """Return the changes in a campaign, newest first."""
    campaign = await load_campaign_by_slug(connection, slug)
    return Lines.from_log_page(
        await log_query.load_log_page(connection, limit_log_to_campaign(campaign, log_filter), page, size)
    )
