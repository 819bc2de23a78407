"""API routes of final labels: the queue of items, and the choice of a label."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.accounts.guards import program_router
from app.analysis.adjudicated_item import QueueRow, load_rows_with_current_texts
from app.analysis.adjudication_state import load_adjudication_state
from app.analysis.dependencies import ProcessFits
from app.analysis.queue_filter import QueueFilter
from app.designs.field_flags import RequestBody
from app.http.dependencies import Database, Now, ReadingDatabase, Transaction, openapi_description_of_refusals
from app.http.paging import AddressQuery, Page, PageNumber
from app.quality.adjudications import Adjudication, adjudicate_item_or_refuse
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.uploads import MAX_ID_CHARACTERS

router = program_router("/api/v1/campaigns/{slug}", "Analysis")

CRITERION_DESCRIPTION = "Name of the criterion; empty for the first."


class AdjudicationSchema(BaseModel):
    """The latest decision of a researcher about the label of an item."""

    model_config = ConfigDict(from_attributes=True)

    id: int = Field(description="Number of the decision: send it as `replaces` to change it.")
    label: str | None = Field(description="The final label; null if it was taken back.")
    reason: str
    decided_by: str
    decided_at: datetime

    @classmethod
    def from_adjudication(cls, adjudication: Adjudication) -> "AdjudicationSchema":
        return cls.model_validate(adjudication)


class QueuedItemSchema(BaseModel):
    item: str = Field(description="Your id of the item.")
    shown: str
    votes: dict[str, int] = Field(description="How many annotators gave each label; labels without votes are left out.")
    label: str | None = Field(description="Most probable label by Dawid and Skene’s model; null without one.")
    confidence: float | None = Field(description="Probability that this label is right.")
    no_majority: bool = Field(description="Whether no label has more than half of two or more votes.")
    adjudication: AdjudicationSchema | None

    @classmethod
    def from_row(cls, row: QueueRow) -> "QueuedItemSchema":
        adjudication = AdjudicationSchema.from_adjudication(row.adjudication) if row.adjudication else None
        return cls(
            item=row.id,
            shown=row.shown,
            votes=dict(row.votes),
            label=row.label,
            confidence=row.confidence,
            no_majority=row.is_disputed,
            adjudication=adjudication,
        )


class LabelQueueSchema(BaseModel):
    no_majority: int = Field(description="Items on which no label has a majority.")
    no_majority_settled: int = Field(description="How many of these a researcher has settled.")
    total: int = Field(description="Items that `show` keeps.")
    items: list[QueuedItemSchema] = Field(description="The least certain first.")


class LabelQueueQuery(AddressQuery):
    criterion: str = Field(default="", max_length=200, description=CRITERION_DESCRIPTION)
    show: QueueFilter = Field(default="disputed", description="`disputed`: items without a majority.")
    page: PageNumber = 1
    size: int = Field(default=100, ge=1, le=1000, description="Items per page.")


class AdjudicationRequest(RequestBody):
    """The choice of a final label."""

    item: Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARACTERS)]
    label: str | None = Field(max_length=500, description="One of the labels; null takes the present one back.")
    reason: str = Field(default="", max_length=2000)
    criterion: str = Field(default="", max_length=200, description=CRITERION_DESCRIPTION)
    replaces: int = Field(
        default=0, ge=0, le=2**63 - 1, description="Number of the decision that this one replaces; 0 for the first."
    )


LABEL_REFUSALS: dict[int, str] = {
    404: "`campaign_not_found`, `criterion_not_found`",
    409: "`no_labels`, `not_launched`",
}


@router.get("/adjudications", responses=openapi_description_of_refusals(LABEL_REFUSALS))
async def list_items_to_adjudicate(
    database: Database,
    reading: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    query: Annotated[LabelQueueQuery, Query()],
) -> LabelQueueSchema:
    """Return items with their votes and final labels, the least certain first."""
    state = await load_adjudication_state(fits, database, reading, slug, query.criterion)
    listed = state.item_numbers(query.show)
    page: Page[Any] = Page(query.page, query.size, len(listed))
    rows = state.rows(listed[page.offset : page.offset + page.size])
    async with database.connect() as connection:
        rows = await load_rows_with_current_texts(connection, state.criterion.campaign, rows)
    disputed, settled = state.disputed_and_settled_counts
    return LabelQueueSchema(
        no_majority=disputed,
        no_majority_settled=settled,
        total=page.total,
        items=[QueuedItemSchema.from_row(row) for row in rows],
    )


@router.post(
    "/adjudications",
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `criterion_not_found`, `item_not_found`",
            409: "`no_labels`, `not_launched`, `adjudication_changed`, `not_adjudicated`",
            422: "`label_unknown`, `reason_too_long`, `reason_invalid`, `invalid`",
        }
    ),
)
async def adjudicate_item_by_program(
    connection: Transaction, slug: str, choice: AdjudicationRequest, now: Now
) -> AdjudicationSchema:
    """Choose the final label of an item, change it, or take it back. Answers and scores stay as they are."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return AdjudicationSchema.from_adjudication(
        await adjudicate_item_or_refuse(
            connection,
            campaign.find_criterion_or_refuse(choice.criterion),
            choice.item,
            choice.label,
            reason=choice.reason,
            replaces=choice.replaces,
            now=now,
        )
    )
