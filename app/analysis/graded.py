"""The graded response model where items are outputs of systems for segments: systems, annotators, segments.

Two outputs for one segment that the same annotator scored, in one HIT or in two, are a judgment: the higher score is
preferred, and scores within the tie margin are a tie. Judgments with the baseline in them are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Answers, Column, Mask, Options, ResultTable, once, rows_of
from app.analysis.naming import in_order
from app.analysis.scores import require_answers
from app.errors import shortened
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, named
from app.inference.observations import comparisons
from app.inference.observations.baseline import against, baseline_advice
from app.inference.systems import graded_response
from app.inference.systems.graded_response import GradedResponse, item_information

Z = float(ndtri(0.975))


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
    return ResultTable(columns, rows, found.notes)


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


@once
def fitted(answers: Answers, baseline: str | None) -> Graded:
    """The fit; raises `Inestimable` (`no_systems`, `no_shared_segments`, `no_such_system`, or that of the fit)."""
    require_answers(answers)
    systems, system = numbers_of(answers.systems)
    segments, segment = numbers_of(answers.segments)
    has_both = has_system_and_segment(answers)[answers.item]
    if not has_both.any():
        raise Inestimable(
            "This needs items with the columns “system” and “segment”, which say what made an item and from what. The "
            "items of this campaign have none.",
            code="no_systems",
        )
    item, score = answers.item[has_both], answers.unit_score[has_both]
    place, group = np.unique(answers.annotator[has_both] * len(segments) + segment[item], return_inverse=True)
    first, second, outcomes, group = comparisons.of_hits(
        group, system[item], score, tie_margin=answers.parameters.tie_margin
    )
    apart = first != second
    first, second, outcomes, group = (column[apart] for column in (first, second, outcomes, group))
    chosen = baseline_of(systems, baseline, first, second)
    rows, other, outcomes = against(chosen, first, second, outcomes)
    if not len(rows):
        raise Inestimable(
            f"Nobody has judged the baseline “{shortened(systems[chosen])}” and another system on the same segment.",
            code="no_shared_segments",
        )
    who, where = np.divmod(place[group[rows]], len(segments))
    baseline = systems.pop(chosen)
    other = other - (other > chosen)
    sizes = len(systems), answers.n_annotators, len(segments)
    fit = graded_response.fit(other, who, where, outcomes, n_items=sizes[0], n_annotators=sizes[1], n_segments=sizes[2])
    names = {"system": systems, "judge": answers.names, "segment": segments}
    by_system, by_annotator, by_segment = (
        np.bincount(column, minlength=size) for column, size in zip((other, who, where), sizes, strict=True)
    )
    about = (
        f"The baseline is “{shortened(baseline)}”, which has no score of its own. A performance of 0 is what the "
        "model expects of a system before any judgment; it is not the baseline’s."
    )
    advice = Note("baseline_advice", baseline_advice(outcomes).sentence)
    notes = (Note("baseline", about), advice, *named(fit.notes, names))
    return Graded(baseline, chosen, systems, segments, fit, by_system, by_annotator, by_segment, notes)


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
    "compared with one baseline (Otani et al. 2016). It needs the columns system and segment.",
    systems,
    reads=("baseline",),
    needs=NEEDS,
    drawn=Drawn("score"),
)

ANNOTATORS = TableMethod(
    SECTION,
    "Sensitivity of annotators",
    "How sharply each annotator tells systems from the baseline; near 0 for one who answers at random.",
    annotators,
    reads=("baseline",),
    needs=NEEDS,
    drawn=Drawn("sensitivity"),
)

SEGMENTS = TableMethod(
    SECTION,
    "Difficulty of segments",
    "What performance it takes not to lose to the baseline on a segment, and what to win, in each case with a "
    "chance of one half.",
    segments,
    reads=("baseline",),
    needs=NEEDS,
)
