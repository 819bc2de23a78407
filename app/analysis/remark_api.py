"""API: comments and flags of annotators."""

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from app.analysis.remark_routes import Asked, Number
from app.auth.guards import program
from app.database.campaign import campaign_by_slug
from app.record import remarks
from app.record.remarks import FoundRemarks
from app.web import Transaction, refusals

router = APIRouter(
    prefix="/api/v1/campaigns/{slug}",
    tags=["Annotators"],
    dependencies=[Depends(program)],
    responses=refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`"}),
)


class RemarkFound(BaseModel):
    """What an annotator said beside an answer, of one item or of the HIT."""

    number: int = Field(description="Of the answer: `seq` in exports.")
    received_at: datetime
    hit: int
    annotator: str = Field(description="A1, A2, ..., as pages call them.")
    pseudonym: str = Field(description="As in exports.")
    item: str | None = Field(description="By your id; null for a comment on the HIT.")
    segment: str | None = Field(description="Of an output of a system, the segment.")
    check: bool = Field(description="Whether it is a gold or attention item.")
    flag: str | None = Field(description="What is wrong with the item; empty where no reason is asked for.")
    comment: str | None
    counts: bool = Field(description="False where the answer is left out.")


class RemarksFound(BaseModel):
    total: int
    remarks: list[RemarkFound]

    @classmethod
    def of(cls, some: FoundRemarks) -> Self:
        """From a page of them."""
        named = {"number": "seq", "hit": "hit_id", "annotator": "name", "check": "of_check"}
        lines = [{name: getattr(row, named.get(name, name)) for name in RemarkFound.model_fields} for row in some.lines]
        return cls.model_validate({"total": some.total, "remarks": lines})


Size = Annotated[int, Query(ge=1, le=1000, description="Remarks of a page.")]


@router.get("/remarks", responses=refusals({404: "`campaign_not_found`"}))
async def list_remarks(
    connection: Transaction, slug: str, asked: Asked, number: Number = 1, size: Size = 100
) -> RemarksFound:
    """Comments and flags of annotators, newest first; those of answers that their annotators changed are left out."""
    campaign = await campaign_by_slug(connection, slug)
    return RemarksFound.of(await remarks.page_of(connection, campaign.id, asked, number, size))
