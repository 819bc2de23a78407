"""API: posteriors, exports, verification, analysis."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from app.analysis import posteriors
from app.analysis.export import export
from app.analysis.findings import MOST_CLASSES, Options, ResultTable
from app.analysis.groups import LONGEST_GROUP
from app.analysis.methods import SCORES, TABLES, every_export
from app.analysis.offer import offered
from app.analysis.routes import KeptFits, require_people, streamed
from app.analysis.score_tables import one_table, two_table
from app.auth.guards import Who, program
from app.auth.roles import SEE_PEOPLE
from app.database.bulk import snapshot
from app.database.campaign import campaign_by_slug
from app.designs.criteria import named
from app.designs.registry import design_of
from app.inference.ground.notes import Note
from app.inference.observations.coarsening import Reads
from app.record import replay
from app.record.law import law_of
from app.web import Database, Now, ReadingDatabase, Transaction, refusals

router = APIRouter(
    prefix="/api/v1/campaigns/{slug}",
    tags=["Results"],
    dependencies=[Depends(program), Depends(require_people)],
    responses=refusals(
        {
            401: "`token_missing`, `token_invalid`",
            404: "`campaign_not_found`, `criterion_not_found`",
            422: "`invalid`; `details.fields` names each field",
        }
    ),
)


Offset = Annotated[int, Query(ge=0, le=2**31)]
Limit = Annotated[int, Query(ge=1, le=10_000)]
Classes = Annotated[
    int,
    Query(
        ge=2,
        le=MOST_CLASSES,
        description="Into how many labels scores are cut; where annotators choose labels, nothing is cut.",
    ),
]


Criterion = Annotated[
    str,
    Query(
        max_length=200, description="One of the campaign's criteria by its name, where it has any; default: the first."
    ),
]


Group = Annotated[
    str,
    Query(
        max_length=LONGEST_GROUP,
        description="Only annotators who gave an answer to a question that was asked once, as `question=answer`, or "
        "another one, as `question!=answer`; default: all.",
    ),
]


class PosteriorAsShown(BaseModel):
    """A posterior's numbers as pages and exported files show them."""

    score: float = Field(description="In `unit` of the reply.")
    standard_deviation: float | None = Field(description="Of the posterior; null of ratios, whose error is a factor.")
    low: float
    high: float
    mean: float | None = Field(description="In `unit_of_means`, as its error and the calibrated interval.")
    standard_error: float | None
    calibrated_low_95: float | None
    calibrated_high_95: float | None


class Posterior(BaseModel):
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
    variance: float = Field(description="Of the posterior, in squared fractions of the scale.")
    low: float = Field(description="Lower end of the posterior's central interval, a fraction of the scale.")
    high: float = Field(description="Its upper end.")
    judgments: int
    mean_score: float | None = Field(
        description="Mean of the scores given, 0 to 1; a ratio r counts as r / (1 + r), and a place as the share of "
        "the other items of its HIT that it beats. Null without any, and of labels, which have no order."
    )
    standard_error: float | None = Field(
        description="Of that mean, judging by how far annotators differ; null while no two differ on any item."
    )
    calibrated_low_95: float | None = Field(
        description="Lower end of the calibrated interval, which holds the mean score that all annotators would give, "
        "95 times in 100, whatever `level` is."
    )
    calibrated_high_95: float | None
    label: str | None = Field(
        description="The likeliest label, where labels are counted; null before the first one, and where others are as "
        "likely."
    )
    as_shown: PosteriorAsShown


class Posteriors(BaseModel):
    total: int = Field(description="Of the whole campaign; 0 before the launch.")
    unit: str = Field(description="Of scores in `as_shown`, in words, such as `score, points`.")
    unit_of_means: str | None = Field(description="Of means in `as_shown`; null of labels, which have none.")
    posteriors: list[Posterior]


