"""Compare the third edition of easl-aware with the second: `python -m benchmarks.law_editions [RUNS]`, 40 runs by
default.

Both editions read the same judgments of 150 items by 30 annotators, 8 per item on average. HITs contain items either
evenly, or the items that may be the best (highest mean plus two standard errors), so that good items get more
judgments.

The second table has crowds whose answers hardly differ: 180 items, 12 careful annotators, and 3 or 4 judgments per
item. It counts annotators with a probability of answering at random of .99 or more, the threshold of the rule
`at_random`, by the law and by the fit to all judgments.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.ground.metrics import spearman
from app.inference.online.annotator_aware_editions import INITIAL_CAMPAIGN_STATE, SECOND_EDITION_INITIAL_STATE
from app.inference.online.annotator_aware_law import LAW
from app.inference.online.law import AnsweredHit, LawParameters, LawState, StateFloats
from app.inference.ratings import annotator_aware
from benchmarks.annotator_aware import ANNOTATORS, ITEMS, ITEMS_PER_HIT, Crowd, judgment_columns, make_process_pool
from benchmarks.coverage import CrowdAnnotators

EDITIONS: dict[str, StateFloats] = {"second": SECOND_EDITION_INITIAL_STATE, "third": INITIAL_CAMPAIGN_STATE}
CROWD = Crowd(0.15, 0.3, 0.15, 0.4)
JUDGMENTS_PER_ITEM, TOP_ITEMS = 8, 15
FLAT_ITEMS, FLAT_ANNOTATORS = 180, 12
MIN_RANDOM_PROBABILITY = 0.99
FLAT_CROWDS = {  # share of items at the top of the scale, and share of answers at the other end
    "all answers 0": (0.0, 0.0),
    "2 % of items at 100": (0.02, 0.01),
    "95 % of items at 100": (0.95, 0.01),
    "all answers near 50": (None, 0.0),
}


class Outcome(NamedTuple):
    """Results of one edition in one campaign.

    Attributes:
        spearman: Correlation of scores with the truth.
        top_found: Share of the 15 best items among the 15 highest scores.
        right_side: Share of items on the right side of the true median.
        lower_half: Mean score minus truth of the items below the median, in points.
        bias: Mean displayed bias minus the true bias of careful annotators, in points.

    """

    spearman: float
    top_found: float
    right_side: float
    lower_half: float
    bias: float


def simulate_hits(people: CrowdAnnotators, *, adaptively: bool, rng: np.random.Generator) -> list[AnsweredHit]:
    """Return the answered HITs of a campaign in which no annotator sees an item twice."""
    counts, sums, seen = np.zeros(ITEMS), np.zeros(ITEMS), np.zeros((ANNOTATORS, ITEMS), bool)
    hits = []
    for _ in range(JUDGMENTS_PER_ITEM * ITEMS // ITEMS_PER_HIT):
        annotator = int(rng.integers(ANNOTATORS))
        upper_bounds = (sums + 0.5) / (counts + 1.0) + 0.5 / np.sqrt(counts + 1.0)
        priority = np.where(counts < 2, 10.0 - counts, upper_bounds) if adaptively else -counts
        order = np.lexsort((rng.random(ITEMS), -priority))
        items = order[~seen[annotator, order]][:ITEMS_PER_HIT]
        scores = people.draw_scores(items, np.full(len(items), annotator), rng)
        seen[annotator, items] = True
        np.add.at(counts, items, 1.0)
        np.add.at(sums, items, scores)
        hits.append(AnsweredHit(annotator, items.tolist(), scores.tolist()))
    return hits


def outcomes_by_edition(random_share: float, seed: int, *, adaptively: bool) -> dict[str, Outcome]:
    """Simulate a campaign and return the outcome of each edition."""
    rng = np.random.default_rng([seed, adaptively])
    people = CrowdAnnotators(CROWD, random_share, rng)
    hits = simulate_hits(people, adaptively=adaptively, rng=rng)
    return {name: replay_edition(initial_state, hits, people) for name, initial_state in EDITIONS.items()}


def replay_edition(initial_state: StateFloats, hits: list[AnsweredHit], people: CrowdAnnotators) -> Outcome:
    """Return the outcome of an edition that reads these HITs."""
    beliefs = LAW.initial_beliefs([np.ones(ITEMS), np.ones(ITEMS)], LawParameters(), LawState(initial_state))
    beliefs.apply_hits(hits)
    scores, true_scores = beliefs.state[0] / beliefs.state.sum(axis=0), people.true_scores
    is_low, best_items = true_scores < np.median(true_scores), set(np.argsort(-true_scores)[:TOP_ITEMS].tolist())
    descriptions = LAW.annotator_description_by_number(beliefs.annotators, beliefs.campaign_state)
    biases = [descriptions[k].bias - people.bias[k] for k in descriptions if not people.at_random[k]]
    return Outcome(
        spearman(scores, true_scores),
        len(best_items & set(np.argsort(-scores)[:TOP_ITEMS].tolist())) / TOP_ITEMS,
        float(np.mean((scores > np.median(true_scores)) == (true_scores > np.median(true_scores)))),
        100.0 * float(np.mean((scores - true_scores)[is_low])),
        100.0 * float(np.nanmean(biases)),
    )


def random_probabilities_in_flat_campaign(kind: str, seed: int) -> tuple[Array, Array]:
    """Return each annotator's probability of answering at random, by the law and by the fit, (annotators,) each."""
    rng = np.random.default_rng(seed)
    top_share, error = FLAT_CROWDS[kind]
    true_scores = np.full(FLAT_ITEMS, 0.5) if top_share is None else (rng.random(FLAT_ITEMS) < top_share) * 1.0
    hits = []
    for _ in range(3 + seed % 2):
        for items in rng.permutation(FLAT_ITEMS).reshape(-1, ITEMS_PER_HIT):
            noise = 0.02 * rng.normal(size=ITEMS_PER_HIT) if top_share is None else rng.random(ITEMS_PER_HIT) < error
            scores = np.abs(true_scores[items] - noise).round(2)
            hits.append(AnsweredHit(int(rng.integers(FLAT_ANNOTATORS)), items.tolist(), scores.tolist()))
    beliefs = LAW.initial_beliefs([np.ones(FLAT_ITEMS)] * 2, LawParameters())
    beliefs.apply_hits(hits)
    descriptions = LAW.annotator_description_by_number(beliefs.annotators, beliefs.campaign_state)
    probabilities_by_law = np.array([description.at_random for description in descriptions.values()])
    return probabilities_by_law, np.nan_to_num(annotator_aware.fit(*judgment_columns(hits)).random)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with make_process_pool() as pool:
        print_editions(pool, runs)
        print_annotators_called_random(pool, runs)


