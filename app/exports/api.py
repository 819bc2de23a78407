"""API routes of results: posteriors, exports and verification."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.analysis.api.query_parameters import ClassCountQuery, CriterionQuery, RowLimitQuery, RowOffsetQuery
from app.analysis.dependencies import ProcessFits, refuse_annotator_tables_without_access
from app.analysis.methods import all_method_exports
from app.analysis.result_types import Options
from app.database.bulk import open_snapshot
from app.exports import posterior_page
from app.exports.dependencies import streaming_response_of_export
from app.exports.everything import open_everything_or_refuse
from app.exports.registry import open_export_or_refuse
from app.http.dependencies import Database, Now, ReadingDatabase, openapi_description_of_refusals
from app.record import replay
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router(
    "/api/v1/campaigns/{slug}",
    "Results",
    Depends(refuse_annotator_tables_without_access),
    refusals={404: "`campaign_not_found`, `criterion_not_found`", 422: "`invalid`; `details.fields` names each field"},
)


class DisplayedPosteriorSchema(BaseModel):
    """A posterior's numbers as pages and exported files show them."""

    score: float | None = Field(description="In the reply's `unit`; null, like its interval, without judgments.")
    standard_deviation: float | None = Field(
        description=(
            "Standard error of the posterior; null without judgments, and for ratios, whose error is a factor."
        )
    )
    low: float | None
    high: float | None
    mean: float | None = Field(description="In `unit_of_means`, as its error and both intervals.")
    standard_error: float | None
    calibrated_low_95: float | None
    calibrated_high_95: float | None
    shrunken_score: float | None
    shrunken_low_95: float | None
    shrunken_high_95: float | None


class PosteriorSchema(BaseModel):
    """The numbers of an item. Those outside `as_shown` are fractions of the scale, 0 to 1, whatever pages show."""

    id: str
    text: str
    state: list[float] = Field(
        description="The posterior's numbers: alpha and beta, mu and sigma squared, or a count for each label."
    )
    a: float = Field(description="The first of them: alpha of a Beta posterior, or mu of a Gaussian.")
    b: float | None = Field(description="The second: beta of a Beta posterior, or sigma squared of a Gaussian.")
    score: float = Field(
        description="Mode of the Beta, mean of the Gaussian, median of the log-normal, where a ratio r is r / (1 + r), "
        "or the share of the likeliest label; 0 to 1 for the bounded laws."
    )
    variance: float = Field(description="Variance of the posterior, in squared fractions of the scale.")
    low: float = Field(description="Lower end of the posterior's central interval, a fraction of the scale.")
    high: float = Field(description="Its upper end.")
    judgments: int
    mean_score: float | None = Field(
        description="Mean of the scores given, 0 to 1; a ratio r counts as r / (1 + r), and a place as the share of "
        "the other items of its HIT that it beats. Null if there are none, and for labels, which have no order."
    )
    standard_error: float | None = Field(
        description="Standard error of that mean, from how far annotators differ; null while no two differ on any item."
    )
    calibrated_low_95: float | None = Field(
        description="Lower end of the calibrated interval, which contains the mean score that all annotators "
        "would give "
        "in 95 of 100 cases, whatever `level` is."
    )
    calibrated_high_95: float | None
    shrunken_score: float | None = Field(
        description="The mean, shrunk towards those of all items: also right for items that lead a list, or that were "
        "asked about because of their scores."
    )
    shrunken_low_95: float | None = Field(
        description="Lower end of the interval around the shrunken score, which contains the mean score that all "
        "annotators would give in 95 of 100 cases."
    )
    shrunken_high_95: float | None
    label: str | None = Field(
        description=(
            "The most likely label, if labels are counted; null before the first label, and if another label is as "
            "likely."
        )
    )
    as_shown: DisplayedPosteriorSchema


class PosteriorPageSchema(BaseModel):
    total: int = Field(description="Number in the whole campaign; 0 before the launch.")
    unit: str = Field(description="Unit of scores in `as_shown`, in words, such as `score, points`.")
    unit_of_means: str | None = Field(description=("Unit of means in `as_shown`; null for labels, which have no mean."))
    posteriors: list[PosteriorSchema]


