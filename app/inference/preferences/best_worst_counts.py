"""Best-worst counts: how often an item was the best of its HIT, minus how often the worst (Orme 2009)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, make_mention
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
    sum_values_of_each_number,
)
from app.inference.observations.comparisons import TIE_SLACK, BooleanArray

COMPANY_NOTE = Note(
    "counts_depend_on_company",
    "A count also depends on the strength of the items that an item was shown with. It is fair if items are combined "
    "at random, and too close to 0 if similar items are shown together. Bradley-Terry accounts for that.",
)


@dataclass(frozen=True, slots=True)
class BestWorstCounts:
    """Best-worst scores and their errors.

    Attributes:
        score: (n_items,) in [-1, 1], the share of an item's HITs in which it was the best, minus that in which it was
            the
        worst; NaN where not estimable.
        standard_error: (n_items,); NaN where not estimable.
        hits: (n_items,) HITs in which the item was shown with others.
        estimable: (n_items,) whether there is such a HIT.
        notes: What this can and cannot tell.

    """

    score: Array
    standard_error: Array
    hits: Integers
    estimable: BooleanArray
    notes: tuple[Note, ...]


def fit(
    hits: npt.ArrayLike,
    items: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    tie_margin: float = 0.0,
) -> BestWorstCounts:
    """Compute best-worst scores in O(R log R).

    Items no further than `tie_margin` from the best of their HIT share that rank in equal parts, and so at the other
    end. The standard error is that of a mean of independent HITs, each with an outcome of 1 (best), -1 (worst) or 0,
    whose chances are estimated as if the item had been shown in one more HIT, judged by chance: so an item that was
    always the best is not certain to be. HITs of the same items (a tuple that several annotators judged) are not
    independent: they count as the number of different tuples that tells as much
    (`hit_counts_discounted_for_same_tuple`). A HIT of one item gives no information.

    Args:
        hits: The HIT in which each score was given, (R,).
        items: The scored item, (R,).
        scores: The score, (R,); higher is better.
        n_items: The number of items; default: 1 + the largest number.
        tie_margin: The largest difference of tied scores, at least 0.

    Raises:
        ValueError: The arrays are invalid.
        Inestimable: No HIT has two items ("nothing_side_by_side").

    """
    hits, n_hits = index_array_and_count_or_raise("hits", hits)
    items, n_items = index_array_and_count_or_raise("items", items, n_items)
    scores = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(hits=hits, items=items, scores=scores)
    size = np.bincount(hits, minlength=n_hits)
    has_company = size[hits] > 1
    if not has_company.any():
        raise Inestimable("No two items were judged side by side, so none was the best.", code="nothing_side_by_side")
    hits, items, scores = hits[has_company], items[has_company], scores[has_company]
    appearances = np.bincount(items, minlength=n_items)
    shares = [share_of_each_score_in_top_rank(hits, signed, n_hits, tie_margin) for signed in (scores, -scores)]
    best, worst = (sum_values_of_each_number(items, share, n_items) for share in shares)
    effective = hit_counts_discounted_for_same_tuple(
        items, tuple_number_of_each_hit(hits, items, n_hits)[hits], shares[0] - shares[1], n_items=n_items
    )
    by_chance = sum_values_of_each_number(items, 1.0 / size[hits], n_items)
    score, error = _best_worst_scores_and_errors(best, worst, by_chance, appearances, effective)
    return BestWorstCounts(
        score, error, appearances, appearances > 0, (COMPANY_NOTE, *_never_compared_item_notes(appearances))
    )


def share_of_each_score_in_top_rank(hits: Integers, scores: Array, n_hits: int, tie_margin: float) -> Array:
    """Return the share of each score in the highest rank of its HIT, (R,); the shares of a HIT add up to 1."""
    highest = np.full(n_hits, -np.inf)
    np.maximum.at(highest, hits, scores)
    is_top = (scores >= highest[hits] - tie_margin - TIE_SLACK).astype(np.float64)
    return is_top / sum_values_of_each_number(hits, is_top, n_hits)[hits]


def tuple_number_of_each_hit(hits: Integers, items: Integers, n_hits: int) -> Integers:
    """Return the number of each HIT's tuple, (n_hits,): HITs that show the same items have the same number."""
    order = np.lexsort((items, hits))
    size = np.bincount(hits, minlength=n_hits)
    place = np.arange(len(hits)) - (np.cumsum(size) - size)[hits[order]]
    shown_items = np.full((n_hits, int(size.max())), -1, np.intp)
    shown_items[hits[order], place] = items[order]
    numbers: Integers = np.unique(shown_items, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers


def hit_counts_discounted_for_same_tuple(items: Integers, tuples: Integers, outcomes: Array, *, n_items: int) -> Array:
    """Return the number of different tuples that would tell as much about each item as its HITs, (n_items,).

    An item's outcomes in HITs of one tuple have a correlation, because the others of the tuple are the same: here the
    intraclass correlation rho of tuples within items, from the analysis of variance and equal for all items. n HITs in
    tuples of m count as n / (1 + rho (m - 1)), where m is the mean over HITs. If every item has one tuple alone, its
    score is about this tuple only, and all HITs count.

    Args:
        items: The item of each score, (R,).
        tuples: The number of the tuple of each score's HIT, (R,).
        outcomes: 1 for the best item of the HIT, -1 for the worst, else 0, (R,); ties share these.
        n_items: The number of items.

    """
    item_of_group, group = _items_of_pairs_and_pair_of_each_score(items, tuples)
    in_group, per_item = np.bincount(group).astype(np.float64), np.bincount(items, minlength=n_items)
    squares_by_item = sum_values_of_each_number(item_of_group, in_group**2, n_items)
    mean_size = squares_by_item / np.maximum(per_item, 1)
    freedom_within = len(items) - len(in_group)
    freedom_between = len(in_group) - np.count_nonzero(per_item)
    if not freedom_within or not freedom_between:
        return per_item.astype(np.float64)
    group_mean = sum_values_of_each_number(group, outcomes, len(in_group)) / in_group
    item_mean = sum_values_of_each_number(items, outcomes, n_items) / np.maximum(per_item, 1)
    within = np.sum((outcomes - group_mean[group]) ** 2) / freedom_within
    between = in_group @ (group_mean - item_mean[item_of_group]) ** 2 / freedom_between
    common = max(0.0, (between - within) * freedom_between / (len(items) - mean_size.sum()))
    correlation = common / (common + within) if common + within > 0.0 else 1.0
    effective: Array = per_item / (1.0 + correlation * np.maximum(mean_size - 1.0, 0.0))
    return effective


def _items_of_pairs_and_pair_of_each_score(items: Integers, tuples: Integers) -> tuple[Integers, Integers]:
    """Return the item of each pair of an item and a tuple, (G,), and the number of each score's pair, (R,)."""
    n_tuples = int(tuples.max()) + 1
    pairs, group = np.unique(items * n_tuples + tuples, return_inverse=True)
    return pairs // n_tuples, group


def _best_worst_scores_and_errors(
    best: Array, worst: Array, by_chance: Array, appearances: Integers, effective: Array
) -> tuple[Array, Array]:
    """Return score and standard error from sums over each item's HITs, (n_items,).

    The sums are of the item's shares in the best and the worst rank, and of its shares by chance; `effective` is the
    number of different tuples that tells as much.
    """
    count, tuples = (np.where(appearances > 0, number, np.nan) for number in (appearances, effective))
    chance = by_chance / count
    likely_best, likely_worst = ((end / count * tuples + chance) / (tuples + 1.0) for end in (best, worst))
    variance = likely_best + likely_worst - (likely_best - likely_worst) ** 2
    return (best - worst) / count, np.sqrt(variance / tuples)


def _never_compared_item_notes(appearances: Integers) -> tuple[Note, ...]:
    uncounted = np.flatnonzero(appearances == 0)
    sentence = "No task shows {0} with another item, so there is no count."
    return (Note("uncounted", sentence, make_mention("item", uncounted)),) if uncounted.size else ()
