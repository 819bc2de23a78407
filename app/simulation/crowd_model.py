"""Whom simulated campaigns ask: annotators, and true values of items, as what was said tells of both.

By plain means annotators are alike, and differ on an item as far as real ones did. Where a law that learns of
annotators measures the goal, those who have answered go on, among others like them: as strict as the law takes them
for, some of them at random (`ratings.who_looks`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.goals.estimates import GoalEvidence
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, Law, LawBeliefs, LawParameters
from app.inference.ratings import attention_mixture
from app.inference.ratings.annotator_evidence import ScoredJudgments
from app.inference.ratings.attention_mixture import PRIOR_KIND_COUNTS
from app.inference.ratings.goal_probabilities import believed_true_means
from app.inference.ratings.moderated_means import ModeratedMeans, moderate_means
from app.simulation.annotators import HabitAnnotators, Habits, Population, SimulatedAnnotators, round_to_slider_steps

TRUTH_PRIOR_PARAMETER = (
    2.0  # both parameters of the Beta that true values are drawn from where nothing is known of them
)

AnnotatorSource = Callable[[np.random.Generator], SimulatedAnnotators]


@dataclass
class EstimatedAnnotators:
    """Annotators who answer as those before did. truth, noise: (N,), on 0 to 1."""

    truth: Array
    noise: Array
    number: int

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Scores, (n,)."""
        chosen = [*items]
        return round_to_slider_steps(self.truth[chosen] + self.noise[chosen] * rng.standard_normal(len(chosen)))


@dataclass(frozen=True, eq=False)
class FittedCrowd:
    """What a law has learned. known: of the N items. at_random, bias: of the J annotators who have answered, (J,) each,
    the probability that they do not look, and how much higher they score. noise: standard deviation of answers of who
    looks.
    """

    estimates: ModeratedMeans
    random_answer_probability: Array
    bias: Array
    noise: float

    def draw_annotators(
        self, rng: np.random.Generator, true_values: Array, noise_factor: float, new_count: int, *, keep_known: bool
    ) -> HabitAnnotators:
        """So many others like those who have answered; first these, by their places, if they `go_on`. factor: by what
        their noise is multiplied.
        """
        known_count = len(self.bias)
        kept_count = known_count if keep_known else 0
        source_annotators = np.append(np.arange(kept_count), rng.integers(known_count, size=new_count))
        share = rng.beta(
            *(
                np.array([self.random_answer_probability.sum(), (1 - self.random_answer_probability).sum()])
                + PRIOR_KIND_COUNTS
            )
        )
        chances = np.where(
            np.arange(len(source_annotators)) < kept_count, self.random_answer_probability[source_annotators], share
        )
        is_careless = rng.random(len(source_annotators)) < chances
        habits = [
            Habits(bias=bias, noise=noise_factor * self.noise, careless="random" if careless else None)
            for bias, careless in zip(self.bias[source_annotators].tolist(), is_careless.tolist(), strict=True)
        ]
        return HabitAnnotators(habits, true_values)


def default_priors(law: Law, item_count: int) -> Array:
    """What a law's posteriors of N items begin with where nobody chose another prior, (numbers, N)."""
    return np.repeat(np.array(law.family.default_prior)[:, None], item_count, axis=1)


@dataclass(frozen=True, eq=False)
class LawReplay:
    """What a law learned from HITs as they may have been. there: the numbers of annotators who have answered, (J,),
    whose places in it are theirs in `hits` and `beliefs`.
    """

    hits: Sequence[AnsweredHit]
    beliefs: LawBeliefs
    annotators: Integers


def replay_evidence(evidence: GoalEvidence, items_per_hit: int, priors: Array | None = None) -> LawReplay:
    """By the law for which something is known. n: items of a HIT. priors: what its posteriors began with, (numbers, N);
    None for its own.
    """
    item_count = len(evidence.tally.total)
    judgments = evidence.judgments or LongJudgments.empty(item_count)
    annotators, annotator_index = np.unique(judgments.annotators, return_inverse=True)
    hits = group_judgments_into_hits(replace(judgments, annotators=annotator_index), items_per_hit)
    beliefs = evidence.law.initial_beliefs(
        [*(default_priors(evidence.law, item_count) if priors is None else priors)], LawParameters()
    )
    beliefs.apply_hits(hits)
    return LawReplay(hits, beliefs, annotators)


def group_judgments_into_hits(judgments: LongJudgments, items_per_hit: int) -> list[AnsweredHit]:
    """Judgments in a row by one annotator, of no item twice, and of n at most, as HITs."""
    hits: list[AnsweredHit] = []
    for item, annotator, value in zip(
        judgments.items.tolist(), judgments.annotators.tolist(), judgments.scores.tolist(), strict=True
    ):
        last = hits[-1] if hits else None
        if last and last.annotator == annotator and len(last.items) < items_per_hit and item not in last.items:
            hits[-1] = AnsweredHit(annotator, [*last.items, item], [*last.values, value])
        else:
            hits.append(AnsweredHit(annotator, [item], [value]))
    return hits


