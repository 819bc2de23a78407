"""Whether judgments fit together: transitivity, the same judged again, a scale from preferences."""

from collections.abc import Callable, Iterable

import numpy as np

from app.analysis.annotator_table import transitivity_fit
from app.analysis.coarsened import labels_of, reached, read_as
from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Answers, Cell, Column, Options, ResultTable, cell, rows_of
from app.analysis.pairwise import pairs_of
from app.analysis.scores import require_answers
from app.drawing import COEFFICIENTS, SHARES
from app.inference.agreement import retest
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, named
from app.inference.observations.coarsening import Reads
from app.inference.preferences import relative_to_absolute
from app.inference.preferences.relative_to_absolute import AbsoluteScores

COLUMNS = (
    Column("measure", "Name", "text"),
    Column("title", "Measure", "text"),
    Column("value", "Value"),
    Column("rests_on", "Rests on", "count"),
    Column("of", "of these", "text"),
    Column("sentence", "What it tells", "sentence"),
)

Rows = list[tuple[Cell, ...]]

TRANSITIVE = (
    "Of three items whose pairs one annotator judged in three different HITs: 1 if at least as good as always carries "
    "over, 0 if as often as by chance. Pairs of one HIT fit together by construction and are left out."
)
WITHOUT_TIES = "The same for triads in which no pair is a tie."
SAME = "The share of repeated judgments no further from the first than the tie margin."
SHIFT = "How much higher the same annotator scores the same item the next time, in points."
ERROR = "How far one score lies from what the annotator would say in the long run, in points."
AGAIN = "Pearson’s correlation of the scores before with those after."
PAIRS_SAME = "The share of pairs of items judged again by the same annotator with the same outcome."
PAIRS_KAPPA = "The same beyond chance, where 0 is chance and 1 is always."
LABELS_SAME = "The share of items judged again by the same annotator that got the same label."
LABELS_KAPPA = PAIRS_KAPPA
MIRRORED = "All preferences, by majority, fit on one scale, on which so many items have a place."
NOT_MIRRORED = "There is none; the table “Scale from preferences” says why."


def fit(answers: Answers, _options: Options) -> ResultTable:
    """One row per measure; where one cannot be estimated, its sentence says why."""
    require_answers(answers)
    rows: Rows = []
    notes: list[Note] = []
    parts = [(kind, part) for kind, part in PARTS if reached(kind, answers.yields)]
    for kind, part in parts or [("classes", labels_again)]:
        found, more = part(answers)
        notes += read_as(answers, kind)
        rows += found
        notes += more
    return ResultTable(COLUMNS, rows, tuple(dict.fromkeys(notes)))


def scale(answers: Answers, _options: Options) -> ResultTable:
    """One row per item; raises `Inestimable` (`no_scale`) with the cycle or the missing pairs that forbid it."""
    found = scale_of(answers)
    columns = (Column("id", "Id", "text"), Column("text", "Item", "text"), Column("score", "At least as good as"))
    notes = (*read_as(answers, "order"), *found.notes)
    return ResultTable(columns, rows_of(answers.ids, answers.shown, found.score), notes)


Part = Callable[[Answers], tuple[Rows, Iterable[Note]]]


def refused(name: str, title: str, of: str, reason: Inestimable) -> tuple[Rows, Iterable[Note]]:
    return [(name, title, None, 0, of, str(reason))], ()


def transitive(answers: Answers) -> tuple[Rows, Iterable[Note]]:
    """Kappa over all annotators' triads."""
    name, title = "transitivity", "Transitivity kappa"
    try:
        found = transitivity_fit(answers)
    except Inestimable as reason:
        return refused(name, title, "triads", reason)
    triads, others = int(found.triads.sum()), int(found.triads_without_ties.sum())
    return [
        (name, title, cell(found.pooled_kappa), triads, "triads", TRANSITIVE),
        (f"{name}_without_ties", f"{title} without ties", cell(found.pooled_kappa_without_ties), others, "triads",
         WITHOUT_TIES),
    ], found.notes  # fmt: skip


