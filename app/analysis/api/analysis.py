"""API routes of analyses: methods, scores, comparisons and tables."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from app.accounts.guards import CurrentAccess, program_router
from app.accounts.roles import SEE_PEOPLE
from app.analysis.api.query_parameters import ClassCountQuery, CriterionQuery, GroupQuery, RowLimitQuery, RowOffsetQuery
from app.analysis.available_methods import ALL_METHODS, load_available_methods
from app.analysis.dependencies import ProcessFits, refuse_annotator_tables_without_access
from app.analysis.findings_part import load_findings
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.result_types import Options, ResultTable
from app.analysis.score_tables import build_item_score_table, build_table_of_item_scores_by_two_methods
from app.analysis.view import AnalysisView
from app.http.dependencies import ReadingDatabase, Transaction, openapi_description_of_refusals
from app.inference.ground.notes import Note
from app.inference.observations.judgment_kinds import JudgmentKind
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router(
    "/api/v1/campaigns/{slug}",
    "Results",
    Depends(refuse_annotator_tables_without_access),
    refusals={404: "`campaign_not_found`, `criterion_not_found`", 422: "`invalid`; `details.fields` names each field"},
)


class ScoreMethodSchema(BaseModel):
    name: str
    title: str
    assumes: str = Field(description="The assumptions of the method, in a sentence.")
    unit: str = Field(description="Unit of its scores, in words.")
    reads: JudgmentKind = Field(description="The kind of answers it uses.")


class TableMethodSchema(BaseModel):
    name: str
    section: str = Field(description="The part of the analysis page that it belongs to.")
    title: str
    explanation: str
    per_item: bool = Field(description="Whether there is a row for each item.")
    reads: list[JudgmentKind] = Field(description="The kinds of answers it can use; one is enough.")


class AnalysisMethodsSchema(BaseModel):
    """Methods that a campaign supports."""

    answers: JudgmentKind = Field(description="The kind that annotators give.")
    scores: list[ScoreMethodSchema]
    tables: list[TableMethodSchema]


@router.get("/analysis")
async def list_analysis_methods(
    connection: Transaction, access: CurrentAccess, slug: str, criterion: CriterionQuery = ""
) -> AnalysisMethodsSchema:
    """List the scoring methods and the tables that the campaign's design and item columns support.

    Whether a method has enough answers is known only when it is requested. Tables that show single annotators are only
    for users whose role may see people (`role_forbids`), and so is `group`.
    """
    chosen = (await load_campaign_by_slug_or_refuse(connection, slug)).find_criterion_or_refuse(criterion)
    available = (await load_available_methods(connection, chosen)).visible_methods(
        can_see_annotators=access.can(SEE_PEOPLE)
    )
    return AnalysisMethodsSchema(
        answers=chosen.design.value_kind,
        scores=[score_method_schema(name) for name in available.scores],
        tables=[table_method_schema(name) for name in available.tables],
    )


def score_method_schema(method_name: str) -> ScoreMethodSchema:
    method = SCORE_METHODS[method_name]
    return ScoreMethodSchema(
        name=method_name, title=method.title, assumes=method.assumes, unit=method.unit, reads=method.reads
    )


def table_method_schema(table_name: str) -> TableMethodSchema:
    method = TABLE_METHODS[table_name]
    fields = {
        "title": method.title,
        "explanation": method.explanation,
        "per_item": method.per_item,
        "reads": [*method.reads],
    }
    return TableMethodSchema.model_validate({"name": table_name, "section": method.section.name} | fields)


class FindingSchema(BaseModel):
    """A finding from the answers so far, as the analysis page states it."""

    name: str = Field(description="Stable, even if the words change.")
    title: str
    sentence: str
    part: str = Field(description="The part of the analysis page that shows more.")


@router.get("/analysis/findings")
async def list_analysis_findings(
    database: ReadingDatabase,
    fits: ProcessFits,
    access: CurrentAccess,
    slug: str,
    *,
    criterion: CriterionQuery = "",
    group: GroupQuery = "",
) -> list[FindingSchema]:
    """Return what the answers show so far, in sentences; empty before the first answer."""
    visible = ALL_METHODS.visible_methods(can_see_annotators=access.can(SEE_PEOPLE))
    view = AnalysisView(criterion=criterion, group=group)
    found = await load_findings(fits, database, slug, view, table_names=visible.tables)
    return [FindingSchema(**asdict(finding)) for finding in found]


CellValue = str | int | float | None


class ColumnSchema(BaseModel):
    name: str
    title: str = Field(description="For people, with the unit.")
    kind: Literal["text", "sentence", "count", "number"]


MAX_NOTE_SUBJECTS = 100  # of the things that a note speaks of, which may be most items of a campaign
NOTE_CODES = (
    "`accuracy_is_exact`, `all_tied`, `annotators_set_aside`, `annotators_without_label`, `baseline`, "
    "`baseline_advice`, `careless_annotators`, `confidence_too_high`, `counts_depend_on_company`, `cycle`, "
    "`dependent_pairs`, "
    "`draws_without_figure`, `draws_without_value`, `errors_by_probes`, `errors_left_out`, `errors_with_known_spread`, "
    "`errors_without_opponents`, `few_items_a_pair`, `few_items_shared`, `fewer_than_three_labels`, "
    "`figure_without_interval`, `groups_of_annotators`, `groups_of_items`, `groups_of_systems`, `halo`, "
    "`higher_start`, `hits_drawn_again`, `interval_of_asking`, `intervals_too_narrow`, `items_are_systems`, "
    "`items_set_aside`, "
    "`items_unscored`, `items_unseen`, `items_without_label`, `judged_again`, `judged_nothing`, `labels_are_cut`, "
    "`labels_in_points`, `labels_of_one_annotator`, `mean_over_pairs`, `most_groups`, `never_compared`, "
    "`no_discrimination`, `no_finite_score`, `no_halo_figure`, `no_interval`, `no_intervals`, `no_reliability`, "
    "`no_score`, `no_ties`, `no_transitivity`, `no_triad`, `nobody_to_compare`, `not_all_met`, `not_judged`, "
    "`not_settled`, `not_standardised`, `nothing_but_ties`, `nothing_judged_twice`, `one_judge`, `one_judgment`, "
    "`one_label`, `one_label_again`, `one_side_constant`, `one_system`, `order_matters`, `pairs_as_items`, "
    "`pairs_matched_by_score`, `pairs_missing`, `pairs_without_value`, `plain_means`, `prevalence_without_interval`, "
    "`rating_error_unknown`, `read_as`, `repeats_left_out`, `rounded_to_points`, `same_items_side_by_side`, "
    "`scores_drawn_together`, `scores_not_settled`, `single_judgments_left_out`, `start_left_out`, `starts_left_out`, "
    "`taken_as_known`, `taken_for_most`, `ties_count_half`, `ties_in_every_triad`, `ties_lower_misfit`, "
    "`too_few_for_halo`, `too_many_for_errors`, `too_many_to_draw_again`, `uncounted`, `unknown_pairs_left_out`, "
    "`unmet_classes`, `unrated`, `unscored_left_out`, `weighted_and_corrected`, `without_judgment`"
)


class NoteSchema(BaseModel):
    code: str = Field(description=f"Stable, even if the words change: {NOTE_CODES}.")
    about: dict[str, list[str] | list[int]] = Field(
        description=(
            f"Subjects of the note by kind, such as `item`, at most {MAX_NOTE_SUBJECTS} of each: their names, or else "
            "their numbers."
        )
    )


class TableRowsSchema(BaseModel):
    columns: list[ColumnSchema]
    total: int = Field(description="Number of rows on all pages.")
    rows: list[dict[str, CellValue]] = Field(description="Values by column name; null if there is no figure.")
    notes: list[str] = Field(description="Notes on what could not be estimated, and on limits.")
    note_facts: list[NoteSchema] = Field(description="Facts of each note for programs, in the same order.")


def table_page_as_schema_fields(table: ResultTable, offset: int, limit: int) -> dict[str, Any]:
    """Return a page of a table as fields of `TableRowsSchema`."""
    names = [column.name for column in table.columns]
    return {
        "columns": [asdict(column) for column in table.columns],
        "total": len(table.rows),
        "rows": [dict(zip(names, row, strict=True)) for row in table.rows[offset : offset + limit]],
        "notes": table.notes,
        "note_facts": [note_as_schema_fields(note) for note in table.notes],
    }


def note_as_schema_fields(note: Note) -> dict[str, Any]:
    return {"code": note.code, "about": {noun: subjects[:MAX_NOTE_SUBJECTS] for noun, subjects in note.about.items()}}


INESTIMABLE_RESPONSES = {
    409: "`method_reads_other_answers`: it cannot read those of this campaign; or nothing can be estimated, and the "
    "message says why, such as `no_judgments`, `no_pairs`, `one_annotator`, `no_shared_items`, `nothing_varies`, "
    "`all_ties`, `no_overlap`, `no_scale`, `no_systems`, `no_shared_segments`, `no_such_system`, "
    "`not_converged`, `one_criterion`, `no_groups`"
}


ANALYSIS_NOT_FOUND_CODES = "`campaign_not_found`, `criterion_not_found`, `group_not_found`, `{}`"


class ScoresSchema(TableRowsSchema):
    method: ScoreMethodSchema


@router.get(
    "/analysis/scores/{method}",
    responses=openapi_description_of_refusals(
        {404: ANALYSIS_NOT_FOUND_CODES.format("method_not_found")} | INESTIMABLE_RESPONSES
    ),
)
async def get_scores(
    database: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    method: str,
    *,
    offset: RowOffsetQuery = 0,
    limit: RowLimitQuery = 1000,
    criterion: CriterionQuery = "",
    group: GroupQuery = "",
) -> ScoresSchema:
    """Return the scores of all items by one method, with 95 % intervals, from the newest answers."""
    answers, scores = await fits.load_answers_and_fit_scores(database, slug, method, criterion=criterion, group=group)
    table = await asyncio.to_thread(build_item_score_table, answers, scores)
    return ScoresSchema.model_validate(
        table_page_as_schema_fields(table, offset, limit) | {"method": score_method_schema(method)}
    )


class FigureSchema(BaseModel):
    name: str = Field(description="`spearman`, `pearson`, `kendall` or `ndcg`.")
    title: str
    value: float | None
    low: float | None = Field(description="Lower end of the 95 % interval over items.")
    high: float | None


class ComparisonSchema(TableRowsSchema):
    one: ScoreMethodSchema
    other: ScoreMethodSchema
    n: int = Field(description="Number of items with a score by both methods.")
    figures: list[FigureSchema] = Field(description="Empty if there are none.")
    refusal: str = Field(description="Why there are no figures, or empty.")


@router.get(
    "/analysis/compare",
    responses=openapi_description_of_refusals(
        {404: ANALYSIS_NOT_FOUND_CODES.format("method_not_found")} | INESTIMABLE_RESPONSES
    ),
)
async def get_comparison(
    database: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    *,
    one: Annotated[str, Query(description="A method that scores items; the reference for nDCG.")],
    other: str,
    offset: RowOffsetQuery = 0,
    limit: RowLimitQuery = 1000,
    criterion: CriterionQuery = "",
    group: GroupQuery = "",
) -> ComparisonSchema:
    """Compare two methods: their correlations, and both scores of every item."""
    answers, comparison = await fits.compare_methods(database, slug, one, other, criterion=criterion, group=group)
    method_schemas = score_method_schema(one), score_method_schema(other)
    table = await asyncio.to_thread(
        build_table_of_item_scores_by_two_methods, answers, comparison, *(method.title for method in method_schemas)
    )
    fields = {"one": method_schemas[0], "other": method_schemas[1], "n": comparison.n, "refusal": comparison.refusal}
    figures = [asdict(figure) for figure in comparison.figures]
    return ComparisonSchema.model_validate(
        table_page_as_schema_fields(table, offset, limit) | fields | {"figures": figures}
    )


class AnalysisTableSchema(TableRowsSchema):
    table: TableMethodSchema
    verdict: str = Field(description="A sentence on all figures together; may be empty.")


@router.get(
    "/analysis/tables/{name}",
    responses=openapi_description_of_refusals(
        {404: ANALYSIS_NOT_FOUND_CODES.format("table_not_found")} | INESTIMABLE_RESPONSES
    ),
)
async def get_analysis_table(
    database: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    name: str,
    *,
    classes: ClassCountQuery = 2,
    baseline: Annotated[
        str | None, Query(description="For tables of systems. Default: the system judged most often.")
    ] = None,
    offset: RowOffsetQuery = 0,
    limit: RowLimitQuery = 1000,
    criterion: CriterionQuery = "",
    group: GroupQuery = "",
) -> AnalysisTableSchema:
    """Return one of the tables that the analysis lists, from the newest answers."""
    table = await fits.load_cached_or_fit_table(
        database, slug, name, Options(classes, baseline), criterion=criterion, group=group
    )
    fields = {"table": table_method_schema(name), "verdict": table.verdict}
    return AnalysisTableSchema.model_validate(table_page_as_schema_fields(table, offset, limit) | fields)
