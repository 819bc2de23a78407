"""API of quality rules and checks: the matrix, findings, results of checks, and decisions about several annotators."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal, Self

from fastapi import Query
from pydantic import BaseModel, Field, StringConstraints

from app.accounts.guards import program_router
from app.designs.field_flags import RequestBody
from app.http.dependencies import Database, Now, Transaction, openapi_description_of_refusals
from app.quality import inbox, listings
from app.quality.bulk_decisions import (
    MAX_ANNOTATORS_AT_ONCE,
    AnnotatorState,
    BulkAction,
    apply_bulk_decision_and_return_outcome,
)
from app.quality.decisions import MAX_REASON_CHARACTERS
from app.quality.dependencies import Comparisons, Revisions
from app.record.campaign import load_campaign_for_page_or_refuse

MAX_MATRIX_ROWS = 200

router = program_router("/api/v1/campaigns/{slug}", "Annotators")

AnnotatorKey = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class BulkDecision(RequestBody):
    """A decision about several annotators."""

    action: BulkAction = Field(description="`undo` moves annotators back to their states in `states_before`.")
    annotators: list[AnnotatorKey] = Field(
        default=[],
        max_length=MAX_ANNOTATORS_AT_ONCE,
        description="Names such as A7, or pseudonyms in exports. Leave it out for `undo`.",
    )
    states_before: dict[AnnotatorKey, AnnotatorState] = Field(
        default={}, max_length=MAX_ANNOTATORS_AT_ONCE, description="For `undo`: as in the reply to the decision."
    )
    reason: str = Field(
        default="",
        max_length=MAX_REASON_CHARACTERS,
        description="Kept with the decision. Without one, the newest finding about each annotator is the reason.",
    )


class BulkDecisionOutcome(BaseModel):
    states_before: Mapping[str, str] = Field(description="State before, by name of each annotator that changed.")
    unchanged: list[str] = Field(description="Annotators in a state to which the decision does not apply.")


@router.post(
    "/annotators/decisions",
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `annotator_not_found`",
            409: "`not_launched`, `not_replayable`",
            422: "`invalid`, `nobody_chosen`, `too_many_annotators`, `reason_missing`, `reason_invalid`",
        }
    ),
)
async def decide_on_several_annotators(
    database: Database, revisions: Revisions, slug: str, decision: BulkDecision, now: Now
) -> BulkDecisionOutcome:
    """Hold, release, exclude or restore several annotators, or undo such a decision.

    Each annotator is decided about separately. The reply comes when the posteriors include the decisions.
    """
    outcome = await apply_bulk_decision_and_return_outcome(
        database,
        slug,
        list(decision.states_before) if decision.action == "undo" else list(dict.fromkeys(decision.annotators)),
        decision.action,
        reason=decision.reason,
        now=now,
        states_to_restore=decision.states_before,
    )
    await revisions.start_revision_and_wait(outcome.campaign_id, now=now)
    return BulkDecisionOutcome(states_before=outcome.states_before, unchanged=list(outcome.unchanged))


class RuleStateOfAnnotator(BaseModel):
    """State of a rule for an annotator."""

    state: Literal["flagged", "fine", "unknown", "off"] = Field(
        description="flagged: there is a finding. fine: nothing was found, and the answers rule out what the "
        "rule looks for, or all checks were passed in the end, as few guessers manage. unknown: the rule "
        "cannot tell yet, or cannot find anyone here."
    )
    evidence: str = Field(description="The reason for the state, as a sentence.")
    figure: str = Field(description="The main number with its interval, as on pages; empty if the rule has none.")


class MatrixAnnotator(BaseModel):
    """A row of the matrix: an annotator with the state of each rule."""

    annotator: str = Field(description="A1, A2, ..., as on pages.")
    barred: str | None = Field(description="held, excluded, erased, or null.")
    barred_reason: str | None
    hits_answered: int
    rules: dict[str, RuleStateOfAnnotator] = Field(description="State by name of the rule.")

    @classmethod
    def from_row(cls, row: inbox.InboxRow) -> Self:
        cells = {name: RuleStateOfAnnotator(**cell._asdict()) for name, cell in row.cells.items()}
        return cls(
            annotator=row.name,
            barred=row.barred,
            barred_reason=row.barred_reason,
            hits_answered=row.hits,
            rules=cells,
        )


class QualityMatrix(BaseModel):
    """Annotators by rules, those that need a decision first. While `is_running`, newer answers are being compared."""

    total: int = Field(description="Annotators who answered, or who are held or excluded.")
    left_early: int = Field(description="Annotators who left before their first answer; they have no row.")
    is_running: bool = Field(description="Whether newer answers are being compared; ask again in a moment.")
    rules: dict[str, str] = Field(
        description="Titles of the rules that apply to the campaign, by name. Rules on checks that no task shows are "
        "left out."
    )
    annotators: list[MatrixAnnotator]


@router.get("/quality-matrix", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def get_quality_matrix(
    connection: Transaction,
    comparisons: Comparisons,
    slug: str,
    limit: Annotated[int, Query(ge=1, le=MAX_MATRIX_ROWS)] = inbox.INBOX_ROWS_PER_PAGE,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> QualityMatrix:
    """Return what each rule can say about each annotator, as on the page Quality."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    comparison = await comparisons.load_newest_comparison(connection, campaign)
    matrix = await inbox.load_page_of_quality_inbox(
        connection,
        campaign,
        item_count=campaign.item_count,
        assessments=comparison.assessments,
        limit=limit,
        offset=offset,
    )
    return QualityMatrix(
        total=matrix.total,
        left_early=matrix.left_early,
        is_running=comparison.is_running,
        rules=dict(matrix.rule_titles),
        annotators=[MatrixAnnotator.from_row(row) for row in matrix.rows],
    )