def again(answers: Answers) -> tuple[Rows, Iterable[Note]]:
    """Scores of items that an annotator met again."""
    margin = answers.parameters.tie_margin
    try:
        found = retest.scores(answers.item, answers.annotator, answers.unit_score, margin=margin)
    except Inestimable as reason:
        return refused("retest", "Scores given again", "repeats", reason)
    measures = (
        ("retest_same", "Same score again", found.pooled_same, SAME),
        ("retest_shift", "Shift of scores given again", 100.0 * found.pooled_shift, SHIFT),
        ("retest_error", "Standard error of measurement", 100.0 * found.pooled_error, ERROR),
        ("retest_correlation", "Correlation of scores given again", found.pooled_correlation, AGAIN),
    )
    return rows_on(measures, int(found.repeats.sum()), "repeats"), found.notes


def pairs_again(answers: Answers) -> tuple[Rows, Iterable[Note]]:
    """Pairs of items that an annotator met again."""
    try:
        first, second, outcomes, hits = pairs_of(answers)
        found = retest.pairs(first, second, outcomes, answers.annotator_of_hit[hits])
    except Inestimable as reason:
        return refused("pairs_again", "Pairs judged again", "repeats", reason)
    measures = (
        ("pairs_again_same", "Same preference again", found.pooled_same, PAIRS_SAME),
        ("pairs_again_kappa", "Kappa of preferences judged again", found.pooled_kappa, PAIRS_KAPPA),
    )
    return rows_on(measures, int(found.repeats.sum()), "repeats"), found.notes


def labels_again(answers: Answers) -> tuple[Rows, Iterable[Note]]:
    """Labels of items that an annotator met again."""
    try:
        found = retest.labels(answers.item, answers.annotator, labels_of(answers, 0))
    except Inestimable as reason:
        return refused("labels_again", "Labels given again", "repeats", reason)
    measures = (
        ("labels_again_same", "Same label again", found.pooled_same, LABELS_SAME),
        ("labels_again_kappa", "Kappa of labels given again", found.pooled_kappa, LABELS_KAPPA),
    )
    return rows_on(measures, int(found.repeats.sum()), "repeats"), found.notes


def rows_on(measures: Iterable[tuple[str, str, float, str]], count: int, of: str) -> Rows:
    return [(name, title, cell(value), count, of, sentence) for name, title, value, sentence in measures]


def mirrored(answers: Answers) -> tuple[Rows, Iterable[Note]]:
    """Whether the preferences fit on one scale."""
    name, title = "scale", "Items on a scale from preferences"
    try:
        found = scale_of(answers)
    except Inestimable:
        return [(name, title, None, 0, "items", NOT_MIRRORED)], ()
    placed = int(np.count_nonzero(found.estimable))
    return [(name, title, float(placed), placed, "items", MIRRORED)], found.notes


def scale_of(answers: Answers) -> AbsoluteScores:
    """The scale, with items by their names in the notes; raises `Inestimable` (`no_scale`) if there is none."""
    first, second, outcomes, _ = pairs_of(answers)
    found = relative_to_absolute.fit(first, second, outcomes, n_items=answers.n_items)
    notes = named(found.notes, {"item": answers.ids})
    if not found.estimable.any():
        raise Inestimable(notes[-1], code="no_scale")
    return AbsoluteScores(found.score, found.estimable, found.cycle, notes)


PARTS: tuple[tuple[Reads, Part], ...] = (
    ("order", transitive), ("points", again), ("order", pairs_again), ("order", mirrored),
)  # fmt: skip

SECTION = TableSection("consistency", "Consistency")

CONSISTENCY = TableMethod(
    SECTION,
    "Consistency",
    "Whether judgments of different HITs fit together: of three items, and of the same item judged again. "
    "Consistent is not yet right.",
    fit,
    reads=("order", "classes"),
    # Shares are no coefficients, and what is in points or items no common axis holds.
    drawn=Drawn(
        "value",
        COEFFICIENTS,
        dict.fromkeys(("retest_same", "pairs_again_same", "labels_again_same"), SHARES)
        | dict.fromkeys(("retest_shift", "retest_error", "scale")),
    ),
    room=lambda _: 6,
)

SCALE = TableMethod(
    SECTION,
    "Scale from preferences",
    "For each item, how many others it is at least as good as by the majority of judgments: a scale that mirrors "
    "all preferences, where there is one.",
    scale,
    reads=("order",),
    per_item=True,
)