@router.get("/posteriors")
async def list_posteriors(
    database: Database,
    fits: KeptFits,
    slug: str,
    *,
    offset: Offset = 0,
    limit: Limit = 1000,
    order: Annotated[posteriors.Order, Query(description="`-` for descending.")] = "number",
    level: Annotated[float, Query(gt=0, lt=1, description="Mass of the posterior's interval.")] = 0.95,
    criterion: Criterion = "",
) -> Posteriors:
    """A page of the items' newest posteriors, each with the calibrated interval of the `items` export beside it."""
    async with fits.reading(database) as connection:
        campaign = named(await campaign_by_slug(connection, slug), criterion)
        known = await fits.intervals(connection, campaign)
        total, found = await posteriors.estimates(
            connection, campaign, known, offset=offset, limit=limit, order=order, level=level
        )
    design = design_of(campaign)
    units = {
        "unit": design.unit_of(law_of(campaign)).axis,
        "unit_of_means": design.unit.axis if design.ordered else None,
    }
    return Posteriors.model_validate({"total": total, "posteriors": found} | units, from_attributes=True)


EXPORTED = (
    "`items`, `responses`, `unanswered`, `assignments`, `visits`, `remarks`, `settings` (JSON), `easl` (CSV), or what "
    "needs a fit: "
    f"{', '.join(f'`{one.name}` ({one.title.lower()})' for one in every_export())}, where the campaign's answers "
    "reach it."
)


@router.get(
    "/export/{what}",
    response_class=StreamingResponse,
    responses=refusals(
        {
            404: "`campaign_not_found`, `criterion_not_found`, `export_not_found`",
            409: "`not_launched`, `no_beta_posterior`; of a fit such as `no_judgments`, `no_overlap`, "
            "`method_reads_other_answers`",
        }
    ),
)
async def get_export(
    database: ReadingDatabase,
    fits: KeptFits,
    slug: str,
    what: Annotated[str, Field(description=EXPORTED)],
    format: Literal["csv", "jsonl"] = "csv",  # noqa: A002  (a parameter's word)
    *,
    now: Now,
    spreadsheet: Annotated[
        bool, Query(description="Put an apostrophe before cells that spreadsheet programs would change: 001, =1+1.")
    ] = False,
    classes: Classes = 2,
    criterion: Criterion = "",
) -> StreamingResponse:
    """A download of everything, streamed from one snapshot. Annotators appear under pseudonyms. Of several criteria,
    items, responses and segments have a row for each; what needs a fit, and the EASL file, is of one.
    """
    how: dict[str, Any] = {"spreadsheet": spreadsheet, "options": Options(classes), "criterion": criterion}
    return streamed(await export(database, slug, what, format, fits=fits, **how), now)


class Mismatch(BaseModel):
    number: int
    external_id: str
    column: str
    stored: float
    replayed: float
    criterion: str | None = Field(default=None, description="By which it is; null where there are no criteria.")


class Verification(BaseModel):
    clean: bool = Field(description="Every posterior is bit for bit what the responses lead to.")
    responses: int
    items: int
    mismatch_count: int
    beyond_rounding: int = Field(
        description="How many of them differ by more than the rounding of an earlier version, or of another system's "
        "mathematics library. If none does, `easel verify CAMPAIGN --replay` stores the posteriors again."
    )
    mismatches: list[Mismatch] = Field(description="The first 20.")


@router.get("/verify", responses=refusals({409: "`not_launched`, `not_replayable`"}))
async def verify(database: ReadingDatabase, slug: str) -> Verification:
    """Replay all responses from the prior and compare every posterior."""
    async with snapshot(database) as connection:
        campaign = await campaign_by_slug(connection, slug)
        found = await replay.verify(connection, campaign)
    return Verification.model_validate(found, from_attributes=True)


class ScoreMethod(BaseModel):
    name: str
    title: str
    assumes: str = Field(description="What it takes for granted, in a sentence.")
    unit: str = Field(description="Of its scores, in words.")
    reads: Reads = Field(description="The kind of answers that it takes.")


class TableMethod(BaseModel):
    name: str
    section: str = Field(description="The part of the analysis page that it belongs to.")
    title: str
    explanation: str
    per_item: bool = Field(description="Whether there is a row for each item.")
    reads: list[Reads] = Field(description="The kinds of answers that it takes, of which one is enough.")


class Analysis(BaseModel):
    """What can be asked for."""

    answers: Reads = Field(description="The kind that annotators give.")
    scores: list[ScoreMethod]
    tables: list[TableMethod]


