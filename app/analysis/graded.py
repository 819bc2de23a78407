"""The graded response model where items are outputs of systems for segments: systems, annotators, segments.

Two outputs for one segment that the same annotator judged are a judgment of that pair: in one HIT or in two where
annotators give scores, of which the higher is preferred, and scores within the tie margin are a tie; where they give
places, in one HIT. Judgments with the baseline in them are used.

Where a design shows one item in every HIT, that is the baseline of all segments, and an item without such columns is a
system of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from app.analysis.coarsened import reached, read_as
from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Answers, Column, Mask, Options, ResultTable, once, rows_of
from app.analysis.naming import in_order
from app.analysis.pairwise import pairs_among, pairs_of
from app.analysis.scores import require_answers
from app.errors import shortened
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, named
from app.inference.observations.baseline import against, baseline_advice
from app.inference.systems import graded_response
from app.inference.systems.graded_response import GradedResponse, item_information

Z = float(ndtri(0.975))
# How often: `python -m benchmarks.coverage_of_models`.
TAKEN_AS_KNOWN = Note(
    "taken_as_known",
    "The errors of performances take how sensitive judges are and how difficult segments are as known, so the "
    "intervals are too narrow: in simulations 53 to 90 of 100 held the performance that very many judgments give.",
)
ANY = "any"  # the segment of items that name none


@dataclass(frozen=True)
class Graded:
    """A fit: what its numbers stand for, how often each was judged, and the notes by name.

    systems: without the baseline, whose place among them is `place`.
    """

    baseline: str
    place: int
    systems: list[str]
    segments: list[str]
    fit: GradedResponse
    by_system: Integers
    by_annotator: Integers
    by_segment: Integers
    notes: tuple[Note, ...]


def systems(answers: Answers, options: Options) -> ResultTable:
    """One row per system; the baseline has no judgments against itself and no score."""
    found = fitted(answers, options.baseline)
    score, error = found.fit.score, found.fit.standard_error
    columns = (
        Column("system", "System", "text"),
        Column("role", "Role", "text"),
        Column("judgments", "Judgments against the baseline", "count"),
        Column("score", "Performance"),
        Column("low", "Low (95 %)"),
        Column("high", "High (95 %)"),
        Column("standard_error", "Standard error"),
    )
    values = (found.by_system, score, score - Z * error, score + Z * error, error)
    rows = rows_of(found.systems, ["system"] * len(found.systems), *values)
    rows.insert(found.place, (found.baseline, "baseline", *(None for _ in values)))
    return ResultTable(columns, rows, (*found.notes, TAKEN_AS_KNOWN))


def annotators(answers: Answers, options: Options) -> ResultTable:
    """One row per annotator."""
    found = fitted(answers, options.baseline)
    columns = (
        Column("annotator", "Pseudonym", "text"),
        Column("name", "Annotator", "text"),
        Column("judgments", "Judgments against the baseline", "count"),
        Column("sensitivity", "Sensitivity"),
        Column("standard_error", "Standard error"),
    )
    fit = found.fit
    rows = rows_of(
        answers.annotators, answers.names, found.by_annotator, fit.sensitivity, fit.sensitivity_standard_error
    )
    return ResultTable(columns, rows, found.notes)


def segments(answers: Answers, options: Options) -> ResultTable:
    """One row per segment."""
    found = fitted(answers, options.baseline)
    columns = (
        Column("segment", "Segment", "text"),
        Column("judgments", "Judgments against the baseline", "count"),
        Column("not_losing", "Difficulty of not losing"),
        Column("not_losing_error", "Standard error of that"),
        Column("winning", "Difficulty of winning"),
        Column("winning_error", "Standard error of this"),
        Column("information", "Information about a typical system"),
    )
    difficulty, error = found.fit.difficulty.T, found.fit.difficulty_standard_error.T
    told = item_information(np.nanmean(found.fit.score), found.fit.difficulty)
    rows = rows_of(found.segments, found.by_segment, difficulty[0], error[0], difficulty[1], error[1], told)
    return ResultTable(columns, rows, found.notes)


@dataclass(frozen=True)
class Compared:
    """Judgments of two outputs for one segment, (R,) each: systems by number, the outcome (+1 the first is preferred, 0
    a tie, -1), who judged, of which segment.
    """

    first: Integers
    second: Integers
    outcomes: Integers
    who: Integers
    where: Integers


@once
def fitted(answers: Answers, baseline: str | None) -> Graded:
    """The fit; raises `Inestimable` (`no_systems`, `no_shared_segments`, `no_such_system`, or that of the fit)."""
    require_answers(answers)
    shown = answers.always_shown
    systems, system = numbers_of(filled(answers.systems, answers.ids) if shown else answers.systems)
    segments, segment = numbers_of(of_others(answers) if shown else answers.segments)
    found = beside(shown[0], answers, system, segment) if shown else compared(answers, system, segment)
    chosen = int(system[shown[0]]) if shown else baseline_of(systems, baseline, found.first, found.second)
    rows, other, outcomes = against(chosen, found.first, found.second, found.outcomes)
    if not len(rows):
        raise Inestimable(
            f"Nobody has judged the baseline “{shortened(systems[chosen])}” and another system on the same segment.",
            code="no_shared_segments",
        )
    who, where = found.who[rows], found.where[rows]
    baseline = systems.pop(chosen)
    other = other - (other > chosen)
    sizes = len(systems), answers.n_annotators, len(segments)
    fit = graded_response.fit(other, who, where, outcomes, n_items=sizes[0], n_annotators=sizes[1], n_segments=sizes[2])
    names = {"system": systems, "judge": answers.names, "segment": segments}
    by_system, by_annotator, by_segment = (
        np.bincount(column, minlength=size) for column, size in zip((other, who, where), sizes, strict=True)
    )
    notes = (*about(baseline, outcomes), *read_as(answers, "order"), *named(fit.notes, names))
    return Graded(baseline, chosen, systems, segments, fit, by_system, by_annotator, by_segment, notes)


def filled(names: Sequence[str | None], others: Sequence[str]) -> list[str]:
    """The names, and where there is none the other one."""
    return [other if name is None else name for name, other in zip(names, others, strict=True)]


def of_others(answers: Answers) -> list[str | None]:
    """The segment of each item but those that are in every HIT, which are of all."""
    names = filled(answers.segments, [ANY] * answers.n_items)
    return [None if item in answers.always_shown else name for item, name in enumerate(names)]


def beside(shown: int, answers: Answers, system: Integers, segment: Integers) -> Compared:
    """The pairs with the item that every HIT shows, each of the other item's segment. Arguments as `compared`."""
    first, second, outcomes, hits = pairs_of(answers)
    who, where = answers.annotator_of_hit[hits], segment[np.where(first == shown, second, first)]
    kept = ((first == shown) | (second == shown)) & (system[first] != system[second])
    return Compared(*(column[kept] for column in (system[first], system[second], outcomes, who, where)))


