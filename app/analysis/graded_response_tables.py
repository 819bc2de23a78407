"""Graded response model of outputs of systems for segments: tables of systems, annotators and segments.

Two outputs for one segment that the same annotator judged are a judgment of that pair. If annotators give scores, the
pair may come from one HIT or two, the higher score is preferred, and scores within the tie margin are a tie. If they
give places, the pair comes from one HIT. Only judgments that include the baseline are used.

If a design shows one item in every HIT, that item is the baseline of all segments, and an item without such columns is
a system of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from app.analysis.answer_kinds import can_read_answers_as, notes_on_reading_as_kind
from app.analysis.method_types import DotPlotColumn, TableMethod, TableSection
from app.analysis.pairwise_tables import preference_pair_columns, preference_pair_columns_within_groups
from app.analysis.result_types import (
    Answers,
    Column,
    Mask,
    Options,
    ResultTable,
    cache_last_result,
    columns_to_cell_rows,
    natural_sort_key,
)
from app.analysis.scores import refuse_without_answers
from app.errors import shorten_echo
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, notes_with_names
from app.inference.observations.baseline import baseline_advice, positions_opponents_and_outcomes_of_baseline
from app.inference.systems import graded_response
from app.inference.systems.graded_response import GradedResponse, item_information

Z = float(ndtri(0.975))
# How often: `python -m benchmarks.graded_response`.
TAKEN_AS_KNOWN_NOTE = Note(
    "taken_as_known",
    "Performances have no unit of their own: it is chosen so that they have a standard deviation of 1.4. If your "
    "systems are more alike or more different than that, the order is right, but not the distances. The errors allow "
    "for this choice and for what is unknown about judges and segments: in simulations, 94 to 98 of 100 intervals "
    "contained the performance. An error that all systems share is in each interval, so two systems can differ "
    "although their intervals overlap.",
)
ANY_SEGMENT = "any"  # the segment of items that name none


@dataclass(frozen=True)
class GradedFit:
    """A fit: the names behind its numbers, how often each was judged, and the notes by name.

    `systems` omits the baseline, whose place among them is `baseline_place`.
    """

    baseline: str
    baseline_place: int
    systems: list[str]
    segments: list[str]
    fit: GradedResponse
    judgments_by_system: Integers
    judgments_by_annotator: Integers
    judgments_by_segment: Integers
    notes: tuple[Note, ...]


def build_graded_system_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per system; the baseline has no judgments against itself and no score."""
    graded_fit = fit_graded_response(answers, options.baseline)
    score, error = graded_fit.fit.score, graded_fit.fit.standard_error
    columns = (
        Column("system", "System", "text"),
        Column("role", "Role", "text"),
        Column("judgments", "Judgments against the baseline", "count"),
        Column("score", "Performance"),
        Column("low", "Low (95 %)"),
        Column("high", "High (95 %)"),
        Column("standard_error", "Standard error"),
    )
    values = (graded_fit.judgments_by_system, score, score - Z * error, score + Z * error, error)
    rows = columns_to_cell_rows(graded_fit.systems, ["system"] * len(graded_fit.systems), *values)
    rows.insert(graded_fit.baseline_place, (graded_fit.baseline, "baseline", *(None for _ in values)))
    return ResultTable(columns, rows, (*graded_fit.notes, TAKEN_AS_KNOWN_NOTE))


def build_graded_annotator_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per annotator."""
    graded_fit = fit_graded_response(answers, options.baseline)
    columns = (
        Column("annotator", "Pseudonym", "text"),
        Column("name", "Annotator", "text"),
        Column("judgments", "Judgments against the baseline", "count"),
        Column("sensitivity", "Sensitivity"),
        Column("standard_error", "Standard error"),
    )
    fit = graded_fit.fit
    rows = columns_to_cell_rows(
        answers.annotators,
        answers.names,
        graded_fit.judgments_by_annotator,
        fit.sensitivity,
        fit.sensitivity_standard_error,
    )
    return ResultTable(columns, rows, graded_fit.notes)


def build_graded_segment_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per segment."""
    graded_fit = fit_graded_response(answers, options.baseline)
    columns = (
        Column("segment", "Segment", "text"),
        Column("judgments", "Judgments against the baseline", "count"),
        Column("not_losing", "Difficulty of not losing"),
        Column("not_losing_error", "Standard error of not losing"),
        Column("winning", "Difficulty of winning"),
        Column("winning_error", "Standard error of winning"),
        Column("information", "Information about a typical system"),
    )
    difficulty, error = graded_fit.fit.difficulty.T, graded_fit.fit.difficulty_standard_error.T
    information = item_information(np.nanmean(graded_fit.fit.score), graded_fit.fit.difficulty)
    rows = columns_to_cell_rows(
        graded_fit.segments,
        graded_fit.judgments_by_segment,
        difficulty[0],
        error[0],
        difficulty[1],
        error[1],
        information,
    )
    return ResultTable(columns, rows, graded_fit.notes)


