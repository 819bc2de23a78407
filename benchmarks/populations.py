"""Fit simulated annotators to real ones: `python -m benchmarks.populations`.

The output contains the populations of `simulation.annotators` that are named after data. They are fitted to MLQE
(examples/data/mlqe): six judgments of each of 1,000 sentences, by the people recovered in `people_of_mlqe`. Differences
between people come from those with 30 or more judgments. The ends of the scale hide part of the biases and of the
noise, so both are increased until simulated answers spread as far as real ones.

Below each fit, a table compares figures of the real answers with answers of simulated people. Each of these judges the
same sentences as one of the real people.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ratings import annotator_aware
from app.simulation.annotators import SLIDER_STEPS, Population
from benchmarks.annotator_aware import MLQE, load_judgment_rows
from benchmarks.people_of_mlqe import MIN_JUDGMENTS, spread_of_people

SIMULATIONS = 20
FIT_ROUNDS = 8


class JudgmentsOfPeople(NamedTuple):
    """Scores between 0 and 1 of items by people, (judgments,) each; numbers start at 0."""

    items: Integers
    people: Integers
    scores: Array

    @property
    def mean_scores(self) -> Array:
        """Return the mean score of each item, (items,)."""
        means: Array = np.bincount(self.items, self.scores) / np.bincount(self.items)
        return means

    @property
    def has_many_judgments(self) -> Mask:
        """Return which people have enough judgments to show how they differ, (people,)."""
        mask: Mask = np.bincount(self.people) >= MIN_JUDGMENTS
        return mask


class AnswerFigures(NamedTuple):
    """Figures that describe answers.

    Attributes:
        within: Standard deviation within items.
        between_annotators: Standard deviation of annotators' mean differences from item means, for annotators with many
            answers.
        correlation: Correlation of an answer with the mean of the item's other answers.
        at_ends: Share of answers at an end of the scale.
        tens: Share of answers at other multiples of ten.
        fives: Share of answers at other multiples of five.

    """

    within: float
    between_annotators: float
    correlation: float
    at_ends: float
    tens: float
    fives: float


def load_mlqe_judgments(languages: str) -> JudgmentsOfPeople:
    """Return the judgments of a language pair by known people; three judgments have no known person."""
    rows = [row for row in load_judgment_rows("mlqe") if row["languages"] == languages and row["person"]]
    items, people = (np.array([int(row[name]) for row in rows]) for name in ("item", "person"))
    return JudgmentsOfPeople(items, people, np.array([float(row["score"]) / SLIDER_STEPS for row in rows]))


def figures_of_answers(judgments_of_people: JudgmentsOfPeople) -> AnswerFigures:
    """Return the figures that describe these judgments."""
    points: Array = np.round(SLIDER_STEPS * judgments_of_people.scores)
    is_end, count = (points == 0) | (points == SLIDER_STEPS), np.bincount(judgments_of_people.items)
    deviations = judgments_of_people.scores - judgments_of_people.mean_scores[judgments_of_people.items]
    means_of_others = judgments_of_people.scores - deviations * (count / (count - 1))[judgments_of_people.items]
    return AnswerFigures(
        float(np.sqrt((np.bincount(judgments_of_people.items, deviations**2) / (count - 1)).mean())),
        spread_of_people(deviations, judgments_of_people.people),
        float(np.corrcoef(judgments_of_people.scores, means_of_others)[0, 1]),
        float(is_end.mean()),
        float(((points % 10 == 0) & ~is_end).mean()),
        float((points % 10 == 5).mean()),
    )


def fit_population(judgments_of_people: JudgmentsOfPeople) -> Population:
    """Return the population whose answers spread as far as these judgments."""
    population, real_figures = estimate_population(judgments_of_people), figures_of_answers(judgments_of_people)
    for _ in range(FIT_ROUNDS):
        simulated_figures = mean_figures_of_simulations(population, judgments_of_people)
        population = replace(
            population,
            noise=float(population.noise * real_figures.within / simulated_figures.within),
            bias_sd=float(population.bias_sd * real_figures.between_annotators / simulated_figures.between_annotators),
        )
    return population


def estimate_population(judgments_of_people: JudgmentsOfPeople) -> Population:
    """Return the population with the habits that these people show between the ends of the scale.

    Bias and scale come from the annotator-aware fit, and noise from the residuals. Rounding follows from the shares of
    tens and fives between the ends; without rounding, each would be one in ten answers.
    """
    fit = annotator_aware.fit(*judgments_of_people)
    bias, scale, count = (
        fit.bias[judgments_of_people.people],
        fit.scale[judgments_of_people.people],
        np.bincount(judgments_of_people.items),
    )
    residuals = judgments_of_people.scores - 0.5 - bias - scale * (fit.score[judgments_of_people.items] - 0.5)
    squares = np.bincount(judgments_of_people.people, residuals**2 * (count / (count - 1))[judgments_of_people.items])
    noise = np.sqrt(squares / np.bincount(judgments_of_people.people))
    has_many_judgments = judgments_of_people.has_many_judgments
    points = np.round(SLIDER_STEPS * judgments_of_people.scores)
    inner_points = points[(points > 0) & (points < SLIDER_STEPS)]
    tens, fives = float((inner_points % 10 == 0).mean()), float((inner_points % 10 == 5).mean())
    to_10 = max(tens - fives, 0.0)
    return Population(
        bias_sd=float(fit.bias[has_many_judgments].std(ddof=1)),
        log_scale_sd=float(np.log(fit.scale[has_many_judgments]).std(ddof=1)),
        noise=float(np.median(noise[has_many_judgments])),
        log_noise_sd=float(np.log(noise[has_many_judgments]).std(ddof=1)),
        to_5=max(0.0, (fives - (1 - to_10) / 10) / 0.4),
        to_10=to_10,
    )


def simulate_answers(population: Population, judgments_of_people: JudgmentsOfPeople, seed: int) -> JudgmentsOfPeople:
    """Return judgments of the same items by people of a population; the truth is each item's mean score."""
    rng = np.random.default_rng(seed)
    true_scores, scores = judgments_of_people.mean_scores, np.empty_like(judgments_of_people.scores)
    for person, habits in enumerate(population.draw_habits(len(judgments_of_people.has_many_judgments), rng)):
        is_own = judgments_of_people.people == person
        scores[is_own] = habits.draw_scores_for_items(true_scores[judgments_of_people.items[is_own]], 0, rng)
    return judgments_of_people._replace(scores=scores)


def mean_figures_of_simulations(population: Population, judgments_of_people: JudgmentsOfPeople) -> AnswerFigures:
    """Return the mean figures over simulations of a population."""
    return AnswerFigures(
        *np.mean(
            [
                figures_of_answers(simulate_answers(population, judgments_of_people, seed))
                for seed in range(SIMULATIONS)
            ],
            axis=0,
        )
    )


def main() -> None:
    for languages in MLQE:
        judgments_of_people = load_mlqe_judgments(languages)
        population = fit_population(judgments_of_people)
        headings = AnswerFigures._fields
        print(f"\n{languages}: {population}\n\n| | {' | '.join(headings)} |\n|---|{'---|' * len(headings)}")
        for name, figures in (
            ("real", figures_of_answers(judgments_of_people)),
            ("simulated", mean_figures_of_simulations(population, judgments_of_people)),
        ):
            print(f"| {name} | {' | '.join(f'{value:.3f}' for value in figures)} |")


if __name__ == "__main__":
    main()
