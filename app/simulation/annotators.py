"""Simulated annotators: their answers follow from parameters that have a meaning, or repeat real answers.

A careful annotator j sees an item of true value t (0 to 1) among others in a HIT, and answers

    y = 0.5 + bias_j + scale_j (t - 0.5) + noise e,    e normal with standard deviation 1,

cut to the ends and rounded to the slider's steps. The noise differs by annotator; it grows with the number of HITs done
(fatigue) and falls over the first HITs (learning), and, if asked for, falls where the HIT shows a similar item
(context): Sakaguchi & Van Durme (2018) expect this effect of match quality. Bias and scale are as in the annotator
models of `ratings.annotator_aware`; end-aversion and rounding are known habits on sliders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from app.errors import Invalid
from app.inference.ground.arrays import Array

SLIDER_STEPS = 100
CONTEXT_WIDTH_SHARE = 0.1  # distance of values, as a share of the scale, at which the context effect is 61 %
CarelessKind = Literal["random", "straight_line", "middle"]
CARELESS_KINDS: tuple[CarelessKind, ...] = ("random", "straight_line", "middle")


@dataclass(frozen=True, slots=True)
class Habits:
    """Answering habits of one annotator.

    Attributes:
        bias: Bias, as a share of the scale.
        scale: Spread of the answers; 1 is the spread of the truth.
        noise: Standard deviation of an answer, as a share of the scale.
        end_aversion: Share of each half of the scale that the annotator avoids at its end, 0 to 1.
        to_5: Share of answers rounded to 5 points.
        to_10: Share of answers rounded to 10 points.
        fatigue: Relative growth of the noise in 100 HITs.
        learning: Relative excess of the noise at first; it falls to a third of that within 5 HITs.
        context: Relative fall of the noise where the HIT shows another item of the same value.
        careless: How a careless annotator answers; None for a careful one.

    """

    bias: float = 0.0
    scale: float = 1.0
    noise: float = 0.15
    end_aversion: float = 0.0
    to_5: float = 0.0
    to_10: float = 0.0
    fatigue: float = 0.0
    learning: float = 0.0
    context: float = 0.0
    careless: CarelessKind | None = None

    def values_as_perceived_by_annotator(self, true_values: Array, hits_done: int, rng: np.random.Generator) -> Array:
        """Return perceived values of items on the scale, (n,), perhaps beyond its ends; anywhere for a careless
        annotator.

        Args:
            true_values: True values of the items of a HIT, (n,).
            hits_done: Number of HITs that the annotator has answered.
            rng: Source of randomness.

        """
        if self.careless is not None:
            return careless_scores_of_kind(self.careless, rng.random(len(true_values)), rng)
        noise = self.noise * (1 + self.fatigue * hits_done / 100) * (1 + self.learning * np.exp(-hits_done / 5))
        noise = noise * (1 - self.context * similarity_to_most_similar_other(true_values))
        perceived: Array = (
            0.5 + self.bias + self.scale * (true_values - 0.5) + noise * rng.standard_normal(len(true_values))
        )
        return perceived

    def draw_scores_for_items(self, true_values: Array, hits_done: int, rng: np.random.Generator) -> Array:
        """Return scores of items with these true values, (n,), on the steps of a slider, 0 to 1."""
        if self.careless is not None:
            return round_to_slider_steps(self.values_as_perceived_by_annotator(true_values, hits_done, rng))
        perceived = 0.5 + (
            np.clip(self.values_as_perceived_by_annotator(true_values, hits_done, rng), 0.0, 1.0) - 0.5
        ) * (1 - self.end_aversion)
        step = np.array([1.0, 5.0, 10.0])[rng.choice(3, len(true_values), p=self.probabilities_of_rounding_steps)]
        return round_to_slider_steps(perceived, step)

    @property
    def probabilities_of_rounding_steps(self) -> tuple[float, float, float]:
        """Probabilities of rounding to the nearest step, to 5 and to 10 points."""
        return max(0.0, 1.0 - self.to_5 - self.to_10), self.to_5, self.to_10


def similarity_to_most_similar_other(true_values: Array) -> Array:
    """Return the similarity of each item of a HIT, (n,), to the most similar other one.

    It is 1 for the same value, and falls with the distance as a normal density.
    """
    if len(true_values) < 2:
        return np.zeros(len(true_values))
    distances = np.abs(true_values[:, None] - true_values)
    np.fill_diagonal(distances, np.inf)
    near: Array = np.exp(-0.5 * (distances.min(axis=1) / CONTEXT_WIDTH_SHARE) ** 2)
    return near


def careless_scores_of_kind(kind: CarelessKind, random_scores: Array, rng: np.random.Generator) -> Array:
    """Return scores of a careless annotator, (n,).

    They are `random_scores`, or all equal to the first of these, or about the middle of the scale.
    """
    if kind == "straight_line":
        return np.full(len(random_scores), random_scores[0])
    return rng.normal(0.5, 0.02, len(random_scores)) if kind == "middle" else random_scores


def round_to_slider_steps(scores: Array, step_points: npt.ArrayLike = 1.0) -> Array:
    """Round scores to the nearest steps of a slider, 0 to 1, or to whole multiples of `step_points` points."""
    step_sizes = np.asarray(step_points, np.float64)
    steps: Array = np.round(np.clip(scores, 0.0, 1.0) * SLIDER_STEPS / step_sizes) * step_sizes / SLIDER_STEPS
    return steps


@dataclass(frozen=True, slots=True)
class Population:
    """Distribution of annotators' habits. Habits not listed here are as in `Habits`, the same for all.

    Attributes:
        bias_sd: Standard deviation of biases.
        log_scale_sd: Standard deviation of the logarithm of scales.
        noise: Median noise.
        log_noise_sd: Standard deviation of the logarithm of the noise.
        careless: Share of annotators who answer carelessly, by kind.

    """

    bias_sd: float = 0.0
    log_scale_sd: float = 0.0
    noise: float = 0.15
    log_noise_sd: float = 0.0
    end_aversion: float = 0.0
    to_5: float = 0.0
    to_10: float = 0.0
    fatigue: float = 0.0
    learning: float = 0.0
    context: float = 0.0
    careless: Mapping[CarelessKind, float] = field(default_factory=dict)

    def draw_habits(self, size: int, rng: np.random.Generator) -> list[Habits]:
        """Draw the habits of `size` annotators, in random order; careless ones in the given shares, rounded."""
        counts = {kind: round(share * size) for kind, share in self.careless.items()}
        kinds: list[CarelessKind | None] = [kind for kind, count in counts.items() for _ in range(count)]
        kinds = [*kinds, *[None] * size][:size]
        shared = {name: getattr(self, name) for name in SHARED_HABITS}
        return [
            Habits(
                bias=self.bias_sd * rng.standard_normal(),
                scale=float(np.exp(self.log_scale_sd * rng.standard_normal())),
                noise=float(self.noise * np.exp(self.log_noise_sd * rng.standard_normal())),
                careless=kinds[k],
                **shared,
            )
            for k in rng.permutation(size).tolist()
        ]


SHARED_HABITS = ("end_aversion", "to_5", "to_10", "fatigue", "learning", "context")


def population_with_random_bias_only(noise: float, careless_share: float = 0.0) -> Population:
    """Annotators who differ in bias alone, by half their noise; a share of them answers at random."""
    return Population(bias_sd=noise / 2, noise=noise, careless={"random": careless_share})


# Fitted and shown by `python -m benchmarks.populations`.
POPULATIONS = {
    "mlqe-et-en": Population(0.152, 0.151, 0.211, 0.129, to_10=0.048),
    "mlqe-ro-en": Population(0.048, 0.088, 0.143, 0.139, to_5=0.179, to_10=0.156),
}
POPULATION_TITLES = {
    "mlqe-et-en": "people who rated Estonian–English translations",
    "mlqe-ro-en": "people who rated Romanian–English translations",
}


def build_population_or_refuse(
    population_name: str, noise: float, careless_share: float, careless_kind: CarelessKind
) -> Population:
    """Return one of `POPULATIONS`, or a plain population where the name is empty, with a share of careless annotators.

    Raises `Invalid` (`population_unknown`).

    Args:
        population_name: A key of `POPULATIONS`, or empty.
        noise: Noise of a plain population, as a share of the scale.
        careless_share: Share of careless annotators, 0 to 1.
        careless_kind: How they answer.

    """
    if population_name and population_name not in POPULATIONS:
        raise Invalid(
            f"There are no simulated annotators “{population_name}”. Choose one of {', '.join(POPULATIONS)}.",
            code="population_unknown",
        )
    return replace(
        POPULATIONS[population_name] if population_name else population_with_random_bias_only(noise),
        careless={careless_kind: careless_share},
    )


class SimulatedAnnotators(Protocol):
    """Annotators 0, 1, ... who score items, given by number, in [0, 1]."""

    @property
    def number(self) -> int:
        """Number of annotators."""

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Return the annotator's scores of these items, (n,)."""


class HabitAnnotators:
    """Annotators with habits, who see the true values of items, (N,), 0 to 1."""

    def __init__(self, habits: Sequence[Habits], true_values: npt.ArrayLike) -> None:
        self.habits, self.true_values = habits, np.asarray(true_values, np.float64)
        self.hits_done = [0] * len(habits)

    @property
    def number(self) -> int:
        return len(self.habits)

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        hits_done = self.hits_done[annotator]
        self.hits_done[annotator] += 1
        return self.habits[annotator].draw_scores_for_items(self.true_values[[*items]], hits_done, rng)


class ReplayedAnnotators:
    """Annotators who repeat real scores: any score of an item, as often as it was given."""

    def __init__(self, scores_by_item: Sequence[npt.ArrayLike], number: int = 30) -> None:
        """Take the real scores of each item, in [0, 1]."""
        self.scores, self.number = [np.asarray(scores, np.float64) for scores in scores_by_item], number

    @property
    def truth(self) -> Array:
        """Mean of each item's real scores, (N,)."""
        return np.array([scores.mean() for scores in self.scores])

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        return np.array([rng.choice(self.scores[item]) for item in items])