@dataclass(frozen=True)
class SystemComparisons:
    """Judgments of two outputs for one segment, (R,) each.

    Systems, annotators and segments are numbers. The outcome is +1 if the first is preferred, 0 for a tie, else -1.
    """

    first: Integers
    second: Integers
    outcomes: Integers
    annotators: Integers
    segments: Integers


@cache_last_result
def fit_graded_response(answers: Answers, baseline: str | None) -> GradedFit:
    """Return the graded-response fit of all systems' outputs against the baseline.

    Raises:
        Inestimable: `no_systems`, `no_shared_segments`, `no_such_system`, or the code of the fit.

    """
    refuse_without_answers(answers)
    always_shown = answers.always_shown
    systems, system = distinct_names_and_indices_or_minus_one(
        names_with_replacements_for_none(answers.systems, answers.ids) if always_shown else answers.systems
    )
    segments, segment = distinct_names_and_indices_or_minus_one(
        segments_or_none_for_always_shown(answers) if always_shown else answers.segments
    )
    comparisons = (
        judged_pairs_with_always_shown_item(always_shown[0], answers, system, segment)
        if always_shown
        else judged_pairs_within_segments(answers, system, segment)
    )
    baseline_number = (
        int(system[always_shown[0]])
        if always_shown
        else index_of_named_or_most_compared_baseline(systems, baseline, comparisons.first, comparisons.second)
    )
    baseline_rows, compared_system, outcomes = positions_opponents_and_outcomes_of_baseline(
        baseline_number, comparisons.first, comparisons.second, comparisons.outcomes
    )
    if not len(baseline_rows):
        raise Inestimable(
            f"No annotator has judged the baseline “{shorten_echo(systems[baseline_number])}” and another system "
            "on the same segment.",
            code="no_shared_segments",
        )
    judge, judged_segment = comparisons.annotators[baseline_rows], comparisons.segments[baseline_rows]
    baseline = systems.pop(baseline_number)
    compared_system = compared_system - (compared_system > baseline_number)
    sizes = len(systems), answers.n_annotators, len(segments)
    fit = graded_response.fit(
        compared_system, judge, judged_segment, outcomes, n_items=sizes[0], n_annotators=sizes[1], n_segments=sizes[2]
    )
    names = {"system": systems, "judge": answers.names, "segment": segments}
    by_system, by_annotator, by_segment = (
        np.bincount(column, minlength=size)
        for column, size in zip((compared_system, judge, judged_segment), sizes, strict=True)
    )
    notes = (
        *notes_naming_baseline_and_advising_on_it(baseline, outcomes),
        *notes_on_reading_as_kind(answers, "order"),
        *notes_with_names(fit.notes, names),
    )
    return GradedFit(baseline, baseline_number, systems, segments, fit, by_system, by_annotator, by_segment, notes)


def names_with_replacements_for_none(names: Sequence[str | None], replacements: Sequence[str]) -> list[str]:
    """Return the names, with a replacement where there is none."""
    return [other if name is None else name for name, other in zip(names, replacements, strict=True)]


def segments_or_none_for_always_shown(answers: Answers) -> list[str | None]:
    """Return the segment of each item; None for items in every HIT, which belong to all segments."""
    names = names_with_replacements_for_none(answers.segments, [ANY_SEGMENT] * answers.n_items)
    return [None if item in answers.always_shown else name for item, name in enumerate(names)]


def judged_pairs_with_always_shown_item(
    always_shown_item: int, answers: Answers, system_of_item: Integers, segment_of_item: Integers
) -> SystemComparisons:
    """Return the pairs of the item that every HIT shows with each other item, in the other item's segment.

    Arguments as in `judged_pairs_within_segments`.
    """
    first, second, outcomes, hits = preference_pair_columns(answers)
    annotators, where = (
        answers.annotator_index_of_each_hit[hits],
        segment_of_item[np.where(first == always_shown_item, second, first)],
    )
    is_kept = ((first == always_shown_item) | (second == always_shown_item)) & (
        system_of_item[first] != system_of_item[second]
    )
    return SystemComparisons(
        *(column[is_kept] for column in (system_of_item[first], system_of_item[second], outcomes, annotators, where))
    )


