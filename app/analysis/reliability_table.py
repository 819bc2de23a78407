"""Table of the reliability of scores from comparisons: split halves, and scale separation."""

from collections.abc import Callable

import numpy as np

from app.analysis.agreement_table import AGREEMENT_SECTION
from app.analysis.chart_axes import COEFFICIENT_AXIS
from app.analysis.method_types import DotPlotColumn, TableMethod
from app.analysis.pairwise_tables import PairColumns, fit_bradley_terry, preference_pair_columns
from app.analysis.result_types import Answers, Cell, Column, Options, ResultTable, cell_or_none_if_not_finite
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, notes_with_names
from app.inference.preferences.scale_reliability import (
    DEFAULT_SPLITS,
    SplitHalves,
    best_worst_split_halves_within_tuples,
    correlate_scores_of_annotator_halves_or_raise,
    scale_separation,
)

MIN_SPLITS = 10
MAX_ITEMS_IN_SPLITS = 30_000
MAX_PAIRS_IN_SPLITS = 10_000_000

RELIABILITY_COLUMNS = (
    Column("measure", "Name", "text"),
    Column("title", "Measure", "text"),
    Column("value", "Value"),
    Column("low", "Low (95 % of splits)"),
    Column("high", "High (95 % of splits)"),
    Column("rests_on", "Based on", "count"),
    Column("of", "Unit", "text"),
    Column("sentence", "What it shows", "sentence"),
)

MATCHED_BY_SCORE_NOTE = Note(
    "pairs_matched_by_score",
    "The selection rule put items with similar scores together, which inflates these figures. In simulations of items "
    "that were all alike, with ten judgments of each, scale separation reliability was about .55 and the split-half "
    "figure .4 instead of 0. The rule “balanced” avoids this.",
)
HALVES_TEXT = (
    "Pearson’s correlation between the Bradley-Terry scores of two random halves of the annotators, as the mean over "
    "many splits; 95 % of the splits are in the interval."
)
ALL_ANNOTATORS_TEXT = "The same, stepped up from half of the annotators to all of them (Spearman-Brown)."
TUPLE_HALVES_TEXT = (
    "Pearson’s correlation between the best-worst counts of two random halves of the answers to each tuple, as the "
    "mean over many splits."
)
ALL_ANSWERS_TEXT = "The same, stepped up from half of the answers to all of them (Spearman-Brown)."
SEPARATION_RELIABILITY_TEXT = (
    "The share of the variance of the Bradley-Terry scores that is not due to their standard errors. Ten comparisons "
    "of an item usually suffice for .8 or more (Kinnear et al. 2025)."
)
SEPARATION_TEXT = "How many standard errors one standard deviation of the true scores is."

ReliabilityRow = tuple[Cell, ...]


def build_reliability_table(answers: Answers, _options: Options) -> ResultTable:
    """Return a row per measure; if a measure cannot be estimated, its sentence says why.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`.

    """
    pairs = preference_pair_columns(answers)
    fit = fit_bradley_terry(answers, pairs)
    rows = annotator_split_half_rows(answers, pairs)
    if not answers.parameters.ties and len(pairs[0]) > answers.n_hits:
        rows += tuple_split_half_rows(answers)
    rows += scale_separation_rows(np.where(fit.group == 0, fit.score, np.nan), fit.standard_error)
    warnings = (MATCHED_BY_SCORE_NOTE,) if are_pairs_matched_by_score(answers) else ()
    return ResultTable(RELIABILITY_COLUMNS, rows, (*warnings, *notes_with_names(fit.notes, {"item": answers.ids})))


def are_pairs_matched_by_score(answers: Answers) -> bool:
    """Return whether Easel chose pairs of items with similar scores; the pairs of imported answers were chosen
    elsewhere.
    """
    return answers.matches_by_score and (answers.seconds is None or bool(np.isfinite(answers.seconds).any()))


def choose_split_count(item_count: int, pair_count: int) -> int:
    """Return how many times to split, so that large campaigns take seconds."""
    affordable = min(MAX_ITEMS_IN_SPLITS // max(item_count, 1), MAX_PAIRS_IN_SPLITS // max(pair_count, 1))
    return int(np.clip(affordable, MIN_SPLITS, DEFAULT_SPLITS))


def annotator_split_half_rows(answers: Answers, pairs: PairColumns) -> list[ReliabilityRow]:
    first, second, outcomes, hits = pairs
    return split_half_rows(
        ("split_half", "Split halves of the annotators", HALVES_TEXT),
        ("split_half_full", "Split halves, for all annotators", ALL_ANNOTATORS_TEXT),
        lambda: correlate_scores_of_annotator_halves_or_raise(
            *(first, second, outcomes, answers.annotator_index_of_each_hit[hits]),
            n_items=answers.n_items,
            splits=choose_split_count(answers.n_items, len(first)),
            rng=answers.seeded_rng(),
        ),
    )


def tuple_split_half_rows(answers: Answers) -> list[ReliabilityRow]:
    return split_half_rows(
        ("tuple_halves", "Split halves of the answers to each tuple", TUPLE_HALVES_TEXT),
        ("tuple_halves_full", "Split halves of tuples, for all answers", ALL_ANSWERS_TEXT),
        lambda: best_worst_split_halves_within_tuples(
            *(answers.hit, answers.item, answers.scores_between_0_and_1),
            n_items=answers.n_items,
            tie_margin=answers.parameters.tie_margin,
            splits=choose_split_count(answers.n_items, len(answers.item)),
            rng=answers.seeded_rng(),
        ),
    )


def split_half_rows(
    half_length_texts: tuple[str, str, str],
    full_length_texts: tuple[str, str, str],
    estimate_split_halves: Callable[[], SplitHalves],
) -> list[ReliabilityRow]:
    """Return the rows of the halves and of the full length, each with name, title and sentence."""
    try:
        halves = estimate_split_halves()
    except Inestimable as reason:
        return [(*half_length_texts[:2], None, None, None, 0, "splits", str(reason))]
    return [
        (
            *half_length_texts[:2],
            *map(cell_or_none_if_not_finite, (halves.correlation, halves.low, halves.high)),
            halves.n_splits,
            "splits",
            half_length_texts[2],
        ),
        (
            *full_length_texts[:2],
            cell_or_none_if_not_finite(halves.full_length),
            None,
            None,
            halves.n_splits,
            "splits",
            full_length_texts[2],
        ),
    ]


def scale_separation_rows(scores: np.ndarray, standard_errors: np.ndarray) -> list[ReliabilityRow]:
    name, title = "separation_reliability", "Scale separation reliability (SSR)"
    try:
        found = scale_separation(scores, standard_errors)
    except Inestimable as reason:
        return [(name, title, None, None, None, 0, "items", str(reason))]
    return [
        (name, title, found.reliability, None, None, found.n_items, "items", SEPARATION_RELIABILITY_TEXT),
        ("separation", "Separation G", found.separation, None, None, found.n_items, "items", SEPARATION_TEXT),
    ]


RELIABILITY_TABLE = TableMethod(
    AGREEMENT_SECTION,
    "Reliability of the scores",
    "Whether comparisons by other annotators would give the same scores. Split halves come first, because they compare "
    "annotators with each other. Scale separation relies on the standard errors of one fit.",
    build_reliability_table,
    reads=("order",),
    needs_order=True,
    dot_plot=DotPlotColumn("value", COEFFICIENT_AXIS, {"separation": None}),
)
