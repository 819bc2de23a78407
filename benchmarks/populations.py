"""Simulated annotators fitted to real ones: `python -m benchmarks.populations`.

The populations of `simulation.annotators` that bear the name of data are what this prints for the MLQE judgments
(examples/data/mlqe): six judgments of each of 1,000 sentences, by the people that `people_of_mlqe` has recovered. How
people differ is taken from those with 30 or more judgments. The ends of the scale hide a part of biases and noise, so
both are raised until simulated answers spread as far as the real ones.

Beside each fit, how answers look in the data and in answers that people of the fitted population give to the same
sentences, each to as many as somebody in the data did.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ratings import annotator_aware
from app.simulation.annotators import SLIDER_STEPS, Population
from benchmarks.annotator_aware import MLQE, judgments
from benchmarks.people_of_mlqe import MIN_JUDGMENTS, spread_of_people

RUNS = 20
ROUNDS = 8


class JudgmentsOfPeople(NamedTuple):
    """Scores, 0 to 1, of items by people; (n,) each, numbers from 0."""

    items: Integers
    people: Integers
    scores: Array

    @property
    def mean_scores(self) -> Array:
        """Mean score of each item, (items,)."""
        means: Array = np.bincount(self.items, self.scores) / np.bincount(self.items)
        return means

    @property
    def has_many(self) -> Mask:
        """Mask of the people with enough judgments to see how they differ, (people,)."""
        mask: Mask = np.bincount(self.people) >= MIN_JUDGMENTS
        return mask


class Looks(NamedTuple):
    """How answers look: standard deviations within items, and of the mean differences of annotators with many answers
    from the means of their items; the correlation of an answer with the mean of the other answers to the item; and the
    shares of answers at an end, at other tens and at other fives.
    """

    within: float
    between_annotators: float
    correlation: float
    at_ends: float
    tens: float
    fives: float


def mlqe(languages: str) -> JudgmentsOfPeople:
    """Judgments of the people who are known; three judgments have nobody."""
    rows = [row for row in judgments("mlqe") if row["languages"] == languages and row["person"]]
    items, people = (np.array([int(row[name]) for row in rows]) for name in ("item", "person"))
    return JudgmentsOfPeople(items, people, np.array([float(row["score"]) / SLIDER_STEPS for row in rows]))


def looks(judged: JudgmentsOfPeople) -> Looks:
    points: Array = np.round(SLIDER_STEPS * judged.scores)
    end, count = (points == 0) | (points == SLIDER_STEPS), np.bincount(judged.items)
    apart = judged.scores - judged.mean_scores[judged.items]
    others = judged.scores - apart * (count / (count - 1))[judged.items]
    return Looks(
        float(np.sqrt((np.bincount(judged.items, apart**2) / (count - 1)).mean())),
        spread_of_people(apart, judged.people),
        float(np.corrcoef(judged.scores, others)[0, 1]),
        float(end.mean()),
        float(((points % 10 == 0) & ~end).mean()),
        float((points % 10 == 5).mean()),
    )


def fitted(judged: JudgmentsOfPeople) -> Population:
    """Return the population whose answers spread as far as these."""
    population, real = habits_of_people(judged), looks(judged)
    for _ in range(ROUNDS):
        simulated = mean_looks(population, judged)
        population = replace(
            population,
            noise=float(population.noise * real.within / simulated.within),
            bias_sd=float(population.bias_sd * real.between_annotators / simulated.between_annotators),
        )
    return population


def habits_of_people(judged: JudgmentsOfPeople) -> Population:
    """Return the population with the habits that these people show between the ends of the scale.

    Bias and scale are those of the annotator-aware fit, the noise is what is left around its scores, and rounding
    follows from how often tens and fives come up between the ends: without rounding, one in ten answers each.
    """
    fit = annotator_aware.fit(*judged)
    bias, scale, count = fit.bias[judged.people], fit.scale[judged.people], np.bincount(judged.items)
    apart = judged.scores - 0.5 - bias - scale * (fit.score[judged.items] - 0.5)
    squares = np.bincount(judged.people, apart**2 * (count / (count - 1))[judged.items])
    noise = np.sqrt(squares / np.bincount(judged.people))
    many = judged.has_many
    points = np.round(SLIDER_STEPS * judged.scores)
    between = points[(points > 0) & (points < SLIDER_STEPS)]
    tens, fives = float((between % 10 == 0).mean()), float((between % 10 == 5).mean())
    to_10 = max(tens - fives, 0.0)
    return Population(
        bias_sd=float(fit.bias[many].std(ddof=1)),
        log_scale_sd=float(np.log(fit.scale[many]).std(ddof=1)),
        noise=float(np.median(noise[many])),
        log_noise_sd=float(np.log(noise[many]).std(ddof=1)),
        to_5=max(0.0, (fives - (1 - to_10) / 10) / 0.4),
        to_10=to_10,
    )


def simulate_answers(population: Population, judged: JudgmentsOfPeople, seed: int) -> JudgmentsOfPeople:
    """Answers of as many annotators to the same items, whose truth is their mean score."""
    rng = np.random.default_rng(seed)
    truth, scores = judged.mean_scores, np.empty_like(judged.scores)
    for person, habits in enumerate(population.draw_habits(len(judged.has_many), rng)):
        own = judged.people == person
        scores[own] = habits.draw_scores_for_items(truth[judged.items[own]], 0, rng)
    return judged._replace(scores=scores)


def mean_looks(population: Population, judged: JudgmentsOfPeople) -> Looks:
    """How simulated answers look on average."""
    return Looks(*np.mean([looks(simulate_answers(population, judged, seed)) for seed in range(RUNS)], axis=0))


def main() -> None:
    for languages in MLQE:
        judged = mlqe(languages)
        population = fitted(judged)
        print(f"\n{languages}: {population}\n\n| | {' | '.join(Looks._fields)} |\n|---|{'---|' * len(Looks._fields)}")
        for name, row in (("real", looks(judged)), ("simulated", mean_looks(population, judged))):
            print(f"| {name} | {' | '.join(f'{value:.3f}' for value in row)} |")


if __name__ == "__main__":
    main()
