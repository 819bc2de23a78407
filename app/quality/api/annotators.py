"""API of a campaign's annotators: their work, and decisions about them and about their answers."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path as PathParameter
from fastapi import Query
from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.designs.field_flags import RequestBody
from app.http.dependencies import Database, Now, RowId, Transaction, openapi_description_of_refusals
from app.quality import actions, annotator_answers, annotators
from app.quality.decisions import MAX_REASON_CHARACTERS, BlockedState, find_annotator_id_or_refuse
from app.quality.dependencies import Comparisons, Medians, Revisions
from app.quality.listing_options import AnnotatorSort
from app.quality.peer_agreement import AnnotatorComparison
from app.quality.work_time import MIN_TASKS_FOR_HOURLY_PAY
from app.record import law_editions
from app.record.campaign import load_campaign_by_slug_or_refuse

ANNOTATOR_NOT_FOUND_REFUSALS = {404: "`campaign_not_found`, `annotator_not_found`"}

router = program_router("/api/v1/campaigns/{slug}", "Annotators")

AnnotatorNameOrPseudonym = Annotated[str, PathParameter(max_length=40, description="A7, or the pseudonym in exports.")]
AnnotatorLimit = Annotated[int, Query(ge=1, le=1_000)]
AnnotatorOffset = Annotated[int, Query(ge=0, le=10_000_000)]


class DecisionReason(RequestBody):
    reason: Annotated[
        str, Field(max_length=MAX_REASON_CHARACTERS, description="Kept with the decision and in the audit log.")
    ]


class AnnotatorBlock(BaseModel):
    """The reason why an annotator gets no further HITs."""

    how: BlockedState = Field(
        description="excluded: their answers do not count either. erased: at their own request; nothing restores them."
    )
    reason: str
    by: str
    at: datetime


class AnnotatorPeerCorrelation(BaseModel):
    """Correlation with the other annotators' means, with its 95 % interval. For labels, the share that another
    annotator gave too.
    """

    value: float
    low: float | None
    high: float | None


class Annotator(BaseModel):
    name: str = Field(description="A1 for the first annotator, as on pages.")
    pseudonym: str = Field(description="As in exports.")
    arrived_at: datetime
    barred: AnnotatorBlock | None = Field(description="Null if the annotator gets HITs and their answers count.")
    hits_answered: int
    hits_counted: int = Field(description="Answered HITs that count.")
    last_answer_at: datetime | None
    median_seconds: float | None = Field(description="From getting a HIT to its answer; null if unknown.")
    hours: float | None = Field(
        description=(
            "Hours of work. A HIT left open for more than a minute and more than five times the usual time counts "
            "as the usual time."
        )
    )
    pay_per_hour: float | None = Field(
        description=(
            "Pay per hour of work, in the campaign's currency; null if the campaign has no pay, and for fewer than "
            f"{MIN_TASKS_FOR_HOURLY_PAY} tasks."
        )
    )
    with_others: AnnotatorPeerCorrelation | None = Field(
        description="Null if there are too few answers. Agreeing with others does not mean being right."
    )
    reliability: float | None = Field(description="0 to 1: the expected correlation with the true values of items.")
    bias: float | None = Field(
        description="How much higher than the crowd they score the same items, in points. Their mean is 0."
    )
    changes: float | None = Field(description="Mean number of changes of a value after it was first given.")
    histogram: list[int] = Field(description="Values in each tenth of the scale, or of each class.")
    checks: int = Field(description="Gold and attention items answered.")
    checks_met: int = Field(description="Gold and attention items answered as expected.")
    findings: list[str] = Field(description="Findings of rules, as sentences.")

    @classmethod
    def from_line(cls, line: annotators.AnnotatorLine, comparison: AnnotatorComparison) -> "Annotator":
        block = line.barred and AnnotatorBlock.model_validate(
            {"how": line.barred, "reason": line.barred_reason, "by": line.barred_by, "at": line.barred_at}
        )
        return cls(
            name=line.name,
            pseudonym=line.pseudonym,
            arrived_at=line.arrived_at,
            barred=block or None,
            hits_answered=line.answers,
            hits_counted=line.counted,
            last_answer_at=line.last_at,
            median_seconds=line.seconds,
            hours=line.hours,
            pay_per_hour=line.pay_per_hour,
            with_others=AnnotatorPeerCorrelation(**comparison.peer_correlation._asdict())
            if comparison.peer_correlation
            else None,
            reliability=comparison.reliability,
            bias=comparison.bias,
            changes=line.changes,
            histogram=list(line.histogram),
            checks=line.checks,
            checks_met=line.checks_met,
            findings=list(line.findings),
        )


class Annotators(BaseModel):
    total: int
    comparing: bool = Field(description="Whether `with_others` to `bias` are being updated with newer answers.")
    annotators: list[Annotator]


class AnswerOfAnnotator(BaseModel):
    number: int = Field(description="`seq` in the export of responses.")
    received_at: datetime
    seconds: float | None
    judged: list[tuple[str, str]] = Field(description="Pairs of an item's id and the answer about it, as presented.")
    counts: bool = Field(description="False if the answer or its annotator is excluded, or if it was taken back.")
    excluded: str | None = Field(description="Why and by whom this answer alone was excluded.")
    withdrawn: bool
    segment: str | None = Field(description="Segment whose outputs were judged; null if items were.")
    by_criterion: dict[str, list[str]] = Field(
        description="Answers about the items of `judged` by each criterion; empty with one question."
    )


@router.get("/annotators", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def list_annotators(
    connection: Transaction,
    slug: str,
    *,
    comparisons: Comparisons,
    medians: Medians,
    sort: AnnotatorSort = "name",
    limit: AnnotatorLimit = 100,
    offset: AnnotatorOffset = 0,
    rising: bool = False,
) -> Annotators:
    """Return a campaign's annotators with a summary of their work. Sorted by name, A1 comes first; otherwise the
    largest value does.
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    lines = await annotators.load_annotator_lines(
        connection, campaign, sorting=sort, rising=rising, limit=limit, offset=offset, median_seconds=medians
    )
    comparison = await comparisons.load_newest_comparison(connection, campaign)
    return Annotators(
        total=await annotators.count_annotators(connection, campaign.id),
        comparing=comparison.is_running,
        annotators=[Annotator.from_line(line, comparison.comparison_of_annotator(line.id)) for line in lines],
    )