def compared(answers: Answers, system: Integers, segment: Integers) -> Compared:
    """The pairs of different systems' outputs for one segment that were judged together. system, segment: (N,) the
    numbers of each item's, -1 for none. Raises `Inestimable` (`no_systems`).
    """
    has_both = has_system_and_segment(answers)[answers.item]
    if not has_both.any():
        raise Inestimable(
            "This needs items with the columns “system” and “segment”, which say what made an item and from what. The "
            "items of this campaign have none.",
            code="no_systems",
        )
    item, who = answers.item[has_both], answers.annotator[has_both]
    together = who if reached("points", answers.yields) else answers.hit[has_both]
    groups = together * (segment.max() + 1) + segment[item]
    _, start, group = np.unique(groups, return_index=True, return_inverse=True)
    first, second, outcomes, group = pairs_among(answers, group, system[item], answers.unit_score[has_both])
    apart, of = first != second, start[group]
    return Compared(*(column[apart] for column in (first, second, outcomes, who[of], segment[item][of])))


def about(baseline: str, outcomes: Integers) -> tuple[Note, Note]:
    """What the baseline is, and whether it was a good choice."""
    sentence = (
        f"The baseline is “{shortened(baseline)}”, which has no score of its own. A performance of 0 is what the "
        "model expects of a system before any judgment; it is not the baseline’s."
    )
    return Note("baseline", sentence), Note("baseline_advice", baseline_advice(outcomes).sentence)


def has_system_and_segment(answers: Answers) -> Mask:
    """(N,) which items name what made them and from what."""
    both = zip(answers.systems, answers.segments, strict=True)
    return np.array([system is not None and segment is not None for system, segment in both], np.bool_)


def numbers_of(names: Sequence[str | None]) -> tuple[list[str], Integers]:
    """The different names in order, and for each entry the number of its own; -1 for None."""
    distinct = sorted({name for name in names if name is not None}, key=in_order)
    number = {name: k for k, name in enumerate(distinct)}
    return distinct, np.array([-1 if name is None else number[name] for name in names], np.intp)


def baseline_of(systems: list[str], wanted: str | None, first: Integers, second: Integers) -> int:
    """The number of the system wanted, else of the one with most comparisons, of equal ones the first by name."""
    if wanted is None:
        counts = np.bincount(np.concatenate([first, second]), minlength=len(systems))
        return int(counts.argmax())
    if wanted not in systems:
        raise Inestimable(f"No item is of a system “{shortened(wanted)}”.", code="no_such_system")
    return systems.index(wanted)


SECTION = TableSection("graded_response", "Graded response", asks=("baseline",))
NEEDS = ("system", "segment")

SYSTEMS = TableMethod(
    SECTION,
    "Systems",
    "The performance of systems whose outputs for the same segments were judged by the same annotators, each "
    "compared with one baseline (Otani et al. 2016). It needs the columns system and segment, or a baseline that is in "
    "every HIT.",
    systems,
    reads=("order", "points"),
    options=("baseline",),
    needs=NEEDS,
    drawn=Drawn("score"),
)

ANNOTATORS = TableMethod(
    SECTION,
    "Sensitivity of annotators",
    "How sharply each annotator tells systems from the baseline; near 0 for one who answers at random.",
    annotators,
    reads=("order", "points"),
    options=("baseline",),
    of_people=True,
    needs=NEEDS,
    drawn=Drawn("sensitivity"),
)

SEGMENTS = TableMethod(
    SECTION,
    "Difficulty of segments",
    "What performance it takes not to lose to the baseline on a segment, and what to win, in each case with a "
    "chance of one half.",
    segments,
    reads=("order", "points"),
    options=("baseline",),
    needs=NEEDS,
)
