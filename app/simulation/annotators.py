"""Made-up annotators: how they answer, with parameters that have a meaning; and those who repeat what real ones said.

A careful annotator j sees an item of true value t (0 to 1) among others in a HIT, and answers

    y = 0.5 + bias_j + scale_j (t - 0.5) + noise e,    e normal with standard deviation 1,

cut to the ends and set on the slider's steps. The noise is their own; it grows with what they have done (fatigue) and
falls over their first HITs (learning), and, if asked for, falls where a similar item stands beside this one (context):
what Sakaguchi & Van Durme (2018) take match quality to be good for. Bias and scale are as in the annotator models of
`ratings.annotator_aware`; end-aversion and rounding are what sliders are known for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from app.errors import Invalid
from app.inference.ground.arrays import Array

SLIDER_STEPS = 100  # of a slider
CONTEXT_WIDTH_SHARE = 0.1  # how near a similar item is: context works to 61 % at this distance
CarelessKind = Literal["random", "straight_line", "middle"]
CARELESS_KINDS: tuple[CarelessKind, ...] = ("random", "straight_line", "middle")


@dataclass(frozen=True, slots=True)
class Habits:
    """How one annotator answers. bias: in shares of the scale. scale: how far they spread their answers, 1 as far as
    the truth. noise: standard deviation of an answer, in shares of the scale. end_aversion: the share of each half of
    the scale that they leave out at its end, 0 to 1. to_5, to_10: how often they round to 5 and to 10 points, shares.
    fatigue: by what share the noise grows in 100 HITs. learning: by what share it is larger at first; it falls to a
    third of that within 5 HITs. context: by what share the noise falls where the same value stands beside. careless:
    how they answer who do not look; None for who does.
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

    def perceive_values(self, true_values: Array, hits_done: int, rng: np.random.Generator) -> Array:
        """Where items of these true values, (n,), seem to stand on the scale, perhaps beyond its ends; after `done`
        HITs. To who does not look, anywhere.
        """
        if self.careless is not None:
            return careless_scores(self.careless, rng.random(len(true_values)), rng)
        noise = self.noise * (1 + self.fatigue * hits_done / 100) * (1 + self.learning * np.exp(-hits_done / 5))
        noise = noise * (1 - self.context * nearest_similarity(true_values))
        perceived: Array = (
            0.5 + self.bias + self.scale * (true_values - 0.5) + noise * rng.standard_normal(len(true_values))
        )
        return perceived

    def score_items(self, true_values: Array, hits_done: int, rng: np.random.Generator) -> Array:
        """Their scores of items of these true values, (n,), on the steps of a slider, 0 to 1."""
        if self.careless is not None:
            return round_to_slider_steps(self.perceive_values(true_values, hits_done, rng))
        perceived = 0.5 + (np.clip(self.perceive_values(true_values, hits_done, rng), 0.0, 1.0) - 0.5) * (
            1 - self.end_aversion
        )
        step = np.array([1.0, 5.0, 10.0])[rng.choice(3, len(true_values), p=self.rounding_probabilities)]
        return round_to_slider_steps(perceived, step)

    @property
    def rounding_probabilities(self) -> tuple[float, float, float]:
        """How often they take the nearest step, and round to 5 and to 10 points."""
        return max(0.0, 1.0 - self.to_5 - self.to_10), self.to_5, self.to_10


def nearest_similarity(true_values: Array) -> Array:
    """Of items that stand beside each other, (n,), how near the nearest other one is: 1 for the same value, and less
    the farther away, after a normal density.
    """
    if len(true_values) < 2:
        return np.zeros(len(true_values))
    distances = np.abs(true_values[:, None] - true_values)
    np.fill_diagonal(distances, np.inf)
    near: Array = np.exp(-0.5 * (distances.min(axis=1) / CONTEXT_WIDTH_SHARE) ** 2)
    return near