@router.get("/annotators/{annotator}", responses=openapi_description_of_refusals(ANNOTATOR_NOT_FOUND_REFUSALS))
async def get_annotator(
    connection: Transaction, comparisons: Comparisons, slug: str, annotator: AnnotatorNameOrPseudonym
) -> Annotator:
    """Return one annotator."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    annotator_id = await find_annotator_id_or_refuse(connection, campaign, annotator)
    (line,) = await annotators.load_annotator_lines(connection, campaign, limit=1, annotator_id=annotator_id)
    return Annotator.from_line(
        line, (await comparisons.load_newest_comparison(connection, campaign)).comparison_of_annotator(annotator_id)
    )


@router.get("/annotators/{annotator}/answers", responses=openapi_description_of_refusals(ANNOTATOR_NOT_FOUND_REFUSALS))
async def list_answers(
    connection: Transaction,
    slug: str,
    annotator: AnnotatorNameOrPseudonym,
    limit: AnnotatorLimit = 100,
    offset: AnnotatorOffset = 0,
) -> list[AnswerOfAnnotator]:
    """Return an annotator's answers, newest first; `judged` has the values by the first criterion."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    annotator_id = await find_annotator_id_or_refuse(connection, campaign, annotator)
    lines = await annotator_answers.load_answer_lines_of_annotator(
        connection, campaign, annotator_id, limit=limit, offset=offset
    )
    return [AnswerOfAnnotator(number=line.seq, **asdict(line)) for line in lines]


@router.post(
    "/annotators/{annotator}/{action}",
    status_code=204,
    responses=openapi_description_of_refusals(
        ANNOTATOR_NOT_FOUND_REFUSALS
        | {
            409: "`already_held`, `already_excluded`, `not_held`, `not_excluded`, `not_launched`, `not_replayable`",
            422: "`invalid`, `reason_missing`, `reason_invalid`",
        }
    ),
)
async def hold_release_exclude_or_restore_annotator(
    database: Database,
    revisions: Revisions,
    slug: str,
    annotator: AnnotatorNameOrPseudonym,
    *,
    action: Literal["hold", "release", "exclude", "restore"],
    body: DecisionReason,
    now: Now,
) -> None:
    """Hold an annotator (no further HITs), exclude them (their answers stop counting too), or undo either.

    The reply comes when the posteriors include the decision; annotation continues meanwhile. The decision is valid from
    the start, even if the reply does not arrive.
    """
    campaign_id = await actions.apply_annotator_decision_and_return_campaign_id(
        database, slug, annotator, action, reason=body.reason, now=now
    )
    await revisions.start_revision_and_wait(campaign_id, now=now)


@router.post(
    "/answers/{answer}/{action}",
    status_code=204,
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `response_not_found`",
            409: "`already_excluded`, `not_excluded`, `answer_withdrawn`, `not_replayable`",
            422: "`invalid`, `reason_missing`, `reason_invalid`",
        }
    ),
)
async def exclude_or_restore_answer(
    database: Database,
    revisions: Revisions,
    slug: str,
    answer: RowId,
    *,
    action: Literal["exclude", "restore"],
    body: DecisionReason,
    now: Now,
) -> None:
    """Exclude one answer by its number (`seq` in the export of responses), or restore it."""
    campaign_id = await actions.apply_answer_decision_and_return_campaign_id(
        database, slug, answer, action, reason=body.reason, now=now
    )
    await revisions.start_revision_and_wait(campaign_id, now=now)


class CampaignLawEdition(BaseModel):
    """The edition of the update law by which a campaign's posteriors are computed."""

    law: str
    edition: int = Field(description="A campaign keeps the edition with which it began.")
    newest: int = Field(description="The edition that new campaigns get.")


@router.get("/law-edition", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def get_law_edition(connection: Transaction, slug: str) -> CampaignLawEdition:
    """Return the edition of the campaign's update law."""
    edition = await law_editions.load_law_edition(connection, await load_campaign_by_slug_or_refuse(connection, slug))
    return CampaignLawEdition(**asdict(edition))


@router.post(
    "/law-edition/newest",
    responses=openapi_description_of_refusals(
        {404: "`campaign_not_found`", 409: "`not_launched`, `newest_edition`, `not_replayable`"}
    ),
)
async def move_campaign_to_newest_edition(database: Database, slug: str, now: Now) -> CampaignLawEdition:
    """Recompute all posteriors from the same answers, under the newest edition of the campaign's update law.

    Annotation continues meanwhile. The reply comes when the new posteriors are in use.
    """
    before = await law_editions.move_to_newest_edition_and_return_former(database, slug, now=now)
    return CampaignLawEdition(law=before.law, edition=before.newest, newest=before.newest)
