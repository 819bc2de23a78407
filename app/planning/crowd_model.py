"""Simulated annotators and true item values, estimated from the answers so far.

Estimated by plain means, annotators are identical and differ on an item as far as real ones did. Where a law that
learns about annotators measures the goal, the annotators who have answered continue, among others like them: with the
biases that the law has learned, some of them answering at random (`ratings.attention_mixture`).
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
from app.inference.ratings.goal_probabilities import beliefs_about_means_with_and_without_prior
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.simulation.annotators import HabitAnnotators, Habits, Population, SimulatedAnnotators, round_to_slider_steps

# Both parameters of the Beta distribution of true values, where the answers tell nothing about them.
TRUTH_PRIOR_PARAMETER = 2.0

AnnotatorSource = Callable[[np.random.Generator], SimulatedAnnotators]


@dataclass
class EstimatedAnnotators:
    """Identical annotators who answer as earlier ones did.

    Attributes:
        truth: True values, (N,), on 0 to 1.
        noise: Standard deviation of answers about each item, (N,), on 0 to 1.
        number: Number of annotators.

    """

    truth: Array
    noise: Array
    number: int

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        chosen = [*items]
        return round_to_slider_steps(self.truth[chosen] + self.noise[chosen] * rng.standard_normal(len(chosen)))


@dataclass(frozen=True, eq=False)
class FittedCrowd:
    """Estimates of a law about items and about the J annotators who have answered.

    Attributes:
        estimates: Estimates of the N items.
        random_answer_probability: Probability that each annotator answers at random, (J,).
        bias: How much higher each annotator scores, (J,).
        noise: Standard deviation of attentive annotators' answers.

    """

    estimates: ModeratedMeans
    random_answer_probability: Array
    bias: Array
    noise: float

    def draw_annotators(
        self, rng: np.random.Generator, true_values: Array, noise_factor: float, new_count: int, *, keep_known: bool
    ) -> HabitAnnotators:
        """Draw annotators like those who have answered.

        Args:
            rng: Source of randomness.
            true_values: True values of the items, (N,).
            noise_factor: Factor of their noise.
            new_count: Number of new annotators.
            keep_known: True if the annotators who have answered continue; they come first, in their order.

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


def default_priors_of_law(law: Law, item_count: int) -> Array:
    """Return the default prior of the law for N items, (numbers, N)."""
    return np.repeat(np.array(law.family.default_prior)[:, None], item_count, axis=1)


@dataclass(frozen=True, eq=False)
class LawReplay:
    """Beliefs of a law after plausible HITs, rebuilt from judgments.

    Attributes:
        hits: The HITs; their annotators are indices into `annotators`.
        beliefs: Beliefs after these HITs.
        annotators: Numbers of the annotators who have answered, (J,).

    """

    hits: Sequence[AnsweredHit]
    beliefs: LawBeliefs
    annotators: Integers


def replay_earlier_judgments_with_law(
    evidence: GoalEvidence, items_per_hit: int, priors: Array | None = None
) -> LawReplay:
    """Replay the judgments of the evidence by its law.

    Args:
        evidence: Judgments and law.
        items_per_hit: Items of a HIT.
        priors: Priors of the posteriors, (numbers, N); None for the law's own.

    """
    item_count = len(evidence.tally.total)
    judgments = evidence.judgments or LongJudgments.empty(item_count)
    annotators, annotator_index = np.unique(judgments.annotators, return_inverse=True)
    hits = group_consecutive_judgments_into_hits(replace(judgments, annotators=annotator_index), items_per_hit)
    beliefs = evidence.law.initial_beliefs(
        [*(default_priors_of_law(evidence.law, item_count) if priors is None else priors)], LawParameters()
    )
    beliefs.apply_hits(hits)
    return LawReplay(hits, beliefs, annotators)


def group_consecutive_judgments_into_hits(judgments: LongJudgments, items_per_hit: int) -> list[AnsweredHit]:
    """Group consecutive judgments by one annotator into HITs of at most `items_per_hit` items, none repeated."""
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


def fit_crowd_or_none(evidence: GoalEvidence, replay: LawReplay) -> FittedCrowd | None:
    """Estimate the crowd; None where there are too few judgments."""
    judgments, fitted, learned = (
        evidence.judgments,
        evidence.law_estimates_or_none,
        replay.beliefs.law_state_besides_posteriors(),
    )
    if (
        judgments is None
        or fitted is None
        or learned.campaign is None
        or not beliefs_about_means_with_and_without_prior(fitted)
    ):
        return None
    descriptions = evidence.law.annotator_description_by_number(learned.annotators, learned.campaign)
    bias = np.nan_to_num([descriptions[index].bias for index in range(len(descriptions))])
    annotator_index = np.searchsorted(replay.annotators, judgments.annotators)
    # Biases stay in the noise: each is known too little to be taken out.
    mixture = attention_mixture.fit(
        ScoredJudgments.from_arrays(judgments.items, annotator_index, judgments.scores, judgments.n_items, len(bias))
    )
    return FittedCrowd(fitted, mixture.at_random, bias, mixture.noise)


