"""Measure how often pairs of items repeat in HITs of four, by selection rule: `python -m benchmarks.balanced_tuples`.

Simulated annotators arrive in random order and never see an item twice. The table shows the share of pairs that
appeared in an earlier HIT, and the largest difference between the numbers of judgments of two items.
"""

from collections import Counter
from itertools import combinations

import numpy as np

from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings

RUNS, ITEMS_PER_HIT, JUDGMENTS_PER_ITEM = 10, 4, 8
STUDIES = ((60, 20), (150, 40), (100, 10))  # items, annotators
RULE_NAMES = ("balanced", "scores", "easl")


def measure_repeated_pairs(rule_name: str, items: int, annotators: int, seed: int) -> tuple[float, float]:
    """Simulate a campaign and measure how balanced its HITs are.

    Args:
        rule_name: Selection rule.
        items: Number of items.
        annotators: Number of annotators.
        seed: Seed of the simulation.

    Returns:
        Share of pairs that appeared in an earlier HIT, and the largest difference between two items' judgments.

    """
    rng, seen_items = np.random.default_rng(seed), [set[int]() for _ in range(annotators)]
    index = SELECTION_RULES[rule_name].make_selection_index(
        ItemValues(np.full(items, 0.5), np.full(items, 0.05), np.zeros(items)),
        SelectionSettings(judgments_per_item=JUDGMENTS_PER_ITEM, items_per_hit=ITEMS_PER_HIT, gamma=0.1),
    )
    pairs: Counter[frozenset[int]] = Counter()
    for _ in range(items * JUDGMENTS_PER_ITEM // ITEMS_PER_HIT):
        own_items = seen_items[int(rng.integers(annotators))]
        draw = index.draw_hit_or_none(
            ITEMS_PER_HIT, seen=own_items, full=set(), leaders_to_avoid=set(), seen_as_last_resort=False, rng=rng
        )
        if draw is None:
            continue
        own_items.update(draw.items)
        pairs.update(frozenset(pair) for pair in combinations(draw.items, 2))
        # An item with fewer judgments has a larger variance.
        judgments = index.judgments[draw.items] + 1
        index.update(draw.items, [0.5] * len(draw.items), (0.05 / (1 + judgments)).tolist(), judgments.tolist())
    return 1.0 - len(pairs) / pairs.total(), float(np.ptp(index.judgments))


def main() -> None:
    print("| items | annotators | rule | pairs that came back | largest difference of judgments |")
    print("|---|---|---|---|---|")
    for items, annotators in STUDIES:
        for rule_name in RULE_NAMES:
            share, spread = np.mean(
                [measure_repeated_pairs(rule_name, items, annotators, seed) for seed in range(RUNS)], axis=0
            )
            print(f"| {items} | {annotators} | `{rule_name}` | {share:.1%} | {spread:.1f} |")


if __name__ == "__main__":
    main()
