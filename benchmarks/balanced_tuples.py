"""How often pairs of items come back in HITs of four, by selection rule: `python -m benchmarks.balanced_tuples`.

Random annotators answer HITs one after another and see no item twice.
"""

from collections import Counter
from itertools import combinations

import numpy as np

from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings

RUNS, SIZE, JUDGMENTS_PER_ITEM = 10, 4, 8
STUDIES = ((60, 20), (150, 40), (100, 10))  # items, annotators
RULE_NAMES = ("balanced", "scores", "easl")


def count_repeated_pairs(rule_name: str, items: int, annotators: int, seed: int) -> tuple[float, float]:
    """Return the share of pairs that were asked before, and the largest difference of two items' judgments."""
    rng, seen = np.random.default_rng(seed), [set[int]() for _ in range(annotators)]
    index = SELECTION_RULES[rule_name].make_selection_index(
        ItemValues(np.full(items, 0.5), np.full(items, 0.05), np.zeros(items)),
        SelectionSettings(judgments_per_item=JUDGMENTS_PER_ITEM, items_per_hit=SIZE, gamma=0.1),
    )
    pairs: Counter[frozenset[int]] = Counter()
    for _ in range(items * JUDGMENTS_PER_ITEM // SIZE):
        own = seen[int(rng.integers(annotators))]
        draw = index.draw_hit_or_none(
            SIZE, seen=own, full=set(), leaders_to_avoid=set(), seen_as_last_resort=False, rng=rng
        )
        if draw is None:
            continue
        own.update(draw.items)
        pairs.update(frozenset(pair) for pair in combinations(draw.items, 2))
        # Less is known about an item with fewer judgments.
        judgments = index.judgments[draw.items] + 1
        index.update(draw.items, [0.5] * len(draw.items), (0.05 / (1 + judgments)).tolist(), judgments.tolist())
    return 1.0 - len(pairs) / pairs.total(), float(np.ptp(index.judgments))


def main() -> None:
    print("| items | annotators | rule | pairs that came back | largest difference of judgments |")
    print("|---|---|---|---|---|")
    for items, annotators in STUDIES:
        for rule_name in RULE_NAMES:
            share, spread = np.mean(
                [count_repeated_pairs(rule_name, items, annotators, seed) for seed in range(RUNS)], axis=0
            )
            print(f"| {items} | {annotators} | `{rule_name}` | {share:.1%} | {spread:.1f} |")


if __name__ == "__main__":
    main()
