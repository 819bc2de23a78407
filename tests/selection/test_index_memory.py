"""Memory of an index: at most as many bytes for an item as its rule says, and 60 under each rule for items."""

import gc
import tracemalloc

import numpy as np
import pytest

from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings

ITEMS, HITS = 60_000, 40
MAX_BYTES_PER_ITEM = 60
BYTES_OF_A_CAMPAIGN = 2**18
ASKING = SelectionSettings(judgments_per_item=20, items_per_hit=5, gamma=0.1, best_count=600)
ITEM_RULES = [rule for rule in SELECTION_RULES.values() if not rule.for_systems_only]


def simulated_values(kind, rng):
    if kind == "alike":
        return ItemValues(np.full(ITEMS, 0.5), np.full(ITEMS, 1 / 12), np.zeros(ITEMS))
    judgments = rng.integers(0, 12, ITEMS)
    score, variance = rng.normal(0.5, 0.2, ITEMS), rng.uniform(0.9, 1.1, ITEMS) / 12 / (judgments + 1)
    if kind == "few have the same score":
        score = score.round(3)
    return ItemValues(score, variance, judgments)


def answer_hits(index, rng):
    for _ in range(HITS):
        hit = index.draw_hit_or_none(
            5, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=False, rng=rng
        )
        judgments = index.judgments[hit.items] + 1
        index.update(hit.items, rng.random(5).tolist(), (1 / 12 / (judgments + 1)).tolist(), judgments.tolist())


@pytest.mark.parametrize("kind", ["alike", "few have the same score", "all scores differ"])
@pytest.mark.parametrize("rule", ITEM_RULES, ids=lambda rule: rule.name)
def test_an_item_takes_no_more_bytes_than_the_rule_says(rule, kind):
    rng = np.random.default_rng(1)
    values = simulated_values(kind, rng)
    extra = {}
    if rule.reads_labels:
        first = rng.binomial(values.judgments, 0.3)
        extra["states"] = np.column_stack([first, values.judgments - first]) + 0.5
    rule.make_selection_index(ItemValues([0.5] * 9, [0.05] * 9, [0] * 9), ASKING)  # imports what it needs
    gc.collect()
    tracemalloc.start()
    try:
        index = rule.make_selection_index(values, ASKING, **extra)
        answer_hits(index, rng)
        gc.collect()
        allocated = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert rule.index_bytes_per_item <= MAX_BYTES_PER_ITEM
    assert allocated <= BYTES_OF_A_CAMPAIGN + rule.index_bytes_per_item * ITEMS
