"""Measure accuracy and speed of implied pairs: `python -m benchmarks.implied`.

The first table replays the judgments of UKPConvArg1 in order. A pair that was already implied when it was judged shows
whether the implication was right. The table compares Easel's rule with two alternatives: implications from all
annotators' answers, and chains that include ties.

The second table simulates one annotator and 100 items. All pairs are asked in random order, except that only one in ten
implied pairs is asked; next to it, the same when contradicting answers are accepted. The last table shows the processor
time of answers and draws.
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


class OrderWithTies:
    """The relation “at least as good as”, in which ties carry over and cycles may close."""

    def __init__(self) -> None:
        self.below: defaultdict[int, set[int]] = defaultdict(set)
        self.above: defaultdict[int, set[int]] = defaultdict(set)

    def add_answer(self, first: int, second: int, outcome: int) -> None:
        """Add an answer and all that follows from it."""
        for better, worse, holds in ((first, second, outcome >= 0), (second, first, outcome <= 0)):
            if holds and worse not in self.below[better]:
                for higher in [better, *self.above[better]]:
                    self.below[higher] |= self.below[worse] | {worse}
                for lower in [worse, *self.below[worse]]:
                    self.above[lower] |= self.above[better] | {better}

    def implied_outcome_or_none(self, first: int, second: int) -> int | None:
        """Return the implied outcome, which is a tie if each item is at least as good as the other; None if there
        is none.
        """
        is_first_at_least, is_second_at_least = second in self.below[first], first in self.below[second]
        return is_first_at_least - is_second_at_least if is_first_at_least or is_second_at_least else None


def print_row_with_ties() -> None:
    """Print the row for chains that include ties; contradicting answers are left out."""
    orders: defaultdict[int, OrderWithTies] = defaultdict(OrderWithTies)
    judged_pairs: set[tuple[int, int, int]] = set()
    counts = ImpliedCounts()
    for first, second, outcome, annotator in zip(
        *(column.tolist() for column in load_argument_judgment_columns()), strict=True
    ):
        pair = annotator, min(first, second), max(first, second)
        if pair not in judged_pairs:
            judged_pairs.add(pair)
            implied = orders[annotator].implied_outcome_or_none(first, second)
            if implied is None:
                orders[annotator].add_answer(first, second, outcome)
            else:
                counts += ImpliedCounts(1, 0, 1, outcome != implied, outcome == -implied != 0)
    print_row_of_counts("the annotator's answers, ties too", counts)


def print_row_of_implications(name: str, orders: dict[int, Implications]) -> None:
    print_row_of_counts(name, sum((order.tally for order in orders.values()), ImpliedCounts()))


def print_row_of_counts(name: str, counts: ImpliedCounts) -> None:
    share, low, high = counts.contradicted_share_and_interval_or_none() or (np.nan,) * 3
    reversed_share = counts.answered_reversed / counts.asked_anyway
    print(f"| {name} | {counts.asked_anyway:,} | {share:.3f} ({low:.3f} to {high:.3f}) | {reversed_share:.3f} |")


def print_real_accuracy() -> None:
    """Print how often real judgments contradict implications, by rule of implication."""
    first, second, outcomes, annotators = (column.tolist() for column in load_argument_judgment_columns())
    print(f"ukp_convarg1, {len(first):,} judgments\n")
    print("| implied by | pairs judged although implied | answered otherwise | the other way round |")
    print("|---|---:|---:|---:|")
    print_row_of_implications(
        "preferences of the annotator", implications_and_implied_outcomes(first, second, outcomes, annotators)[0]
    )
    print_row_of_implications(
        "preferences of all annotators", implications_and_implied_outcomes(first, second, outcomes, [0] * len(first))[0]
    )
    print_row_with_ties()


def simulate_accepting_contradictions(noise: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the shares of pairs asked and of wrong implications, if answers that contradict implications are
    accepted.
    """
    true_values, order, is_wrong = rng.random(TRANSITIVITY_ITEMS), OrderWithTies(), []
    pairs = rng.permutation([*combinations(range(TRANSITIVITY_ITEMS), 2)]).tolist()
    for a, b in pairs:
        implied = order.implied_outcome_or_none(a, b) or None  # in a circle nothing is
        if implied is not None and rng.random() >= ASKED_ANYWAY_SHARE:
            is_wrong.append(implied != (1 if true_values[a] > true_values[b] else -1))
        else:
            order.add_answer(a, b, 1 if true_values[a] - true_values[b] + noise * rng.standard_normal() > 0 else -1)
    return 1 - len(is_wrong) / len(pairs), float(np.mean(is_wrong))


def print_savings(runs: int = 3) -> None:
    """Print how many pairs a simulated annotator is asked, and how many implications are wrong."""
    print("\nA simulated annotator and all pairs of 100 items, of implied ones one in ten\n")
    print("| noise | pairs asked | implied, wrong by the truth | the same, contradictions let in | |")
    print("|---:|---:|---:|---:|---:|")
    for noise in (0.0, 0.05, 0.15, 0.3):
        shares = [
            (
                *simulate_asked_and_wrong_shares(noise, np.random.default_rng(seed)),
                *simulate_accepting_contradictions(noise, np.random.default_rng(seed)),
            )
            for seed in range(runs)
        ]
        print(f"| {noise} | {' | '.join(f'{share:.3f}' for share in np.mean(shares, axis=0))} |")


def print_speed_row(items: int, answers: int = 100_000) -> None:
    """Print processor time and memory of implications for a number of items."""
    rng = np.random.default_rng(items)
    true_values = rng.random(items)
    pair_filter = ImpliedPairFilter(Implications(), 1, 1, 10)
    settings = SelectionSettings(judgments_per_item=10**6, items_per_hit=2, gamma=0.1, min_items=2)
    index = SelectionIndex(ItemValues(true_values, rng.random(items) / 12 + 0.001, np.zeros(items)), settings)
    pairs = rng.integers(items, size=(answers, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].tolist()
    start = time.process_time()
    for a, b in pairs:
        pair_filter.implications.add_outcome_and_return_implied_or_none(
            a, b, 1 if true_values[a] > true_values[b] else -1
        )
    microseconds_per_answer = (time.process_time() - start) / len(pairs) * 1e6
    draw_microseconds = []
    for _ in range(200):
        start = time.process_time()
        index.draw_hit_or_none(
            2,
            seen=set(),
            full=set(),
            leaders_to_avoid=set(),
            seen_as_last_resort=True,
            pair_filter=pair_filter,
            rng=rng,
        )
        draw_microseconds.append((time.process_time() - start) * 1e6)
    print(
        f"| {items:,} | {microseconds_per_answer:.0f} | {np.median(draw_microseconds):.0f} "
        f"| {pair_filter.implications.nbytes / 1e6:.1f} |"
    )


def main() -> None:
    print_real_accuracy()
    print_savings()
    print("\n100,000 random comparisons by one annotator\n")
    print("| items | an answer, µs | then a draw, median µs | MB |")
    print("|---:|---:|---:|---:|")
    for items in (150, 1000, 5000):
        print_speed_row(items)


if __name__ == "__main__":
    main()