@router.get("/analysis")
async def list_methods(connection: Transaction, who: Who, slug: str, criterion: Criterion = "") -> Analysis:
    """The methods that score items, and the tables, which the campaign's way of asking and its items' columns reach.
    Whether there are answers enough for one is known when it is asked. Tables that tell of single annotators are only
    for those whose role may see people (`role_forbids`), and so is `group`.
    """
    campaign = named(await campaign_by_slug(connection, slug), criterion)
    offer = (await offered(connection, campaign)).seen(people=who.may(SEE_PEOPLE))
    return Analysis(
        answers=design_of(campaign).yields,
        scores=[score_method(name) for name in offer.scores],
        tables=[table_method(name) for name in offer.tables],
    )


def score_method(name: str) -> ScoreMethod:
    of = SCORES[name]
    return ScoreMethod(name=name, title=of.title, assumes=of.assumes, unit=of.unit, reads=of.reads)


def table_method(name: str) -> TableMethod:
    of = TABLES[name]
    told = {"title": of.title, "explanation": of.explanation, "per_item": of.per_item, "reads": [*of.reads]}
    return TableMethod.model_validate({"name": name, "section": of.section.name} | told)


CellValue = str | int | float | None


class Column(BaseModel):
    name: str
    title: str = Field(description="For people, with the unit.")
    kind: Literal["text", "sentence", "count", "number"]


MOST_TOLD = 100  # of the things that a note speaks of, which may be most items of a campaign
NOTE_CODES = (
    "`all_tied`, `annotators_set_aside`, `annotators_without_label`, `baseline`, `baseline_advice`, "
    "`confidence_too_high`, `counted_as_typical`, `counts_depend_on_company`, `cycle`, `dependent_pairs`, "
    "`draws_without_figure`, "
    "`draws_without_value`, `errors_by_probes`, `errors_left_out`, `few_items_a_pair`, "
    "`few_items_shared`, `fewer_than_three_labels`, "
    "`figure_without_interval`, `groups_of_annotators`, `groups_of_items`, `groups_of_systems`, `higher_start`, "
    "`halo`, `hits_drawn_again`, `interval_of_asking`, `intervals_too_narrow`, `items_set_aside`, `items_unscored`, "
    "`items_unseen`, `items_without_label`, `judged_again`, `judged_nothing`, `labels_are_cut`, `labels_in_points`, "
    "`labels_of_one_annotator`, "
    "`mean_over_pairs`, `most_groups`, `never_compared`, `no_finite_score`, `no_halo_figure`, `no_interval`, "
    "`no_intervals`, `no_reliability`, "
    "`no_score`, `no_ties`, `no_transitivity`, `no_triad`, `nobody_to_compare`, `not_all_met`, "
    "`not_judged`, `not_settled`, "
    "`not_standardised`, `nothing_but_ties`, `nothing_judged_twice`, `one_judge`, `one_judgment`, `one_label`, "
    "`one_label_again`, `one_side_constant`, `one_system`, `order_matters`, `pairs_as_items`, "
    "`pairs_missing`, `pairs_without_value`, `plain_means`, `read_as`, `repeats_left_out`, `rounded_to_points`, "
    "`same_items_side_by_side`, `scores_drawn_together`, `single_judgments_left_out`, "
    "`start_left_out`, `starts_left_out`, `taken_as_known`, `taken_for_most`, `ties_count_half`, "
    "`ties_in_every_triad`, "
    "`too_few_for_halo`, `too_many_for_errors`, `too_many_to_draw_again`, `uncounted`, "
    "`unknown_pairs_left_out`, `unmet_classes`, "
    "`unrated`, `unscored_left_out`, "
    "`weighted_and_corrected`, `without_judgment`"
)


class NoteFacts(BaseModel):
    code: str = Field(description=f"Stable, whatever the words: {NOTE_CODES}.")
    about: dict[str, list[str] | list[int]] = Field(
        description=f"By kind, such as `item`, the first {MOST_TOLD} of those that it speaks of: their names, or else "
        "their numbers."
    )


class Rows(BaseModel):
    columns: list[Column]
    total: int = Field(description="Of all rows, whatever the page.")
    rows: list[dict[str, CellValue]] = Field(description="By the columns' names; null where there is no figure.")
    notes: list[str] = Field(description="What could not be estimated and why, and what to keep in mind.")
    note_facts: list[NoteFacts] = Field(description="Of each note, in the same order: what programs can rely on.")


