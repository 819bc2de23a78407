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

STEPS = 100  # of a slider
CONTEXT_WIDTH = 0.1  # how near a similar item is: context works to 61 % at this distance
Careless = Literal["random", "straight_line", "middle"]
CARELESS: tuple[Careless, ...] = ("random", "straight_line", "middle")


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
    careless: Careless | None = None

    def sees(self, truth: Array, done: int, rng: np.random.Generator) -> Array:
        """Where items of these true values, (n,), seem to stand on the scale, perhaps beyond its ends; after `done`
        HITs. To who does not look, anywhere.
        """
        if self.careless is not None:
            return without_looking(self.careless, rng.random(len(truth)), rng)
        noise = self.noise * (1 + self.fatigue * done / 100) * (1 + self.learning * np.exp(-done / 5))
        noise = noise * (1 - self.context * nearness(truth))
        seen: Array = 0.5 + self.bias + self.scale * (truth - 0.5) + noise * rng.standard_normal(len(truth))
        return seen

    def says(self, truth: Array, done: int, rng: np.random.Generator) -> Array:
        """Their scores of items of these true values, (n,), on the steps of a slider, 0 to 1."""
        if self.careless is not None:
            return on_steps(self.sees(truth, done, rng))
        seen = 0.5 + (np.clip(self.sees(truth, done, rng), 0.0, 1.0) - 0.5) * (1 - self.end_aversion)
        step = np.array([1.0, 5.0, 10.0])[rng.choice(3, len(truth), p=self.rounding)]
        return on_steps(seen, step)

    @property
    def rounding(self) -> tuple[float, float, float]:
        """How often they take the nearest step, and round to 5 and to 10 points."""
        return max(0.0, 1.0 - self.to_5 - self.to_10), self.to_5, self.to_10


def nearness(truth: Array) -> Array:
    """Of items that stand beside each other, (n,), how near the nearest other one is: 1 for the same value, and less
    the farther away, after a normal density.
    """
    if len(truth) < 2:
        return np.zeros(len(truth))
    apart = np.abs(truth[:, None] - truth)
    np.fill_diagonal(apart, np.inf)
    near: Array = np.exp(-0.5 * (apart.min(axis=1) / CONTEXT_WIDTH) ** 2)
    return near


def without_looking(how: Careless, anywhere: Array, rng: np.random.Generator) -> Array:
    """Scores of somebody who does not look, who would put items anywhere, (n,): there, all where the first one is, or
    about the middle.
    """
    if how == "straight_line":
        return np.full(len(anywhere), anywhere[0])
    return rng.normal(0.5, 0.02, len(anywhere)) if how == "middle" else anywhere


def on_steps(places: Array, points: npt.ArrayLike = 1.0) -> Array:
    """The nearest steps of a slider, 0 to 1, or whole multiples of so many points."""
    wide = np.asarray(points, np.float64)
    steps: Array = np.round(np.clip(places, 0.0, 1.0) * STEPS / wide) * wide / STEPS
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
    careless: Mapping[Careless, float] = field(default_factory=dict)

    def people(self, number: int, rng: np.random.Generator) -> list[Habits]:
        """So many annotators; as many of them careless as the shares say, rounded, in a random order."""
        counts = {how: round(share * number) for how, share in self.careless.items()}
        kinds: list[Careless | None] = [how for how, count in counts.items() for _ in range(count)]
        kinds = [*kinds, *[None] * number][:number]
        shared = {name: getattr(self, name) for name in SHARED}
        return [
            Habits(
                bias=self.bias_sd * rng.standard_normal(),
                scale=float(np.exp(self.log_scale_sd * rng.standard_normal())),
                noise=float(self.noise * np.exp(self.log_noise_sd * rng.standard_normal())),
                careless=kinds[k],
                **shared,
            )
            for k in rng.permutation(number).tolist()
        ]


SHARED = ("end_aversion", "to_5", "to_10", "fatigue", "learning", "context")


def plain(noise: float, careless: float = 0.0) -> Population:
    """People who differ in bias alone, by half their noise; a share of them answer at random."""
    return Population(bias_sd=noise / 2, noise=noise, careless={"random": careless})


# As `python -m benchmarks.populations` fits and shows them.
POPULATIONS = {
    "mlqe-et-en": Population(0.116, 0.147, 0.166, 0.104, to_10=0.048),
    "mlqe-ro-en": Population(0.021, 0.072, 0.158, 0.059, to_5=0.179, to_10=0.156),
}


def population_of(like: str, noise: float, careless: float, how: Careless) -> Population:
    """People like those of one of `POPULATIONS`, or plain ones with this noise where `like` is empty; a share of them
    is careless in this way.

    Raises `Invalid` (`population_unknown`).
    """
    if like and like not in POPULATIONS:
        raise Invalid(f"No annotators are called “{like}”, but {', '.join(POPULATIONS)}.", code="population_unknown")
    return replace(POPULATIONS[like] if like else plain(noise), careless={how: careless})


class Answering(Protocol):
    """Annotators 0, 1, ... who are asked about items by their numbers, and answer with scores in [0, 1]."""

    @property
    def number(self) -> int:
        """How many there are."""

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Their scores of these items, (n,)."""


class MadeUp:
    """People with habits, who see items of true values."""

    def __init__(self, people: Sequence[Habits], truth: npt.ArrayLike) -> None:
        """truth: (N,), 0 to 1."""
        self.people, self.truth = people, np.asarray(truth, np.float64)
        self.done = [0] * len(people)

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.people)

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Their scores of these items, (n,)."""
        done = self.done[annotator]
        self.done[annotator] += 1
        return self.people[annotator].says(self.truth[[*items]], done, rng)


class Replayed:
    """People who repeat what real annotators said: of an item any of its real scores, as often as each was given."""

    def __init__(self, scores: Sequence[npt.ArrayLike], number: int = 30) -> None:
        """scores: of each item those that it got, in [0, 1]."""
        self.scores, self.number = [np.asarray(said, np.float64) for said in scores], number

    @property
    def truth(self) -> Array:
        """The mean of each item's real scores, (N,)."""
        return np.array([said.mean() for said in self.scores])

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Scores of these items, (n,)."""
        return np.array([rng.choice(self.scores[item]) for item in items])
