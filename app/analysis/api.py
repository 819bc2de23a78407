"""API: posteriors, exports, verification."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from app.analysis import posteriors, replay
from app.analysis.export import export
from app.analysis.routes import streamed
from app.auth.guards import program
from app.database.bulk import snapshot
from app.database.campaign import campaign_by_slug
from app.web import ReadingDatabase, Transaction, refusals

router = APIRouter(
    prefix="/api/v1/campaigns/{slug}",
    tags=["Results"],
    dependencies=[Depends(program)],
    responses=refusals(
        {
            401: "`token_missing`, `token_invalid`",
            404: "`campaign_not_found`",
            422: "`invalid`; `details.fields` names each field",
        }
    ),
)


class Posterior(BaseModel):
    id: str
    text: str
    a: float = Field(description="alpha of a Beta posterior, or mu of a Gaussian.")
    b: float = Field(description="beta of a Beta posterior, or sigma squared of a Gaussian.")
    score: float = Field(description="Mode of the Beta or mean of the Gaussian; 0 to 1 for the bounded laws.")
    variance: float
    low: float = Field(description="Lower end of the central interval.")
    high: float
    judgments: int


class Posteriors(BaseModel):
    total: int = Field(description="Of the whole campaign; 0 before the launch.")
    posteriors: list[Posterior]


@router.get("/posteriors")
async def list_posteriors(
    connection: Transaction,
    slug: str,
    *,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    order: Annotated[posteriors.Order, Query(description="`-` for descending.")] = "number",
    level: Annotated[float, Query(gt=0, lt=1, description="Mass of the interval.")] = 0.95,
) -> Posteriors:
    """A page of the items' newest posteriors."""
    campaign = await campaign_by_slug(connection, slug)
    total, found = await posteriors.estimates(
        connection, campaign, offset=offset, limit=limit, order=order, level=level
    )
    return Posteriors.model_validate({"total": total, "posteriors": found}, from_attributes=True)


@router.get(
    "/export/{what}",
    response_class=StreamingResponse,
    responses=refusals(
        {
            404: "`campaign_not_found`, `export_not_found`",
            409: "`not_launched`, `no_beta_posterior`",
        }
    ),
)
async def get_export(
    database: ReadingDatabase,
    slug: str,
    what: Annotated[str, Field(description="`items`, `responses`, `assignments`, `settings` (JSON) or `easl` (CSV).")],
    format: Literal["csv", "jsonl"] = "csv",  # noqa: A002  (a parameter's word)
    *,
    spreadsheet: Annotated[bool, Query(description="Guard cells that a spreadsheet takes for formulas.")] = False,
) -> StreamingResponse:
    """A download of everything, streamed from one snapshot. Annotators appear under pseudonyms."""
    return streamed(await export(database, slug, what, format, spreadsheet=spreadsheet))


class Mismatch(BaseModel):
    number: int
    external_id: str
    column: str
    stored: float
    replayed: float


class Verification(BaseModel):
    clean: bool = Field(description="Every posterior is bit for bit what the responses lead to.")
    responses: int
    items: int
    mismatch_count: int
    mismatches: list[Mismatch] = Field(description="The first 20.")


@router.get("/verify", responses=refusals({409: "`not_launched`, `not_replayable`"}))
async def verify(database: ReadingDatabase, slug: str) -> Verification:
    """Replay all responses from the prior and compare every posterior."""
    async with snapshot(database) as connection:
        campaign = await campaign_by_slug(connection, slug)
        found = await replay.verify(connection, campaign)
    return Verification.model_validate(found, from_attributes=True)