def rows_of(table: ResultTable, offset: int, limit: int) -> dict[str, Any]:
    """A page of a table, for `Rows`."""
    names = [column.name for column in table.columns]
    return {
        "columns": [asdict(column) for column in table.columns],
        "total": len(table.rows),
        "rows": [dict(zip(names, row, strict=True)) for row in table.rows[offset : offset + limit]],
        "notes": table.notes,
        "note_facts": [facts_of(note) for note in table.notes],
    }


def facts_of(note: Note) -> dict[str, Any]:
    return {"code": note.code, "about": {noun: told[:MOST_TOLD] for noun, told in note.about.items()}}


INESTIMABLE = {
    409: "`method_reads_other_answers`: it cannot read those of this campaign; or nothing can be estimated, and the "
    "message says why, such as `no_judgments`, `no_pairs`, `one_annotator`, `no_shared_items`, `nothing_varies`, "
    "`all_ties`, `no_overlap`, `no_scale`, `no_systems`, `no_shared_segments`, `no_such_system`, "
    "`not_converged`, `one_criterion`, `no_groups`"
}


NOT_FOUND = "`campaign_not_found`, `criterion_not_found`, `group_not_found`, `{}`"


class Scores(Rows):
    method: ScoreMethod


@router.get("/analysis/scores/{method}", responses=refusals({404: NOT_FOUND.format("method_not_found")} | INESTIMABLE))
async def get_scores(
    database: ReadingDatabase,
    fits: KeptFits,
    slug: str,
    method: str,
    *,
    offset: Offset = 0,
    limit: Limit = 1000,
    criterion: Criterion = "",
    group: Group = "",
) -> Scores:
    """The scores of all items by one method, with 95 % intervals, from the newest answers."""
    answers, found = await fits.scores(database, slug, method, criterion=criterion, group=group)
    table = await asyncio.to_thread(one_table, answers, found)
    return Scores.model_validate(rows_of(table, offset, limit) | {"method": score_method(method)})


class Figure(BaseModel):
    name: str = Field(description="`spearman`, `pearson`, `kendall` or `ndcg`.")
    title: str
    value: float | None
    low: float | None = Field(description="Of the 95 % interval over items.")
    high: float | None


class Comparison(Rows):
    one: ScoreMethod
    other: ScoreMethod
    n: int = Field(description="Items that both have a score for.")
    figures: list[Figure] = Field(description="Empty if there are none.")
    refusal: str = Field(description="Why there are no figures, or empty.")


@router.get("/analysis/compare", responses=refusals({404: NOT_FOUND.format("method_not_found")} | INESTIMABLE))
async def get_comparison(
    database: ReadingDatabase,
    fits: KeptFits,
    slug: str,
    *,
    one: Annotated[str, Query(description="A method that scores items; the reference for nDCG.")],
    other: str,
    offset: Offset = 0,
    limit: Limit = 1000,
    criterion: Criterion = "",
    group: Group = "",
) -> Comparison:
    """Two methods side by side: their correlations, and both scores of every item."""
    answers, found = await fits.compare(database, slug, one, other, criterion=criterion, group=group)
    of_both = score_method(one), score_method(other)
    table = await asyncio.to_thread(two_table, answers, found, *(method.title for method in of_both))
    of = {"one": of_both[0], "other": of_both[1], "n": found.n, "refusal": found.refusal}
    figures = [asdict(figure) for figure in found.figures]
    return Comparison.model_validate(rows_of(table, offset, limit) | of | {"figures": figures})


class AnalysisTable(Rows):
    table: TableMethod
    verdict: str = Field(description="What the figures say together, in a sentence; empty where nothing is said.")


@router.get("/analysis/tables/{name}", responses=refusals({404: NOT_FOUND.format("table_not_found")} | INESTIMABLE))
async def get_table(
    database: ReadingDatabase,
    fits: KeptFits,
    slug: str,
    name: str,
    *,
    classes: Classes = 2,
    baseline: Annotated[str | None, Query(description="Of tables of systems; default: the system judged most.")] = None,
    offset: Offset = 0,
    limit: Limit = 1000,
    criterion: Criterion = "",
    group: Group = "",
) -> AnalysisTable:
    """One of the tables that the analysis lists, from the newest answers."""
    found = await fits.table(database, slug, name, Options(classes, baseline), criterion=criterion, group=group)
    of = {"table": table_method(name), "verdict": found.verdict}
    return AnalysisTable.model_validate(rows_of(found, offset, limit) | of)
