"""Expected Wins (Bojar et al. 2013, the official scores of WMT13): how often an item beats the others."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, make_mention
from app.inference.ground.validation import sum_values_of_each_number
from app.inference.observations.comparisons import (
    BooleanArray,
    PairOutcomeCounts,
    count_pair_outcomes,
    uncompared_items_notes_or_empty,
)


@dataclass(frozen=True, slots=True)
class ExpectedWins:
    """Expected wins and their errors.

    Attributes:
        score: (n_items,) in [0, 1], the chance of beating an opponent drawn at random; NaN where not estimable.
        standard_error: (n_items,); NaN where not estimable.
        opponents: (n_items,) other items that an item was compared with, other than by ties alone where these do not
            count.
        estimable: (n_items,) whether there is an opponent.
        notes: What could not be estimated and why.

    """

    score: Array
    standard_error: Array
    opponents: Integers
    estimable: BooleanArray
    notes: tuple[Note, ...]


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    ties: Literal["ignored", "half"] = "ignored",
) -> ExpectedWins:
    """Mean over an item's opponents of the share of their comparisons that it won.

    Arrays are (J,): item numbers and outcomes +1 (first preferred), 0 (tie), -1 (second preferred). `ties` are
    "ignored" as in WMT13, or "half" a win for each. Opponents have equal weights, however often they met; opponents
    never met do not count (the published program counts them as lost, which works where all have met). The standard
    error has, for each opponent, the binomial variance at (wins + 1/2) / (comparisons + 1), so that an opponent beaten
    once out of once is not certain. Raises ValueError as `comparison_arrays_and_item_count_or_raise`, and Inestimable
    if there are no judgments or only ties.
    """
    comparisons = count_pair_outcomes(first, second, outcomes, n_items=n_items)
    tie_worth = {"ignored": 0.0, "half": 0.5}[ties]
    low_wins = comparisons.low_won + tie_worth * comparisons.tied
    high_wins = comparisons.high_won + tie_worth * comparisons.tied
    is_decided = low_wins + high_wins > 0.0
    if not is_decided.any():
        raise Inestimable("Every judgment is a tie, and this method does not count ties.", code="all_ties")
    low_wins, high_wins, decided_pairs = (
        low_wins[is_decided],
        high_wins[is_decided],
        comparisons.select_pairs(is_decided),
    )
    total = low_wins + high_wins
    guess = (low_wins + 0.5) / (total + 1.0)
    opponents = _sum_of_pair_values_of_each_item(decided_pairs, np.ones(total.size), np.ones(total.size))
    win_shares = _sum_of_pair_values_of_each_item(decided_pairs, low_wins / total, high_wins / total)
    variance = _sum_of_pair_values_of_each_item(
        decided_pairs, guess * (1.0 - guess) / total, guess * (1.0 - guess) / total
    )
    estimable = opponents > 0
    divisor = np.where(estimable, opponents, np.nan)
    return ExpectedWins(
        score=win_shares / divisor,
        standard_error=np.sqrt(variance) / divisor,
        opponents=opponents.astype(np.intp),
        estimable=estimable,
        notes=_expected_wins_notes(comparisons, opponents),
    )


def _sum_of_pair_values_of_each_item(comparisons: PairOutcomeCounts, low: Array, high: Array) -> Array:
    n_items = comparisons.n_items
    return sum_values_of_each_number(comparisons.low, low, n_items) + sum_values_of_each_number(
        comparisons.high, high, n_items
    )


def _expected_wins_notes(comparisons: PairOutcomeCounts, opponents: Array) -> tuple[Note, ...]:
    notes = list(uncompared_items_notes_or_empty(comparisons))
    only_ties = np.flatnonzero(comparisons.compared_items_mask & (opponents == 0))
    if only_ties.size:
        sentence = "There is no score for {0}: only ties, which this method does not count."
        notes.append(Note("nothing_but_ties", sentence, make_mention("item", only_ties)))
    possible = int(comparisons.compared_items_mask.sum()) - 1
    met_some = np.flatnonzero((opponents > 0) & (opponents < possible))
    if met_some.size:
        sentence = (
            f"Not all items were compared with all others: {met_some.size} of {possible + 1} items met only some of "
            "the others, so a score also depends on the strength of an item's opponents. Bradley-Terry accounts "
            "for that."
        )
        notes.append(Note("not_all_met", sentence))
    return tuple(notes)
