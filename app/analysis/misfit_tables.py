"""Tables of misfit: annotators and items whose comparisons contradict the Bradley-Terry scores."""

import numpy as np

from app.analysis.agreement_table import AGREEMENT_SECTION
from app.analysis.annotator_table import ANNOTATOR_SECTION
from app.analysis.method_types import DotPlotColumn, LazyTable, MethodExport, TableMethod
from app.analysis.pairwise_tables import PairColumns, fit_bradley_terry, preference_pair_columns
from app.analysis.result_types import (
    Answers,
    AnyArray,
    Cell,
    Column,
    Options,
    ResultTable,
    cell_or_none_if_not_finite,
    columns_to_cell_rows,
)
from app.inference.ground.arrays import Array
from app.inference.ground.notes import Note
from app.inference.ground.proportions import wilson_shares_and_interval_ends
from app.inference.preferences.misfit import Misfit, misfit_of_annotators_and_items

MISFIT_COLUMNS = (
    Column("comparisons", "Comparisons", "count"),
    Column("infit", "Infit"),
    Column("outfit", "Outfit"),
    Column("flag", "Flag", "text"),
)
SECONDS_COLUMN = Column("seconds", "Median seconds per task")
LEFT_COLUMNS = (
    Column("left", "Share of choices on the left"),
    Column("left_low", "Left, low (95 %)"),
    Column("left_high", "Left, high (95 %)"),
)
CHOICE_COLUMNS = ("judge", "candidate_chosen", "candidate_not_chosen", "time_taken")
HIGH_INFIT_LABEL = "high infit"
TIES_NOTE = Note(
    "ties_lower_misfit",
    "A tie counts as half a win, so an annotator or item with many ties has a lower infit and outfit.",
)
MISFIT_TEXT = (
    "Infit and outfit are near 1 if answers are as noisy as Bradley-Terry expects, and higher if they contradict the "
    "scores. With few comparisons of each item they are lower, because the scores are fitted to these. "
    "Outfit reacts most to surprising answers about items that are far apart. A flag means that the infit is more than "
    "two standard deviations above the mean of all: a convention to find what to look at, not a test."
)


