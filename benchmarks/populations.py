"""Simulated annotators fitted to real ones: `python -m benchmarks.populations`.

The populations of `simulation.annotators` that bear the name of data are what this prints for the MLQE judgments
(examples/data/mlqe): six judgments of each of 1,000 sentences, whose places in the published list stand for people.
Three of the six places are in fact many people (`people_of_mlqe`), whose biases differ by .097 in et-en and by .036 in
ro-en; the fits have .116 and .021.

Beside each fit, how answers look in the data and in as many answers that the fitted population gives about items of the
same mean scores.
"""

from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.ratings import annotator_aware
from app.simulation.annotators import SLIDER_STEPS, Population
from benchmarks.annotator_aware import MLQE, judgments

RUNS = 5


class Looks(NamedTuple):
    """How answers look: standard deviations within items and of annotators' means, the mean correlation of two
    annotators, and the shares of answers at an end, at other tens and at other fives.
    """

    within: float
    between_annotators: float
    correlation: float
    at_ends: float
    tens: float
    fives: float


def mlqe(languages: str) -> Array:
    """Scores, (items, annotators), 0 to 1; everybody judged everything."""
    rows = [row for row in judgments("mlqe") if row["languages"] == languages]
    scores = np.full(
        (1 + max(int(row["item"]) for row in rows), 1 + max(int(row["annotator"]) for row in rows)), np.nan
    )
    for row in rows:
        scores[int(row["item"]), int(row["annotator"])] = float(row["score"]) / SLIDER_STEPS
    return scores


def looks(scores: Array) -> Looks:
    points: Array = np.round(SLIDER_STEPS * scores)
    end, count = (points == 0) | (points == SLIDER_STEPS), scores.shape[1]
    together = np.asarray(np.corrcoef(scores.T))[np.triu_indices(count, 1)]
    return Looks(
        float(np.sqrt(scores.var(axis=1, ddof=1).mean())),
        float(scores.mean(axis=0).std(ddof=1)),
        float(together.mean()),
        float(end.mean()),
        float(((points % 10 == 0) & ~end).mean()),
        float((points % 10 == 5).mean()),
    )


def fitted(scores: Array) -> Population:
    """Bias and scale as the annotator-aware fit has them, noise by what is left around its scores, and rounding by how
    often tens and fives come up between the ends: of who does not round, one in ten answers each.
    """
    items, annotators = (column.ravel() for column in np.indices(scores.shape))
    fit = annotator_aware.fit(items, annotators, scores.ravel(), n_items=len(scores))
    seen = 0.5 + fit.bias + fit.scale * (fit.score[:, None] - 0.5)
    count = scores.shape[1]
    noise = np.sqrt(((scores - seen) ** 2).mean(axis=0) * count / (count - 1))
    points = np.round(SLIDER_STEPS * scores)
    between = points[(points > 0) & (points < SLIDER_STEPS)]
    tens, fives = float((between % 10 == 0).mean()), float((between % 10 == 5).mean())
    to_10 = max(tens - fives, 0.0)
    return Population(
        bias_sd=float(fit.bias.std(ddof=1)),
        log_scale_sd=float(np.log(fit.scale).std(ddof=1)),
        noise=float(np.median(noise)),
        log_noise_sd=float(np.log(noise).std(ddof=1)),
        to_5=max(0.0, (fives - (1 - to_10) / 10) / 0.4),
        to_10=to_10,
    )


def simulate_answers(population: Population, scores: Array, seed: int) -> Array:
    """As many answers of as many annotators, about items whose truth is their mean score; (items, annotators)."""
    rng = np.random.default_rng(seed)
    truth = scores.mean(axis=1)
    people = population.draw_habits(scores.shape[1], rng)
    return np.column_stack([one.draw_scores_for_items(truth, 0, rng) for one in people])


def main() -> None:
    for languages in MLQE:
        scores = mlqe(languages)
        population = fitted(scores)
        print(f"\n{languages}: {population}\n\n| | {' | '.join(Looks._fields)} |\n|---|{'---|' * len(Looks._fields)}")
        again = np.mean([looks(simulate_answers(population, scores, seed)) for seed in range(RUNS)], axis=0)
        for name, row in (("real", looks(scores)), ("simulated", again)):
            print(f"| {name} | {' | '.join(f'{value:.3f}' for value in row)} |")


if __name__ == "__main__":
    main()
