"""Count careful annotators who are wrongly called random when answers hardly differ.

Run `python -m benchmarks.nearly_alike_answers [RUNS]`; the default is 100 campaigns per row.

Campaigns have 90 items in HITs of 5, and 3, 6 or 12 judgments per item by 12 annotators. Careful annotators answer the
true value or close to it. In half of the rows, 3 of the 12 answer at random. The table counts annotators whose
probability of answering at random is .99 or more, by the law `easl-aware` and by its fit to all judgments.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings import annotator_aware
from benchmarks.annotator_aware import judgment_columns, make_process_pool

ITEMS, ITEMS_PER_HIT, ANNOTATORS, CARELESS = 90, 5, 12, 3
JUDGMENTS_PER_ITEM: Final = (3, 6, 12)
MIN_RANDOM_PROBABILITY = 0.99


class Crowd(NamedTuple):
    """Distribution of true values, and the standard deviation of careful answers around them."""

    draw_true_values: Callable[[np.random.Generator], Array]
    noise: float


CROWDS: Final = {
    "all 0": Crowd(lambda _rng: np.zeros(ITEMS), 0.0),
    "2 % at 100, others at 0": Crowd(lambda rng: (rng.random(ITEMS) < 0.02).astype(np.float64), 0.0),
    "95 % at 100, others at 0": Crowd(lambda rng: (rng.random(ITEMS) < 0.95).astype(np.float64), 0.0),
    "all near 50": Crowd(lambda _rng: np.full(ITEMS, 0.5), 0.02),
    "70 % at 0, others anywhere": Crowd(lambda rng: rng.random(ITEMS) * (rng.random(ITEMS) < 0.3), 0.1),
    "70 % at 100, others anywhere": Crowd(lambda rng: 1.0 - rng.random(ITEMS) * (rng.random(ITEMS) < 0.3), 0.1),
}


def count_annotators_called_random(kind: str, careless: int, seed: int) -> Array:
    """Simulate a campaign and count the annotators who are called random.

    Args:
        kind: Name of the crowd.
        careless: Number of annotators who answer at random.
        seed: Number of the campaign.

    Returns:
        Careful and careless annotators who are called random, by the law and then by the fit, (4,).

    """
    rng = np.random.default_rng([seed, [*CROWDS].index(kind), careless])
    true_values, noise = CROWDS[kind].draw_true_values(rng), CROWDS[kind].noise
    hits = []
    for _ in range(JUDGMENTS_PER_ITEM[seed % len(JUDGMENTS_PER_ITEM)]):
        for items in rng.permutation(ITEMS).reshape(-1, ITEMS_PER_HIT):
            annotator = int(rng.integers(ANNOTATORS))
            answers = (
                rng.random(ITEMS_PER_HIT)
                if annotator < careless
                else true_values[items] + noise * rng.normal(size=ITEMS_PER_HIT)
            )
            hits.append(AnsweredHit(annotator, items.tolist(), np.round(answers.clip(0.0, 1.0), 2).tolist()))
    law = ONLINE_LAWS["easl-aware"]
    beliefs = law.initial_beliefs([np.full(ITEMS, number) for number in law.family.default_prior], LawParameters())
    beliefs.apply_hits(hits)
    state = beliefs.law_state_besides_posteriors()
    descriptions = law.annotator_description_by_number(state.annotators, state.campaign or [])
    probabilities_by_law = np.array(
        [descriptions[annotator].at_random if annotator in descriptions else np.nan for annotator in range(ANNOTATORS)]
    )
    probabilities_by_fit = annotator_aware.fit(*judgment_columns(hits), n_items=ITEMS, n_annotators=ANNOTATORS).random
    return np.array(
        [
            np.count_nonzero(probabilities[annotators_of_kind] >= MIN_RANDOM_PROBABILITY)
            for probabilities in (probabilities_by_law, probabilities_by_fit)
            for annotators_of_kind in (slice(careless, None), slice(careless))
        ]
    )


def main(runs: int) -> None:
    print(f"{ITEMS} items, {ANNOTATORS} annotators, {runs} campaigns a row\n")
    print("| answers | answer at random | careful: law, fit | at random: law, fit |\n|---|---|---|---|")
    with make_process_pool() as pool:
        for kind in CROWDS:
            for careless in (0, CARELESS):
                counts = sum(
                    pool.map(partial(count_annotators_called_random, kind, careless), range(runs)), np.zeros(4, int)
                )
                careful, at_random = (ANNOTATORS - careless) * runs, careless * runs
                print(
                    f"| {kind} | {careless} of {ANNOTATORS} | {counts[0]}, {counts[2]} of {careful:,} "
                    f"| {f'{counts[1]}, {counts[3]} of {at_random:,}' if careless else ''} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
