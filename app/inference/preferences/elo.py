"""Elo ratings (Elo 1978), updated by one pairwise judgment after another."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from app.inference.ground.arrays import Array, Integers, valid_interval_level_or_raise
from app.inference.ground.notes import Note, make_mention
from app.inference.ground.validation import index_array_and_count_or_raise, refuse_columns_of_unequal_length
from app.inference.observations.comparisons import BooleanArray, comparison_arrays_and_item_count_or_raise

_MIN_ERROR_PER_K = 1e-9  # a smaller spread of resampled ratings is rounding
_POOLED_DEGREES_OF_FREEDOM = 4.0  # the fewest that `moderated_means` gives the variance of all items


@dataclass(frozen=True, slots=True)
class EloRatings:
    """Elo ratings and their bootstrap errors.

    Attributes:
        score: (n_items,) in points; NaN for an item without a judgment.
        standard_error: (n_items,) by the bootstrap, as low and high; NaN without resamples, and where all resamples
            give the same rating, for example after one judgment: these say nothing about the error.
        estimable: (n_items,) whether the item has a judgment.
        notes: What this can and cannot tell.

    """

    score: Array
    standard_error: Array
    low: Array
    high: Array
    estimable: BooleanArray
    notes: tuple[Note, ...]


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    k: float = 32.0,
    initial: float = 1500.0,
    scale: float = 400.0,
    dependence_blocks: npt.ArrayLike | None = None,
    resamples: int = 0,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> EloRatings:
    """Move both items of each judgment by k (outcome - expected), outcome 1, 1/2 or 0 for the item.

    The expected outcome is 1 / (1 + 10^((other's rating - its own) / scale)).

    The arrays are (J,), in order of time, which matters: the last judgments weigh most, and ratings never settle. Elo
    has no standard error of its own. With `resamples` > 0 it is the spread of the ratings after that many bootstrap
    samples in random order, drawn from `rng`, which holds the uncertainty from both; an item that a sample lacks keeps
    its initial rating there. `dependence_blocks` are (J,) numbers from 0, equal for judgments that are not independent
    of each other, such as the pairs of one HIT: a sample has all of them or none. The spread of an item in few of these
    blocks is uncertain, so it is moderated towards that of all items (see `moderated_means`), and the interval is the
    rating -+ z errors: it holds the average rating that such judgments lead to. One pass is O(J). Raises ValueError as
    `comparison_arrays_and_item_count_or_raise`, for k or scale not above 0, `dependence_blocks` of another length, and
    for resamples without rng; Inestimable without judgments.
    """
    if not (0.0 < k < np.inf and 0.0 < scale < np.inf and np.isfinite(initial)):
        raise ValueError("k and scale must be finite and above 0, and initial finite")
    if resamples and rng is None:
        raise ValueError("resamples are random: they need rng")
    first, second, outcomes, n_items = comparison_arrays_and_item_count_or_raise(first, second, outcomes, n_items)
    block, n_blocks = index_array_and_count_or_raise(
        "together", np.arange(first.size) if dependence_blocks is None else dependence_blocks
    )
    refuse_columns_of_unequal_length(first=first, together=block)
    is_judged = np.bincount(first, minlength=n_items) + np.bincount(second, minlength=n_items) > 0
    start = np.where(is_judged, initial, np.nan)
    score = _elo_ratings_after_judgments(first, second, outcomes, start, k=k, scale=scale)
    error = np.full(n_items, np.nan)
    if rng is not None and resamples:
        draws = (_draw_blocks_and_list_judgments(block, n_blocks, rng) for _ in range(resamples))
        samples = [
            _elo_ratings_after_judgments(first[draw], second[draw], outcomes[draw], start, k=k, scale=scale)
            for draw in draws
        ]
        error = _moderated_standard_errors(
            np.var(samples, axis=0), _block_count_of_each_item(first, second, block, n_items)
        )
        error[error <= _MIN_ERROR_PER_K * k] = np.nan
    reach = ndtri((1.0 + valid_interval_level_or_raise(level)) / 2.0) * error
    notes = (
        *_elo_notes(is_judged),
        *_notes_on_items_without_interval(is_judged & np.isnan(error) if resamples else []),
    )
    return EloRatings(score, error, score - reach, score + reach, is_judged, notes)


def _draw_blocks_and_list_judgments(block: Integers, n_blocks: int, rng: np.random.Generator) -> Integers:
    """Draw as many blocks as there are, with replacement; return their judgments in the order of the draw."""
    sizes, by_block = np.bincount(block, minlength=n_blocks), np.argsort(block, kind="stable")
    drawn_blocks = rng.integers(n_blocks, size=n_blocks)
    drawn_sizes = sizes[drawn_blocks]
    offset = np.repeat((np.cumsum(sizes) - sizes)[drawn_blocks] - (np.cumsum(drawn_sizes) - drawn_sizes), drawn_sizes)
    judgments: Integers = by_block[offset + np.arange(drawn_sizes.sum())]
    return judgments


def _block_count_of_each_item(first: Integers, second: Integers, block: Integers, n_items: int) -> Integers:
    """Return the number of blocks that include each item, (n_items,)."""
    of_item = np.unique(np.concatenate([first, second]) + n_items * np.tile(block, 2)) % n_items
    return np.bincount(of_item, minlength=n_items)


def _moderated_standard_errors(variance: Array, appearances: Integers) -> Array:
    """Return standard errors, from each item's own variance with appearances - 1 degrees of freedom, and that of all
    items with `_POOLED_DEGREES_OF_FREEDOM`.
    """
    freedom = np.maximum(appearances - 1, 0)
    is_judged = appearances > 0
    pooled = np.average(variance[is_judged], weights=freedom[is_judged] if freedom.any() else None)
    error: Array = np.sqrt(
        (_POOLED_DEGREES_OF_FREEDOM * pooled + freedom * variance) / (_POOLED_DEGREES_OF_FREEDOM + freedom)
    )
    return error


def _elo_ratings_after_judgments(
    first: Integers, second: Integers, outcomes: Integers, initial_ratings: Array, *, k: float, scale: float
) -> Array:
    # Each judgment needs what the one before left, so this is a loop; on lists, which are faster than arrays at it.
    rating: list[float] = initial_ratings.tolist()
    for i, j, outcome in zip(first.tolist(), second.tolist(), outcomes.tolist(), strict=True):
        odds: float = 10.0 ** ((rating[j] - rating[i]) / scale)
        surprise = 0.5 * (outcome + 1) - 1.0 / (1.0 + odds)
        rating[i] += k * surprise
        rating[j] -= k * surprise
    return np.array(rating)


def _elo_notes(is_judged: BooleanArray) -> tuple[Note, ...]:
    sentence = "Elo ratings depend on the order of the judgments; Bradley-Terry weights them all equally."
    order_note = Note("order_matters", sentence)
    unjudged = np.flatnonzero(~is_judged)
    if not unjudged.size:
        return (order_note,)
    return order_note, Note("unrated", "Nothing is known about {0}: no judgment.", make_mention("item", unjudged))


def _notes_on_items_without_interval(error_is_unknown: npt.ArrayLike) -> tuple[Note, ...]:
    mention = make_mention("item", error_is_unknown)
    sentence = (
        "There is no interval for {0}: the judgments are too few or too similar, so all resamples give the same rating."
    )
    return (Note("rating_error_unknown", sentence, mention),) if mention.numbers else ()