def build_annotator_misfit_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per annotator.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`.

    """
    pairs = preference_pair_columns(answers)
    misfit, _ = fit_annotator_and_item_misfit(answers, pairs)
    columns: list[AnyArray | list[str]] = [[*answers.annotators], [*answers.names], *misfit_columns(misfit)]
    heads = [Column("annotator", "Pseudonym", "text"), Column("name", "Annotator", "text"), *MISFIT_COLUMNS]
    if answers.seconds is not None:
        heads.append(SECONDS_COLUMN)
        columns.append(median_seconds_of_each_annotator(answers, answers.seconds))
        if answers.compares_pairs:
            heads += LEFT_COLUMNS
            columns += left_choice_shares_and_interval_ends(answers, pairs, answers.seconds)
    return ResultTable(tuple(heads), columns_to_cell_rows(*columns), notes_on_ties_in_misfit(pairs))


def build_item_misfit_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per item. Raises as `build_annotator_misfit_table` does."""
    pairs = preference_pair_columns(answers)
    _, misfit = fit_annotator_and_item_misfit(answers, pairs)
    heads = (Column("id", "Id", "text"), Column("text", "Item", "text"), *MISFIT_COLUMNS)
    return ResultTable(
        heads, columns_to_cell_rows(answers.ids, answers.shown, *misfit_columns(misfit)), notes_on_ties_in_misfit(pairs)
    )


def fit_annotator_and_item_misfit(answers: Answers, pairs: PairColumns) -> tuple[Misfit, Misfit]:
    """Return the misfit of annotators and of items to the Bradley-Terry scores of all answers."""
    first, second, outcomes, hits = pairs
    return misfit_of_annotators_and_items(
        *(first, second, outcomes, answers.annotator_index_of_each_hit[hits], fit_bradley_terry(answers, pairs).score),
        n_annotators=answers.n_annotators,
    )


def misfit_columns(misfit: Misfit) -> tuple[AnyArray, ...]:
    return (
        misfit.comparisons,
        misfit.infit,
        misfit.outfit,
        np.array([HIGH_INFIT_LABEL if flagged else None for flagged in misfit.is_flagged], dtype=object),
    )


def notes_on_ties_in_misfit(pairs: PairColumns) -> tuple[Note, ...]:
    return (TIES_NOTE,) if (pairs[2] == 0).any() else ()


def median_seconds_of_each_annotator(answers: Answers, seconds: Array) -> Array:
    """Return the median time of each annotator's answers, (A,); NaN if all of them were imported."""
    is_known = np.isfinite(seconds)
    annotators, times = answers.annotator_index_of_each_hit[is_known], seconds[is_known]
    return np.array(
        [
            float(np.median(own)) if len(own := times[annotators == number]) else np.nan
            for number in range(answers.n_annotators)
        ]
    )


def left_choice_shares_and_interval_ends(
    answers: Answers, pairs: PairColumns, seconds: Array
) -> tuple[Array, Array, Array]:
    """Return the share of choices on the left and its interval, (A,) each; ties and imported answers do not count."""
    _, _, outcomes, hits = pairs
    is_choice = (outcomes != 0) & np.isfinite(seconds[hits])
    annotators = answers.annotator_index_of_each_hit[hits[is_choice]]
    choices, left = (
        np.bincount(annotators, weights=weights, minlength=answers.n_annotators)
        for weights in (None, (outcomes[is_choice] > 0).astype(np.float64))
    )
    return wilson_shares_and_interval_ends(left, choices)


def lazy_winner_loser_table(answers: Answers, _options: Options) -> LazyTable:
    """Return a row for each pair with a preferred item, in the columns of No More Marking; ties are left out.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`.

    """
    first, second, outcomes, hits = preference_pair_columns(answers)
    is_choice = outcomes != 0
    first_won, chosen_hits = (outcomes > 0)[is_choice], hits[is_choice]
    winners = np.where(first_won, first[is_choice], second[is_choice])
    losers = np.where(first_won, second[is_choice], first[is_choice])
    seconds = np.full(answers.n_hits, np.nan) if answers.seconds is None else answers.seconds
    columns = answers.annotator_index_of_each_hit[chosen_hits], winners, losers, seconds[chosen_hits]

    def make_rows(start: int, stop: int) -> list[tuple[Cell, ...]]:
        return [
            (answers.annotators[judge], answers.ids[winner], answers.ids[loser], cell_or_none_if_not_finite(time))
            for judge, winner, loser, time in zip(*(column[start:stop].tolist() for column in columns), strict=True)
        ]

    return LazyTable(CHOICE_COLUMNS, len(winners), make_rows)


ANNOTATOR_MISFIT_TABLE = TableMethod(
    ANNOTATOR_SECTION,
    "Fit of the annotators",
    f"{MISFIT_TEXT} The share of choices on the left should include a half; its interval is Wilson’s.",
    build_annotator_misfit_table,
    reads=("order",),
    needs_order=True,
    shows_annotators=True,
    dot_plot=DotPlotColumn("infit"),
    exports=(
        MethodExport(
            "choices",
            "Choices between two items",
            "Every preferred item with the other item, the annotator and the seconds, in the columns of No More "
            "Marking, for programs about comparative judgement. Ties are left out.",
            lazy_winner_loser_table,
        ),
    ),
)

ITEM_MISFIT_TABLE = TableMethod(
    AGREEMENT_SECTION,
    "Fit of the items",
    f"{MISFIT_TEXT} Annotators may see a flagged item in different ways.",
    build_item_misfit_table,
    reads=("order",),
    needs_order=True,
    per_item=True,
    dot_plot=DotPlotColumn("infit"),
)
