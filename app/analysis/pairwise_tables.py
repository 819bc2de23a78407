"""Scores of items from pairs: every two items of a HIT are one pair, decided by their scores."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from app.analysis.method_types import ScoreMethod
from app.analysis.result_types import Answers, Scores
from app.analysis.scores import refuse_without_answers
from app.designs.scale import shares_to_points
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, notes_with_names
from app.inference.observations import comparisons
from app.inference.preferences import bradley_terry, elo, expected_wins, hopkins_may, thurstone
from app.inference.preferences.elo import EloRatings
from app.inference.preferences.expected_wins import ExpectedWins
from app.inference.preferences.pairwise_scores import PairwiseScores

Z = float(ndtri(0.975))
ELO_RESAMPLES, MIN_ELO_RESAMPLES = 200, 20
MAX_ELO_PAIRS_IN_RESAMPLES = (
    10_000_000  # in all resamples; Elo goes through them one by one, in about half a microsecond each
)

DEPENDENT_PAIRS_NOTE = Note(
    "dependent_pairs",
    "The pairs of a task come from one answer and are not independent, so intervals are too narrow, especially with "
    "many items per task.",
)

PairwiseFit = PairwiseScores | ExpectedWins | EloRatings
PairColumns = tuple[Integers, Integers, Integers, Integers]


def preference_pair_columns(answers: Answers) -> PairColumns:
    """Return first item, second item, outcome and HIT of every pair, in order of time.

    The outcome is +1 if the first is preferred, 0 for a tie, else -1. Scores no further apart than the campaign's tie
    margin are a tie. Equal places may mean that the order is unknown; such pairs are left out.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`.

    """
    refuse_without_answers(answers)
    pairs = preference_pair_columns_within_groups(answers, answers.hit, answers.item, answers.scores_between_0_and_1)
    if not len(pairs[0]):
        raise Inestimable("No two items were judged side by side, so there are no preferences.", code="no_pairs")
    return pairs


def preference_pair_columns_within_groups(
    answers: Answers, groups: Integers, items: Integers, scores: Array
) -> PairColumns:
    """Return the pairs of any judgments, as `preference_pair_columns` does.

    Args:
        answers: The campaign's answers.
        groups: Number of the group of judgments made together, (R,).
        items: Judged items, (R,).
        scores: Scores, (R,); higher is better.

    """
    parameters = answers.parameters
    return comparisons.pair_outcome_columns_from_hits(
        groups, items, scores, tie_margin=parameters.tie_margin, ties=parameters.ties
    )


def fit_bradley_terry(answers: Answers, pairs: PairColumns) -> PairwiseScores:
    """Return the Bradley-Terry fit of the pairs of `preference_pair_columns`."""
    first, second, outcomes, _ = pairs
    return bradley_terry.fit(first, second, outcomes, n_items=answers.n_items)


def make_pairwise_score_function(
    estimate: Callable[..., PairwiseScores | ExpectedWins], *method_notes: Note
) -> Callable[[Answers], Scores]:
    """Return a score method from an estimator with standard errors; `method_notes` apply to all its results."""

    def fit(answers: Answers) -> Scores:
        first, second, outcomes, _ = preference_pair_columns(answers)
        result = estimate(first, second, outcomes, n_items=answers.n_items)
        low, high = result.score - Z * result.standard_error, result.score + Z * result.standard_error
        if isinstance(result, ExpectedWins):
            low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return scores_from_pairwise_fit(
            answers, result, low=low, high=high, standard_error=result.standard_error, notes=method_notes
        )

    return fit


def expected_win_percent_scores(answers: Answers) -> Scores:
    """Return each item's expected share of wins against the other items, in per cent."""
    scores = make_pairwise_score_function(partial(expected_wins.fit, ties="half"))(answers)
    low, high, error = (
        None if of is None else shares_to_points(of) for of in (scores.low, scores.high, scores.standard_error)
    )
    return replace(scores, values=shares_to_points(scores.values), low=low, high=high, standard_error=error)


def elo_scores_with_bootstrap_intervals(answers: Answers) -> Scores:
    """Return Elo ratings with bootstrap intervals; without intervals if there are too many pairs to resample."""
    first, second, outcomes, hits = preference_pair_columns(answers)
    resamples = min(ELO_RESAMPLES, MAX_ELO_PAIRS_IN_RESAMPLES // max(len(first), 1))
    resamples = resamples if resamples >= MIN_ELO_RESAMPLES else 0
    ratings = elo.fit(
        *(first, second, outcomes),
        n_items=answers.n_items,
        dependence_blocks=hits,
        resamples=resamples,
        rng=answers.seeded_rng(),
    )
    if resamples:
        sentence = "Whole tasks were resampled, so the intervals allow for pairs of a task that are not independent."
        notes = (*notes_with_names(ratings.notes, {"item": answers.ids}), Note("hits_drawn_again", sentence))
        return Scores(ratings.score, answers.has_judgments, ratings.low, ratings.high, ratings.standard_error, notes)
    sentence = f"{len(first):,} pairs are too many to resample, so there are no intervals."
    return scores_from_pairwise_fit(answers, ratings, notes=(Note("too_many_to_draw_again", sentence),))


def scores_from_pairwise_fit(
    answers: Answers,
    result: PairwiseFit,
    *,
    low: Array | None = None,
    high: Array | None = None,
    standard_error: Array | None = None,
    notes: tuple[Note, ...] = (),
) -> Scores:
    """Return the fit as `Scores`, with items by name in the notes."""
    dependence_notes = (DEPENDENT_PAIRS_NOTE,) if low is not None and np.bincount(answers.hit).max() > 2 else ()
    all_notes = (*notes_with_names(result.notes, {"item": answers.ids}), *notes, *dependence_notes)
    return Scores(result.score, answers.has_judgments, low, high, standard_error, all_notes)


# How often: `python -m benchmarks.coverage_of_models`.
DRAWN_TOGETHER_NOTE = Note(
    "scores_drawn_together",
    "With few comparisons, scores are too close together, and the intervals do not account for that: in "
    "simulations, 73 to 94 of 100 contained the score that very many comparisons would give.",
)

BRADLEY_TERRY = ScoreMethod(
    "Bradley-Terry",
    "The odds that one item is preferred to another depend on the difference of their scores alone; a tie is half a "
    "win for each.",
    "log odds, mean 0",
    make_pairwise_score_function(bradley_terry.fit),
    is_default=True,
    reads="order",
)

RAO_KUPPER = ScoreMethod(
    "Rao-Kupper",
    "Like Bradley-Terry, but two items that are close enough look the same; how close is learned from the ties.",
    "log odds, mean 0",
    make_pairwise_score_function(bradley_terry.fit_rao_kupper),
    reads="order",
)

THURSTONE = ScoreMethod(
    "Thurstone, Case V",
    "The impression that an item makes varies Normally, by the same amount for every item; a tie is half a win for "
    "each.",
    "standard deviations of a difference, mean 0",
    make_pairwise_score_function(thurstone.fit),
    reads="order",
)

ELO = ScoreMethod(
    "Elo",
    "Judgments of pairs are used one after another, and the latest count most. Ratings never converge.",
    "rating points, start 1500",
    elo_scores_with_bootstrap_intervals,
    reads="order",
)

EXPECTED_WINS = ScoreMethod(
    "Expected wins",
    "Beating one opponent is worth as much as beating another, however strong they are; a tie is half a win.",
    "chance of beating another item, %",
    expected_win_percent_scores,
    reads="order",
)

HOPKINS_MAY = ScoreMethod(
    "Hopkins & May",
    "Items and impressions vary Normally by known amounts, and two impressions within half a unit of each "
    "other are a tie.",
    "units of an impression’s standard deviation, mean 0",
    make_pairwise_score_function(hopkins_may.fit, DRAWN_TOGETHER_NOTE),
    reads="order",
)
