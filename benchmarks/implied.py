"""Accuracy and speed of implied pairs: `python -m benchmarks.implied`.

Of the judgments of UKPConvArg1, in the order of time: a pair that was implied when it was judged tells whether that was
right. Beside what Easel takes as implied stand two other readings: by everybody's answers, and with ties in the chains.
Then a simulated annotator of 100 items who is asked all pairs in random order but those that are implied, of which one
in ten is asked anyway; beside it the same if answers that contradict what is implied are let in. At last the time of
the processor that answers and draws take.
"""

import time
from collections import defaultdict
from itertools import combinations

import numpy as np

from app.experiments.amidei_2020 import (
    ASKED_ANYWAY_SHARE,
    TRANSITIVITY_ITEMS,
    load_argument_judgment_columns,
    simulate_asked_and_wrong_shares,
)
from app.inference.preferences.implied_pairs import Implications, ImpliedCounts, implications_and_implied_outcomes
from app.selection.implied_pairs import ImpliedPairFilter
from app.selection.index import SelectionIndex
from app.selection.rule import ItemValues, SelectionSettings


class Closure:
    """The other readings: at least as good as, where ties carry over and circles may close."""

    def __init__(self) -> None:
        self.below: defaultdict[int, set[int]] = defaultdict(set)
        self.above: defaultdict[int, set[int]] = defaultdict(set)

    def put(self, first: int, second: int, outcome: int) -> None:
        for one, other, holds in ((first, second, outcome >= 0), (second, first, outcome <= 0)):
            if holds and other not in self.below[one]:
                for higher in [one, *self.above[one]]:
                    self.below[higher] |= self.below[other] | {other}
                for lower in [other, *self.below[other]]:
                    self.above[lower] |= self.above[one] | {one}

    def implied(self, first: int, second: int) -> int | None:
        """A tie where each is as good as the other."""
        up, down = second in self.below[first], first in self.below[second]
        return up - down if up or down else None


def with_ties() -> None:
    """The row of answers whose ties carry over; contradictions are kept out."""
    orders: defaultdict[int, Closure] = defaultdict(Closure)
    met: set[tuple[int, int, int]] = set()
    counts = ImpliedCounts()
    for first, second, outcome, annotator in zip(
        *(column.tolist() for column in load_argument_judgment_columns()), strict=True
    ):
        pair = annotator, min(first, second), max(first, second)
        if pair not in met:
            met.add(pair)
            implied = orders[annotator].implied(first, second)
            if implied is None:
                orders[annotator].put(first, second, outcome)
            else:
                counts += ImpliedCounts(1, 0, 1, outcome != implied, outcome == -implied != 0)
    shown("the annotator's answers, ties too", counts)


def told(name: str, orders: dict[int, Implications]) -> None:
    shown(name, sum((order.tally for order in orders.values()), ImpliedCounts()))


def shown(name: str, tally: ImpliedCounts) -> None:
    share, low, high = tally.contradicted_share_and_interval_or_none() or (np.nan,) * 3
    reversed_ = tally.answered_reversed / tally.asked_anyway
    print(f"| {name} | {tally.asked_anyway:,} | {share:.3f} ({low:.3f} to {high:.3f}) | {reversed_:.3f} |")


def readings() -> None:
    first, second, outcomes, annotators = (column.tolist() for column in load_argument_judgment_columns())
    print(f"ukp_convarg1, {len(first):,} judgments\n")
    print("| implied by | pairs judged although implied | answered otherwise | the other way round |")
    print("|---|---:|---:|---:|")
    told("preferences of the annotator", implications_and_implied_outcomes(first, second, outcomes, annotators)[0])
    told(
        "preferences of all annotators", implications_and_implied_outcomes(first, second, outcomes, [0] * len(first))[0]
    )
    with_ties()


def let_in(noise: float, rng: np.random.Generator) -> tuple[float, float]:
    """As `transitive.saving`, but that answers which contradict what is implied are let in."""
    value, order, wrong = rng.random(TRANSITIVITY_ITEMS), Closure(), []
    pairs = rng.permutation([*combinations(range(TRANSITIVITY_ITEMS), 2)]).tolist()
    for a, b in pairs:
        implied = order.implied(a, b) or None  # in a circle nothing is
        if implied is not None and rng.random() >= ASKED_ANYWAY_SHARE:
            wrong.append(implied != (1 if value[a] > value[b] else -1))
        else:
            order.put(a, b, 1 if value[a] - value[b] + noise * rng.standard_normal() > 0 else -1)
    return 1 - len(wrong) / len(pairs), float(np.mean(wrong))


def savings(runs: int = 3) -> None:
    print("\nA simulated annotator and all pairs of 100 items, of implied ones one in ten\n")
    print("| noise | pairs asked | implied, wrong by the truth | the same, contradictions let in | |")
    print("|---:|---:|---:|---:|---:|")
    for noise in (0.0, 0.05, 0.15, 0.3):
        found = [
            (
                *simulate_asked_and_wrong_shares(noise, np.random.default_rng(seed)),
                *let_in(noise, np.random.default_rng(seed)),
            )
            for seed in range(runs)
        ]
        print(f"| {noise} | {' | '.join(f'{share:.3f}' for share in np.mean(found, axis=0))} |")


def speed(items: int, answers: int = 100_000) -> None:
    rng = np.random.default_rng(items)
    value = rng.random(items)
    mine = ImpliedPairFilter(Implications(), 1, 1, 10)
    asking = SelectionSettings(judgments_per_item=10**6, items_per_hit=2, gamma=0.1, min_items=2)
    index = SelectionIndex(ItemValues(value, rng.random(items) / 12 + 0.001, np.zeros(items)), asking)
    pairs = rng.integers(items, size=(answers, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].tolist()
    start = time.process_time()
    for a, b in pairs:
        mine.implications.add_outcome_and_return_implied_or_none(a, b, 1 if value[a] > value[b] else -1)
    each = (time.process_time() - start) / len(pairs) * 1e6
    took = []
    for _ in range(200):
        start = time.process_time()
        index.draw_hit_or_none(
            2, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, pair_filter=mine, rng=rng
        )
        took.append((time.process_time() - start) * 1e6)
    print(f"| {items:,} | {each:.0f} | {np.median(took):.0f} | {mine.implications.nbytes / 1e6:.1f} |")


def main() -> None:
    readings()
    savings()
    print("\n100,000 random comparisons by one annotator\n")
    print("| items | an answer, µs | then a draw, median µs | MB |")
    print("|---:|---:|---:|---:|")
    for items in (150, 1000, 5000):
        speed(items)


if __name__ == "__main__":
    main()
