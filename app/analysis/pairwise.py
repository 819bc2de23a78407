"""Scores of items from judgments of pairs: every two items of a HIT are one, decided by their scores."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from app.analysis.contracts import ScoreMethod
from app.analysis.findings import Answers, Scores
from app.analysis.scores import require_answers
from app.designs.scale import in_points
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, named
from app.inference.observations import comparisons
from app.inference.preferences import bradley_terry, elo, expected_wins, hopkins_may, thurstone
from app.inference.preferences.elo import EloRatings
from app.inference.preferences.expected_wins import ExpectedWins
from app.inference.preferences.pairwise_scores import PairwiseScores

Z = float(ndtri(0.975))
RESAMPLES, LEAST_RESAMPLES = 200, 20
PLAYED_PAIRS = 10_000_000  # in all resamples; Elo goes through them one by one, in about half a microsecond each

DEPENDENT = Note(
    "dependent_pairs",
    "The pairs of a HIT come from one answer, and so are not independent: intervals are too narrow, the more so the "
    "more items a HIT has.",
)

Fitted = PairwiseScores | ExpectedWins | EloRatings
Pairs = tuple[Integers, Integers, Integers, Integers]


def pairs_of(answers: Answers) -> Pairs:
    """First item, second item, outcome (+1 first preferred, 0 tie, -1) and HIT of every pair, in order of time.

    Scores no further apart than the campaign's tie margin are a tie; places that are equal may mean that nobody knows,
    and such pairs are left out. Raises `Inestimable` (`no_judgments`, `no_pairs`).
    """
    require_answers(answers)
    found = pairs_among(answers, answers.hit, answers.item, answers.unit_score)
    if not len(found[0]):
        raise Inestimable("No two items were judged side by side, so nothing was preferred.", code="no_pairs")
    return found


def pairs_among(answers: Answers, groups: Integers, items: Integers, scores: Array) -> Pairs:
    """The same of any judgments (R,): groups, which were made together; scores: the better the higher."""
    told = answers.parameters
    return comparisons.of_hits(groups, items, scores, tie_margin=told.tie_margin, ties=told.ties)


def pairwise(estimate: Callable[..., PairwiseScores | ExpectedWins], *told: Note) -> Callable[[Answers], Scores]:
    """A method with standard errors as one of a campaign's answers. told: what is so of all its results."""

    def fit(answers: Answers) -> Scores:
        first, second, outcomes, _ = pairs_of(answers)
        found = estimate(first, second, outcomes, n_items=answers.n_items)
        low, high = found.score - Z * found.standard_error, found.score + Z * found.standard_error
        if isinstance(found, ExpectedWins):
            low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return shown(answers, found, low=low, high=high, standard_error=found.standard_error, notes=told)

    return fit


def percent_won(answers: Answers) -> Scores:
    """Return expected wins in per cent, as pages show how many other items an item beats."""
    found = pairwise(partial(expected_wins.fit, ties="half"))(answers)
    low, high, error = (None if of is None else in_points(of) for of in (found.low, found.high, found.standard_error))
    return replace(found, values=in_points(found.values), low=low, high=high, standard_error=error)


def elo_ratings(answers: Answers) -> Scores:
    """Ratings with bootstrap intervals, as long as there are not too many pairs to go through so often."""
    first, second, outcomes, hits = pairs_of(answers)
    resamples = min(RESAMPLES, PLAYED_PAIRS // max(len(first), 1))
    resamples = resamples if resamples >= LEAST_RESAMPLES else 0
    found = elo.fit(
        *(first, second, outcomes), n_items=answers.n_items, together=hits, resamples=resamples, rng=answers.rng()
    )
    if resamples:
        sentence = "HITs were drawn again whole, so the intervals know that the pairs of a HIT are not independent."
        notes = (*named(found.notes, {"item": answers.ids}), Note("hits_drawn_again", sentence))
        return Scores(found.score, answers.judged, found.low, found.high, found.standard_error, notes)
    sentence = f"{len(first):,} pairs are too many to draw them again, so there are no intervals."
    return shown(answers, found, notes=(Note("too_many_to_draw_again", sentence),))


def shown(
    answers: Answers,
    found: Fitted,
    *,
    low: Array | None = None,
    high: Array | None = None,
    standard_error: Array | None = None,
    notes: tuple[Note, ...] = (),
) -> Scores:
    """What was found, with items by their names in the notes."""
    dependent = (DEPENDENT,) if low is not None and np.bincount(answers.hit).max() > 2 else ()
    sentences = (*named(found.notes, {"item": answers.ids}), *notes, *dependent)
    return Scores(found.score, answers.judged, low, high, standard_error, sentences)


# How often: `python -m benchmarks.coverage_of_models`.
DRAWN_TOGETHER = Note(
    "scores_drawn_together",
    "Scores are drawn together as long as there are few comparisons, which the intervals do not allow for: in "
    "simulations 73 to 94 of 100 held the score that very many comparisons give.",
)

BRADLEY_TERRY = ScoreMethod(
    "Bradley-Terry",
    "The odds that one item is preferred to another depend on the difference of their scores alone; a tie is half a "
    "win for each.",
    "log odds, mean 0",
    pairwise(bradley_terry.fit),
    usual=True,
    reads="order",
)

RAO_KUPPER = ScoreMethod(
    "Rao-Kupper",
    "As Bradley-Terry, but two items that are close enough look the same; how close is learned from the ties.",
    "log odds, mean 0",
    pairwise(bradley_terry.rao_kupper),
    reads="order",
)

THURSTONE = ScoreMethod(
    "Thurstone, Case V",
    "The impression that an item makes varies Normally, by the same amount for every item; a tie is half a win for "
    "each.",
    "standard deviations of a difference, mean 0",
    pairwise(thurstone.fit),
    reads="order",
)

ELO = ScoreMethod(
    "Elo",
    "Judgments of pairs come one after another, and the last ones say most; ratings never settle.",
    "rating points, start 1500",
    elo_ratings,
    reads="order",
)

EXPECTED_WINS = ScoreMethod(
    "Expected wins",
    "Beating one opponent is worth as much as beating another, however strong they are; a tie is half a win.",
    "chance of beating another item, %",
    percent_won,
    reads="order",
)

HOPKINS_MAY = ScoreMethod(
    "Hopkins & May",
    "Items and impressions vary Normally by amounts that are known, and two impressions within half a unit of each "
    "other are a tie.",
    "units of an impression’s standard deviation, mean 0",
    pairwise(hopkins_may.fit, DRAWN_TOGETHER),
    reads="order",
)