def judged_pairs_within_segments(
    answers: Answers, system_of_item: Integers, segment_of_item: Integers
) -> SystemComparisons:
    """Return the pairs of different systems' outputs for one segment that were judged together.

    Args:
        answers: The campaign's answers.
        system_of_item: Number of each item's system, (N,), -1 for none.
        segment_of_item: Number of each item's segment, (N,), -1 for none.

    Raises:
        Inestimable: `no_systems`.

    """
    has_both = mask_of_items_with_system_and_segment(answers)[answers.item]
    if not has_both.any():
        raise Inestimable(
            "This needs items with the columns “system” and “segment”, which name the system that produced each "
            "item and its segment. The items of this campaign have none.",
            code="no_systems",
        )
    item, annotator = answers.item[has_both], answers.annotator[has_both]
    answered_together = annotator if can_read_answers_as("points", answers.value_kind) else answers.hit[has_both]
    groups = answered_together * (segment_of_item.max() + 1) + segment_of_item[item]
    _, start, group = np.unique(groups, return_index=True, return_inverse=True)
    first, second, outcomes, group = preference_pair_columns_within_groups(
        answers, group, system_of_item[item], answers.scores_between_0_and_1[has_both]
    )
    differs, first_judgment = first != second, start[group]
    return SystemComparisons(
        *(
            column[differs]
            for column in (first, second, outcomes, annotator[first_judgment], segment_of_item[item][first_judgment])
        )
    )


def notes_naming_baseline_and_advising_on_it(baseline: str, outcomes: Integers) -> tuple[Note, Note]:
    """Return notes that name the baseline and say whether it is a good choice."""
    sentence = (
        f"The baseline is “{shorten_echo(baseline)}”, which has no score. A performance of 0 is what the "
        "model expects of a system before any judgment; it is not the baseline’s."
    )
    return Note("baseline", sentence), Note("baseline_advice", baseline_advice(outcomes).sentence)


def mask_of_items_with_system_and_segment(answers: Answers) -> Mask:
    """Return which items name both their system and their segment, (N,)."""
    both = zip(answers.systems, answers.segments, strict=True)
    return np.array([system is not None and segment is not None for system, segment in both], np.bool_)


def distinct_names_and_indices_or_minus_one(names: Sequence[str | None]) -> tuple[list[str], Integers]:
    """Return the distinct names in order, and the number of each entry's name; -1 for None."""
    distinct = sorted({name for name in names if name is not None}, key=natural_sort_key)
    number = {name: k for k, name in enumerate(distinct)}
    return distinct, np.array([-1 if name is None else number[name] for name in names], np.intp)


def index_of_named_or_most_compared_baseline(
    systems: list[str], baseline_name: str | None, first_systems: Integers, second_systems: Integers
) -> int:
    """Return the number of the named system, else of the one with most comparisons; ties go to the first name."""
    if baseline_name is None:
        counts = np.bincount(np.concatenate([first_systems, second_systems]), minlength=len(systems))
        return int(counts.argmax())
    if baseline_name not in systems:
        raise Inestimable(f"No item belongs to a system “{shorten_echo(baseline_name)}”.", code="no_such_system")
    return systems.index(baseline_name)


GRADED_SECTION = TableSection("graded_response", "Graded response", options=("baseline",))
GRADED_REQUIRED_COLUMNS = ("system", "segment")

GRADED_SYSTEM_TABLE = TableMethod(
    GRADED_SECTION,
    "Systems",
    "The performance of systems whose outputs for the same segments were judged by the same annotators, each "
    "compared with one baseline (Otani et al. 2016). It needs the columns system and segment, or a baseline that is in "
    "every task.",
    build_graded_system_table,
    reads=("order", "points"),
    options=("baseline",),
    required_columns=GRADED_REQUIRED_COLUMNS,
    dot_plot=DotPlotColumn("score"),
)

GRADED_ANNOTATOR_TABLE = TableMethod(
    GRADED_SECTION,
    "Sensitivity of annotators",
    (
        "How sharply each annotator distinguishes systems from the baseline; near 0 for an annotator who answers at "
        "random."
    ),
    build_graded_annotator_table,
    reads=("order", "points"),
    options=("baseline",),
    shows_annotators=True,
    required_columns=GRADED_REQUIRED_COLUMNS,
    dot_plot=DotPlotColumn("sensitivity"),
)

GRADED_SEGMENT_TABLE = TableMethod(
    GRADED_SECTION,
    "Difficulty of segments",
    "The performance that gives a system an even chance of not losing to the baseline on a segment, and the "
    "performance that gives it an even chance of winning.",
    build_graded_segment_table,
    reads=("order", "points"),
    options=("baseline",),
    required_columns=GRADED_REQUIRED_COLUMNS,
)