def make_source_of_annotators_by_law(
    tally: Tally,
    crowd: FittedCrowd | None,
    fallback_crowd: Population | GoalEvidence,
    items_per_hit: int,
    annotator_count: int,
) -> AnnotatorSource:
    """Return a source that draws the annotators of each run: the campaign's own, and others like them.

    Where the campaign has too few judgments, they are like those of an earlier campaign, or of the chosen population.

    Args:
        tally: Judgments of the campaign.
        crowd: Its fitted crowd; None where there are too few judgments.
        fallback_crowd: A population, or the evidence of an earlier campaign.
        items_per_hit: Items of a HIT.
        annotator_count: Number of annotators in all.

    """
    if crowd is not None:
        new_count = annotator_count - len(crowd.bias)
        return lambda rng: crowd.draw_annotators(
            rng, *draw_true_values_and_error_factor(crowd.estimates, rng), new_count, keep_known=True
        )
    earlier_crowd = (
        None
        if isinstance(fallback_crowd, Population)
        else fit_crowd_or_none(fallback_crowd, replay_earlier_judgments_with_law(fallback_crowd, items_per_hit))
    )
    if earlier_crowd is None:
        return make_source_of_identical_annotators(tally, fallback_crowd, annotator_count)

    def draw_annotators_like_earlier_ones(rng: np.random.Generator) -> SimulatedAnnotators:
        truth, factor = draw_true_values_and_error_factor(earlier_crowd.estimates, rng)
        return earlier_crowd.draw_annotators(
            rng, rng.choice(truth, len(tally.total)), factor, annotator_count, keep_known=False
        )

    return draw_annotators_like_earlier_ones


def make_source_of_identical_annotators(
    tally: Tally, fallback_crowd: Population | GoalEvidence, annotator_count: int
) -> AnnotatorSource:
    """Return a source like `make_source_of_annotators_by_law`, of identical annotators or the fallback.

    The source raises `Inestimable` (`too_few_judgments`).
    """
    item_count = len(tally.total)

    def draw_annotators(rng: np.random.Generator) -> SimulatedAnnotators:
        if (own_annotators := estimate_identical_annotators_or_none(tally, rng, annotator_count)) is not None:
            return own_annotators
        if isinstance(fallback_crowd, Population):
            return HabitAnnotators(
                fallback_crowd.draw_habits(annotator_count, rng),
                rng.beta(TRUTH_PRIOR_PARAMETER, TRUTH_PRIOR_PARAMETER, item_count),
            )
        if (earlier := estimate_identical_annotators_or_none(fallback_crowd.tally, rng, annotator_count)) is None:
            raise Inestimable("The earlier campaign has too few judgments.", code="too_few_judgments")
        drawn_items = rng.integers(len(earlier.truth), size=item_count)
        return EstimatedAnnotators(earlier.truth[drawn_items], earlier.noise[drawn_items], annotator_count)

    return draw_annotators


def estimate_identical_annotators_or_none(
    tally: Tally, rng: np.random.Generator, annotator_count: int
) -> EstimatedAnnotators | None:
    """Estimate identical annotators and item values from the judgments; None where there are too few."""
    estimates = moderated_means_of_tally(tally)
    if not beliefs_about_means_with_and_without_prior(estimates):
        return None
    truth, factor = draw_true_values_and_error_factor(estimates, rng)
    noise = estimates.standard_error * factor * np.sqrt(tally.judgments)
    return EstimatedAnnotators(truth, np.where(np.isfinite(noise), noise, np.nanmedian(noise)), annotator_count)


def draw_true_values_and_error_factor(estimates: ModeratedMeans, rng: np.random.Generator) -> tuple[Array, float]:
    """Draw plausible true values of the items, (N,), and the factor by which errors may be larger than they seem.

    The differences between annotators are known only as well as their degrees of freedom allow; the smaller their part
    in the spread of scores, the larger the part of the items.

    Args:
        estimates: Estimates of the items; `beliefs_about_means_with_and_without_prior` must exist for them.
        rng: Source of randomness.

    """
    factor = float(np.sqrt(estimates.degrees_of_freedom_limit / rng.chisquare(estimates.degrees_of_freedom_limit)))
    scaled_estimates = replace(estimates, standard_error=estimates.standard_error * factor)
    beliefs = (
        beliefs_about_means_with_and_without_prior(scaled_estimates)
        or beliefs_about_means_with_and_without_prior(estimates)
    )[0]
    truth = beliefs.centre + beliefs.error * rng.standard_t(beliefs.freedom)
    return np.clip(truth, 0, 1), factor
