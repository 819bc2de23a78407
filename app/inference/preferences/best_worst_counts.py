"""Best-worst counts: how often an item was the best of its HIT, minus how often the worst (Orme 2009)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, make_mention
from app.inference.ground.validation import check_equal_length, sum_by_number, to_finite_vector, to_numbers_and_count
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
    """Compute best-worst scores in O(R).

    Items no further than `tie_margin` from the best of their HIT share that rank in equal parts, and so at the other
    end. The standard error is that of a mean of independent HITs, each with an outcome of 1 (best), -1 (worst) or 0,
    whose chances are estimated as if the item had been shown in one more HIT, judged by chance: so an item that was
    always the best is not certain to be. A HIT of one item gives no information.

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
    hits, n_hits = to_numbers_and_count("hits", hits)
    items, n_items = to_numbers_and_count("items", items, n_items)
    scores = to_finite_vector("scores", scores)
    check_equal_length(hits=hits, items=items, scores=scores)
    size = np.bincount(hits, minlength=n_hits)
    has_company = size[hits] > 1
    if not has_company.any():
        raise Inestimable("No two items were judged side by side, so none was the best.", code="nothing_side_by_side")
    hits, items, scores = hits[has_company], items[has_company], scores[has_company]
    appearances = np.bincount(items, minlength=n_items)
    best, worst = (
        sum_by_number(items, top_rank_share_of_each_score(hits, signed, n_hits, tie_margin), n_items)
        for signed in (scores, -scores)
    )
    score, error = _score_and_error(best, worst, sum_by_number(items, 1.0 / size[hits], n_items), appearances)
    return BestWorstCounts(
        score, error, appearances, appearances > 0, (COMPANY_NOTE, *_never_compared_item_notes(appearances))
    )


def top_rank_share_of_each_score(hits: Integers, scores: Array, n_hits: int, tie_margin: float) -> Array:
    """Return the share of each score in the highest rank of its HIT, (R,); the shares of a HIT add up to 1."""
    highest = np.full(n_hits, -np.inf)
    np.maximum.at(highest, hits, scores)
    is_top = (scores >= highest[hits] - tie_margin - TIE_SLACK).astype(np.float64)
    return is_top / sum_by_number(hits, is_top, n_hits)[hits]


def _score_and_error(best: Array, worst: Array, by_chance: Array, appearances: Integers) -> tuple[Array, Array]:
    """Return score and standard error from sums over each item's HITs, (n_items,).

    The sums are of the item's shares in the best and the worst rank, and of its shares by chance.
    """
    count = np.where(appearances > 0, appearances, np.nan)
    chance = by_chance / count
    likely_best, likely_worst = (best + chance) / (count + 1.0), (worst + chance) / (count + 1.0)
    variance = likely_best + likely_worst - (likely_best - likely_worst) ** 2
    return (best - worst) / count, np.sqrt(variance / count)


def _never_compared_item_notes(appearances: Integers) -> tuple[Note, ...]:
    uncounted = np.flatnonzero(appearances == 0)
    sentence = "No HIT shows {0} with another item, so there is no count."
    return (Note("uncounted", sentence, make_mention("item", uncounted)),) if uncounted.size else ()
