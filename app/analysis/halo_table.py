"""Table of halo: how far judgments by one criterion move with those by another."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from app.analysis.answer_kinds import can_read_answers_as
from app.analysis.chart_axes import COEFFICIENT_AXIS
from app.analysis.method_types import DotPlotColumn, MethodExport, TableMethod, TableSection
from app.analysis.result_types import Answers, Cell, Column, Options, ResultTable, to_cells
from app.analysis.scores import MIN_BOOTSTRAP_DRAWS, choose_bootstrap_draw_count, refuse_without_answers
from app.analysis.view import format_interval
from app.inference.agreement import halo
from app.inference.agreement.halo import HaloEstimate
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.text.numbers import format_with_places

MAX_PAIRS_WITH_ALL_DRAWS = 10  # of five criteria

HALO_COLUMNS = (
    Column("one", "Criterion", "text"),
    Column("other", "and", "text"),
    Column("within", "Within items"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("judgments", "Judgments", "count"),
    Column("item_means", "Item means"),
    Column("item_means_low", "Item means, low (95 %)"),
    Column("item_means_high", "Item means, high (95 %)"),
    Column("items", "Items", "count"),
)

SAME_ITEMS_NOTE = Note(
    "same_items_side_by_side",
    (
        "Answers are orders of the items shown together, so within items, only answers about the same set of items are "
        "compared."
    ),
)


class CriterionPair(NamedTuple):
    """Two criteria: how far they correlate within items, and the correlation of the items' means."""

    criterion: str
    other_criterion: str
    within_items: HaloEstimate
    item_means: HaloEstimate

    @property
    def quoted_names(self) -> str:
        return f"“{self.criterion}” and “{self.other_criterion}”"

    @property
    def is_estimable(self) -> bool:
        return self.within_items.judgments >= halo.MIN_HALO_JUDGMENTS and bool(np.isfinite(self.within_items.value))

    @property
    def has_halo(self) -> bool:
        return halo.is_strong_halo(self.within_items.value, self.within_items.judgments)