class FindingOfRule(BaseModel):
    """A finding of a rule about an annotator, stored as it was at that time."""

    id: int
    annotator: str = Field(description="A1, A2, ..., as on pages.")
    pseudonym: str = Field(description="As in exports.")
    rule: str
    action: str = Field(description="warn, hold or exclude.")
    seen: dict[str, float] = Field(description="Measured numbers by name.")
    said: str = Field(description="The finding as a sentence for people.")
    found_at: datetime
    barred: str | None = Field(description="The annotator's state now: held, excluded, erased, or null.")


class AnswerHistogram(BaseModel):
    """Answers to a check by one criterion."""

    name: str = Field(description="Name of the criterion; empty if the campaign asks one question.")
    counts: list[int] = Field(description="Answers in each tenth of the scale, or of each class.")
    classes: list[str] = Field(description="Classes; empty for tenths of the scale.")


class CheckItemSummary(BaseModel):
    """A gold or attention item."""

    external_id: str
    segment: str | None = Field(description="In campaigns of systems: the segment for which this is an output.")
    kind: str = Field(description="gold or attention.")
    shown: str
    expected: str = Field(description="In words.")
    answers: int
    failed: int
    probably_wrong: bool = Field(
        description="Whether more than half of at least five answers failed. Rules ignore such a check."
    )
    not_loaded: int = Field(description="Annotators who reported that its file does not load.")
    histogram: list[int] = Field(
        description="Answers in each tenth of the scale, or of each class, by the first criterion that expects one; "
        "empty for places."
    )
    histograms: list[AnswerHistogram] = Field(description="The same for each criterion that expects an answer.")


@router.get("/findings", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def get_findings(connection: Transaction, slug: str) -> list[FindingOfRule]:
    """Return the newest 200 findings, newest first."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    rows = await listings.load_newest_findings(connection, campaign.id)
    return [FindingOfRule(annotator=row.name, **row._asdict()) for row in rows]


@router.get("/checks", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def get_checks(connection: Transaction, slug: str) -> list[CheckItemSummary]:
    """Return all gold and attention items with the number of times annotators failed them."""
    return [
        CheckItemSummary(
            histogram=list(line.histograms[0].counts) if line.histograms else [],
            histograms=[AnswerHistogram(**histogram._asdict()) for histogram in line.histograms],
            **{name: value for name, value in asdict(line).items() if name != "histograms"},
        )
        for line in await listings.load_check_lines_with_outcome_counts(
            connection, await load_campaign_for_page_or_refuse(connection, slug)
        )
    ]
