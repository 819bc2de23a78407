"""API route of comments and flags of annotators."""

from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.http.dependencies import Transaction, openapi_description_of_refusals
from app.http.paging import Page
from app.record import remarks
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.remarks import RemarksQuery

router = program_router("/api/v1/campaigns/{slug}", "Annotators")


class RemarkSchema(BaseModel):
    """A remark that an annotator left with an answer, on one item or on the HIT."""

    number: int = Field(description="Number of the answer: `seq` in exports.")
    received_at: datetime
    hit: int
    annotator: str = Field(description="A1, A2, ..., as shown on pages.")
    pseudonym: str = Field(description="As in exports.")
    item: str | None = Field(description="Your id of the item; null for a comment on the HIT.")
    segment: str | None = Field(description="The segment, if the item is an output of a system.")
    check: bool = Field(description="Whether it is a gold or attention item.")
    flag: str | None = Field(description="What is wrong with the item; empty where no reason is asked for.")
    comment: str | None
    counts: bool = Field(description="False if the answer is excluded.")


class RemarkPageSchema(BaseModel):
    total: int
    remarks: list[RemarkSchema]

    @classmethod
    def from_page(cls, remarks_page: Page[Any]) -> Self:
        """Return a page of remarks as the API sends it."""
        row_fields = {"number": "seq", "hit": "hit_id", "annotator": "name", "check": "of_check"}
        lines = [
            {name: getattr(row, row_fields.get(name, name)) for name in RemarkSchema.model_fields}
            for row in remarks_page.rows
        ]
        return cls.model_validate({"total": remarks_page.total, "remarks": lines})


class RemarksApiQuery(RemarksQuery):
    """The query of a program, which chooses the length of a page, too."""

    size: int = Field(default=100, ge=1, le=1000, description="Remarks per page.")


@router.get("/remarks", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def list_remarks(
    connection: Transaction, slug: str, query: Annotated[RemarksApiQuery, Query()]
) -> RemarkPageSchema:
    """Return comments and flags of annotators, newest first; those of replaced answers are left out."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return RemarkPageSchema.from_page(await remarks.load_remarks_page(connection, campaign.id, query, query.size))