def build_halo_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row for each two criteria.

    Raises:
        Inestimable: `one_criterion`, `no_judgments`.

    """
    refuse_without_answers(answers)
    if len(answers.scores_by_criterion) < 2:
        sentence = "This campaign has only one criterion, so there is nothing to compare."
        raise Inestimable(sentence, code="one_criterion")
    compared_judgments, item_groups = compared_judgment_indices_and_item_groups(answers)
    criterion_pairs = [
        criterion_pair_with_correlation_and_halo(answers, two, compared_judgments, item_groups)
        for two in combinations(answers.scores_by_criterion, 2)
    ]
    rows = [
        (
            two.criterion,
            two.other_criterion,
            *halo_cells(two.within_items),
            two.within_items.judgments,
            *halo_cells(two.item_means),
            two.item_means.items,
        )
        for two in criterion_pairs
    ]
    notes = [] if can_read_answers_as("points", answers.value_kind) else [SAME_ITEMS_NOTE]
    notes += [note for two in criterion_pairs for note in halo_notes(two)]
    return ResultTable(HALO_COLUMNS, rows, tuple(dict.fromkeys(notes)), sentence_on_halo_or_empty(criterion_pairs))


def criterion_pair_with_correlation_and_halo(
    answers: Answers, criterion_names: tuple[str, str], compared_judgments: Integers, item_groups: Integers
) -> CriterionPair:
    scores, other_scores = (answers.scores_by_criterion[name] for name in criterion_names)
    draw_count = choose_halo_draw_count(answers)
    within = halo.measure_halo(
        item_groups,
        scores[compared_judgments],
        other_scores[compared_judgments],
        draws=draw_count,
        rng=answers.seeded_rng(),
    )
    of_means = halo.correlate_item_means(answers.item, scores, other_scores, draws=draw_count, rng=answers.seeded_rng())
    return CriterionPair(*criterion_names, within, of_means)


def choose_halo_draw_count(answers: Answers) -> int:
    """Return how many bootstrap draws each pair of criteria gets: fewer if there are many pairs, as with 12 labels."""
    pair_count = comb(len(answers.scores_by_criterion), 2)
    draw_count = choose_bootstrap_draw_count(len(answers.item))
    return max(MIN_BOOTSTRAP_DRAWS, draw_count * MAX_PAIRS_WITH_ALL_DRAWS // max(pair_count, MAX_PAIRS_WITH_ALL_DRAWS))


def compared_judgment_indices_and_item_groups(answers: Answers) -> tuple[Integers, Integers]:
    """Return which judgments are compared, and in which group each belongs, (K,) each.

    Judgments of one group differ only in their annotator: they concern the same item or, for orders, the same item
    shown with the same others. The last place of a HIT follows from the other places and is left out.
    """
    if can_read_answers_as("points", answers.value_kind):
        return np.arange(len(answers.item)), answers.item
    bounds = [*answers.first_judgment_index_of_each_hit.tolist(), len(answers.item)]
    items_of_hits = [tuple(sorted(answers.item[start:end].tolist())) for start, end in pairwise(bounds)]
    numbers = {items: number for number, items in enumerate(dict.fromkeys(items_of_hits))}
    company = np.array([numbers[items] for items in items_of_hits], np.intp)[answers.hit]
    last = np.array([items[-1] for items in items_of_hits], np.intp)[answers.hit]
    compared_judgments = np.flatnonzero(answers.item != last)
    return compared_judgments, np.unique(
        (company * answers.n_items + answers.item)[compared_judgments], return_inverse=True
    )[1]


def halo_cells(figure: HaloEstimate) -> list[Cell]:
    return to_cells((figure.value, figure.low, figure.high))


def halo_notes(criterion_pair: CriterionPair) -> list[Note]:
    """Return the warning of a halo, or why there can be none."""
    within = criterion_pair.within_items
    if within.judgments < halo.MIN_HALO_JUDGMENTS:
        sentence = (
            f"Halo needs {halo.MIN_HALO_JUDGMENTS} judgments of items that were judged twice or more; there "
            f"are {within.judgments}."
        )
        return [Note("too_few_for_halo", sentence)]
    if not criterion_pair.is_estimable:
        sentence = (
            f"On one of {criterion_pair.quoted_names}, all annotators agree about every item, so there is no "
            "correlation."
        )
        return [Note("no_halo_figure", sentence)]
    if not criterion_pair.has_halo:
        return [*within.notes]
    ends = format_interval(within.low, within.high, 2)
    sentence = (
        f"Halo: an annotator who rates an item higher than others do on one of {criterion_pair.quoted_names} also "
        f"rates it higher on the other (correlation {format_with_places(within.value, 2)}, 95 % interval {ends}). "
        "These scores may share a single impression instead of reflecting the items."
    )
    return [Note("halo", sentence), *within.notes]


def sentence_on_halo_or_empty(criterion_pairs: Sequence[CriterionPair]) -> str:
    """Return a sentence on criteria that were hardly judged apart; empty if the figures cannot tell."""
    estimable_pairs = [two for two in criterion_pairs if two.is_estimable]
    if alike := [two.quoted_names for two in estimable_pairs if two.has_halo]:
        return f"These criteria were hardly judged separately: {'; '.join(alike)}."
    if not estimable_pairs:
        return ""
    limit = format_with_places(halo.STRONG_HALO, 1)
    return f"The criteria were judged separately: within items, no two of them have a correlation of {limit} or more."


HALO_TABLE = TableMethod(
    TableSection("criteria", "Criteria"),
    "Halo",
    "Correlations between criteria. Item means correlate if items that are good on one criterion are also good on the "
    "other. Within items, each judgment is compared with the mean of its own item, so only differences between "
    "annotators remain. A correlation within items of .5 or more, with 30 judgments or more, is a warning: annotators "
    "gave one impression twice (Thorndike 1920), or some are strict on all criteria. Intervals are over items.",
    build_halo_table,
    reads=("points", "order"),
    needs_criteria=True,
    dot_plot=DotPlotColumn("within", COEFFICIENT_AXIS),
    exports=(
        MethodExport(
            "halo",
            "Halo",
            ("The correlations of judgments within items and of item means, for each pair of criteria."),
        ),
    ),
)