def careless_scores(kind: CarelessKind, random_scores: Array, rng: np.random.Generator) -> Array:
    """Scores of somebody who does not look, who would put items anywhere, (n,): there, all where the first one is, or
    about the middle.
    """
    if kind == "straight_line":
        return np.full(len(random_scores), random_scores[0])
    return rng.normal(0.5, 0.02, len(random_scores)) if kind == "middle" else random_scores


def round_to_slider_steps(scores: Array, step_points: npt.ArrayLike = 1.0) -> Array:
    """The nearest steps of a slider, 0 to 1, or whole multiples of so many points."""
    step_sizes = np.asarray(step_points, np.float64)
    steps: Array = np.round(np.clip(scores, 0.0, 1.0) * SLIDER_STEPS / step_sizes) * step_sizes / SLIDER_STEPS
    return steps


@dataclass(frozen=True, slots=True)
class Population:
    """What annotators are like, of whom each has habits of their own.

    bias_sd: standard deviation of their biases; log_scale_sd: of the logarithm of their scales. noise: of the one in
    the middle; log_noise_sd: the standard deviation of its logarithm. careless: the share of them who answer so. The
    rest is as `Habits` has it, the same for all.
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
        """So many annotators; as many of them careless as the shares say, rounded, in a random order."""
        counts = {how: round(share * size) for how, share in self.careless.items()}
        kinds: list[CarelessKind | None] = [how for how, count in counts.items() for _ in range(count)]
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


def plain_population(noise: float, careless_share: float = 0.0) -> Population:
    """People who differ in bias alone, by half their noise; a share of them answer at random."""
    return Population(bias_sd=noise / 2, noise=noise, careless={"random": careless_share})


# As `python -m benchmarks.populations` fits and shows them.
POPULATIONS = {
    "mlqe-et-en": Population(0.116, 0.147, 0.166, 0.104, to_10=0.048),
    "mlqe-ro-en": Population(0.021, 0.072, 0.158, 0.059, to_5=0.179, to_10=0.156),
}


def build_population(
    population_name: str, noise: float, careless_share: float, careless_kind: CarelessKind
) -> Population:
    """People like those of one of `POPULATIONS`, or plain ones with this noise where `like` is empty; a share of them
    is careless in this way.

    Raises `Invalid` (`population_unknown`).
    """
    if population_name and population_name not in POPULATIONS:
        raise Invalid(
            f"No annotators are called “{population_name}”, but {', '.join(POPULATIONS)}.", code="population_unknown"
        )
    return replace(
        POPULATIONS[population_name] if population_name else plain_population(noise),
        careless={careless_kind: careless_share},
    )


class SimulatedAnnotators(Protocol):
    """Annotators 0, 1, ... who are asked about items by their numbers, and answer with scores in [0, 1]."""

    @property
    def number(self) -> int:
        """How many there are."""

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Their scores of these items, (n,)."""


class HabitAnnotators:
    """People with habits, who see items of true values."""

    def __init__(self, habits: Sequence[Habits], true_values: npt.ArrayLike) -> None:
        """truth: (N,), 0 to 1."""
        self.habits, self.true_values = habits, np.asarray(true_values, np.float64)
        self.hits_done = [0] * len(habits)

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.habits)

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Their scores of these items, (n,)."""
        hits_done = self.hits_done[annotator]
        self.hits_done[annotator] += 1
        return self.habits[annotator].score_items(self.true_values[[*items]], hits_done, rng)


class ReplayedAnnotators:
    """People who repeat what real annotators said: of an item any of its real scores, as often as each was given."""

    def __init__(self, scores_by_item: Sequence[npt.ArrayLike], number: int = 30) -> None:
        """scores: of each item those that it got, in [0, 1]."""
        self.scores, self.number = [np.asarray(said, np.float64) for said in scores_by_item], number

    @property
    def truth(self) -> Array:
        """The mean of each item's real scores, (N,)."""
        return np.array([said.mean() for said in self.scores])

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Scores of these items, (n,)."""
        return np.array([rng.choice(self.scores[item]) for item in items])