@router.get("/posteriors")
async def list_posteriors(
    database: Database,
    fits: ProcessFits,
    slug: str,
    *,
    offset: RowOffsetQuery = 0,
    limit: RowLimitQuery = 1000,
    order: Annotated[
        posterior_page.PosteriorOrder, Query(description="A `-` in front sorts in descending order.")
    ] = "number",
    level: Annotated[float, Query(gt=0, lt=1, description="Probability of the posterior's interval.")] = 0.95,
    criterion: CriterionQuery = "",
) -> PosteriorPageSchema:
    """Return a page of the items' newest posteriors, each with the intervals of the `items` export."""
    async with fits.open_answers_snapshot(database) as connection:
        chosen = (await load_campaign_by_slug_or_refuse(connection, slug)).find_criterion_or_refuse(criterion)
        evidence = await fits.load_and_cache_calibrated_evidence(connection, chosen)
        shrinkage = await evidence.fit_shrinkage_in_thread()
        total, estimates = await posterior_page.load_posterior_total_and_page(
            connection,
            chosen,
            evidence.intervals,
            shrinkage,
            offset=offset,
            limit=limit,
            order=order,
            level=level,
        )
    design = chosen.design
    units = {
        "unit": design.score_unit(chosen.law).axis_title,
        "unit_of_means": design.unit.axis_title if design.is_ordered else None,
    }
    return PosteriorPageSchema.model_validate({"total": total, "posteriors": estimates} | units, from_attributes=True)


NAMES_OF_FITTED_EXPORTS = ", ".join(f"`{export.name}` ({export.title.lower()})" for export in all_method_exports())
EXPORT_NAMES_HELP = (
    "`items`, `responses`, `unanswered`, `returning`, `assignments`, `visits`, `remarks`, `settings` (JSON), `easl` "
    f"(CSV), or an export that needs a fit: {NAMES_OF_FITTED_EXPORTS}, if the campaign's answers support it."
)


@router.get("/export/everything", response_class=StreamingResponse)
async def get_everything(
    database: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    *,
    now: Now,
    assignments: Annotated[
        bool, Query(description="Include the file `assignments`, which has the platform's ids of assignments.")
    ] = False,
) -> StreamingResponse:
    """Download one zip with all exports as CSV, the tables of the analysis, a codebook and a README."""
    return streaming_response_of_export(
        await open_everything_or_refuse(database, slug, now=now, fits=fits, with_platform_ids=assignments), now
    )


@router.get(
    "/export/{what}",
    response_class=StreamingResponse,
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `criterion_not_found`, `export_not_found`",
            409: "`not_launched`, `no_beta_posterior`; of a fit such as `no_judgments`, `no_overlap`, "
            "`method_reads_other_answers`",
        }
    ),
)
async def get_export(
    database: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    what: Annotated[str, Field(description=EXPORT_NAMES_HELP)],
    format: Literal["csv", "jsonl"] = "csv",  # noqa: A002  (a parameter's word)
    *,
    now: Now,
    spreadsheet: Annotated[
        bool, Query(description="Put an apostrophe before cells that spreadsheet programs would change: 001, =1+1.")
    ] = False,
    classes: ClassCountQuery = 2,
    criterion: CriterionQuery = "",
) -> StreamingResponse:
    """Download an export, streamed from one snapshot; annotators appear under pseudonyms.

    With several criteria, items, responses and segments have a row for each; the EASL file, and exports that need a
    fit, are by one criterion.
    """
    export_options: dict[str, Any] = {"spreadsheet": spreadsheet, "options": Options(classes), "criterion": criterion}
    return streaming_response_of_export(
        await open_export_or_refuse(database, slug, what, format, fits=fits, **export_options), now
    )


class MismatchSchema(BaseModel):
    number: int
    external_id: str
    column: str
    stored: float
    replayed: float
    criterion: str | None = Field(
        default=None, description=("Criterion of the posterior; null if the campaign has no criteria.")
    )


class VerificationSchema(BaseModel):
    clean: bool = Field(
        validation_alias="has_no_mismatches",
        description=("Whether every posterior is, bit for bit, what a replay of the responses gives."),
    )
    responses: int
    items: int
    mismatch_count: int
    beyond_rounding: int = Field(
        description="How many of them differ by more than the rounding of an earlier version, or of another system's "
        "mathematics library. If none does, `easel verify CAMPAIGN --replay` stores the posteriors again."
    )
    mismatches: list[MismatchSchema] = Field(description="The first 20.")


@router.get("/verify", responses=openapi_description_of_refusals({409: "`not_launched`, `not_replayable`"}))
async def get_verification(database: ReadingDatabase, slug: str) -> VerificationSchema:
    """Replay all responses from the prior and compare every posterior."""
    async with open_snapshot(database) as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        verification = await replay.verify_by_replay_or_refuse(connection, campaign)
    return VerificationSchema.model_validate(verification, from_attributes=True)