def print_editions(pool: ProcessPoolExecutor, runs: int) -> None:
    """Print the outcomes of both editions."""
    print(f"\n{ITEMS} items, {ANNOTATORS} annotators with biases of .15; {runs} campaigns\n")
    print("| asked | random | edition | Spearman | top 15 found | right side of median | lower half | bias |")
    print("|---|---|---|---|---|---|---|---|")
    for adaptively in (False, True):
        for random_share in (0.0, 0.3):
            campaigns = list(pool.map(partial(outcomes_by_edition, random_share, adaptively=adaptively), range(runs)))
            for edition in EDITIONS:
                mean = Outcome(*np.mean([campaign[edition] for campaign in campaigns], axis=0).tolist())
                selection = "about the best" if adaptively else "evenly"
                print(
                    f"| {selection} | {random_share:.0%} | {edition} | {mean.spearman:.3f} | {mean.top_found:.3f} | "
                    f"{mean.right_side:.3f} | {mean.lower_half:+.1f} | {mean.bias:+.1f} |",
                    flush=True,
                )


def print_annotators_called_random(pool: ProcessPoolExecutor, runs: int) -> None:
    """Print how many careful annotators are called random if answers hardly differ."""
    print("\nCareful annotators said to answer at random\n\n| answers | annotators | by the law | by the fit |")
    print("|---|---|---|---|")
    for kind in FLAT_CROWDS:
        by_law, by_fit = zip(
            *pool.map(partial(random_probabilities_in_flat_campaign, kind), range(5 * runs)), strict=True
        )
        probabilities = np.concatenate(by_law), np.concatenate(by_fit)
        counts = " | ".join(
            f"{np.count_nonzero(probability >= MIN_RANDOM_PROBABILITY)}" for probability in probabilities
        )
        print(f"| {kind} | {len(probabilities[0]):,} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