def fit_crowd(evidence: GoalEvidence, replay: LawReplay) -> FittedCrowd | None:
    """None where too little was said."""
    judgments, fitted, learned = evidence.judgments, evidence.law_estimates, replay.beliefs.to_law_state()
    if judgments is None or fitted is None or learned.campaign is None or not believed_true_means(fitted):
        return None
    descriptions = evidence.law.describe_annotators(learned.annotators, learned.campaign)
    bias = np.nan_to_num([descriptions[place].bias for place in range(len(descriptions))])
    annotator_index = np.searchsorted(replay.annotators, judgments.annotators)
    # Biases stay in the noise: what is known of each is too little to take it out.
    mixture = attention_mixture.fit(
        ScoredJudgments.from_arrays(judgments.items, annotator_index, judgments.scores, judgments.n_items, len(bias))
    )
    return FittedCrowd(fitted, mixture.at_random, bias, mixture.noise)


def annotator_source_by_law(
    tally: Tally,
    crowd: FittedCrowd | None,
    fallback: Population | GoalEvidence,
    items_per_hit: int,
    annotator_count: int,
) -> AnnotatorSource:
    """So many `people` who answer, drawn anew for each run: a campaign's own annotators, and others like them; where it
    tells too little, people like those of an earlier one or as is said. n: items of a HIT.
    """
    if crowd is not None:
        new_count = annotator_count - len(crowd.bias)
        return lambda rng: crowd.draw_annotators(
            rng, *draw_true_values(crowd.estimates, rng), new_count, keep_known=True
        )
    earlier_crowd = (
        None if isinstance(fallback, Population) else fit_crowd(fallback, replay_evidence(fallback, items_per_hit))
    )
    if earlier_crowd is None:
        return annotator_source_by_means(tally, fallback, annotator_count)

    def draw_like_earlier(rng: np.random.Generator) -> SimulatedAnnotators:
        truth, factor = draw_true_values(earlier_crowd.estimates, rng)
        return earlier_crowd.draw_annotators(
            rng, rng.choice(truth, len(tally.total)), factor, annotator_count, keep_known=False
        )

    return draw_like_earlier


def annotator_source_by_means(
    tally: Tally, fallback: Population | GoalEvidence, annotator_count: int
) -> AnnotatorSource:
    """The same, of annotators who are alike, or as is said. What it returns raises `Inestimable`
    (`too_few_judgments`).
    """
    item_count = len(tally.total)

    def draw_annotators(rng: np.random.Generator) -> SimulatedAnnotators:
        if (own := estimate_annotators(tally, rng, annotator_count)) is not None:
            return own
        if isinstance(fallback, Population):
            return HabitAnnotators(
                fallback.draw_habits(annotator_count, rng),
                rng.beta(TRUTH_PRIOR_PARAMETER, TRUTH_PRIOR_PARAMETER, item_count),
            )
        if (earlier := estimate_annotators(fallback.tally, rng, annotator_count)) is None:
            raise Inestimable("The earlier campaign tells too little of its items.", code="too_few_judgments")
        some = rng.integers(len(earlier.truth), size=item_count)
        return EstimatedAnnotators(earlier.truth[some], earlier.noise[some], annotator_count)

    return draw_annotators


def estimate_annotators(tally: Tally, rng: np.random.Generator, annotator_count: int) -> EstimatedAnnotators | None:
    """So many people, as what was said tells of items and annotators; None where it tells too little."""
    estimates = moderate_means(tally)
    if not believed_true_means(estimates):
        return None
    truth, factor = draw_true_values(estimates, rng)
    noise = estimates.standard_error * factor * np.sqrt(tally.judgments)
    return EstimatedAnnotators(truth, np.where(np.isfinite(noise), noise, np.nanmedian(noise)), annotator_count)


def draw_true_values(estimates: ModeratedMeans, rng: np.random.Generator) -> tuple[Array, float]:
    """True values that may be those of the items, (N,), and how many times as large errors may be as they seem: how far
    annotators differ is known as well as so many degrees of freedom tell it, and the less of the spread of scores is
    theirs, the more is of the items. known: of which something is `believed`.
    """
    factor = float(np.sqrt(estimates.degrees_of_freedom_limit / rng.chisquare(estimates.degrees_of_freedom_limit)))
    scaled_estimates = replace(estimates, standard_error=estimates.standard_error * factor)
    beliefs = (believed_true_means(scaled_estimates) or believed_true_means(estimates))[0]
    truth = beliefs.centre + beliefs.error * rng.standard_t(beliefs.freedom)
    return np.clip(truth, 0, 1), factor
