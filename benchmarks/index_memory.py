"""Measure the memory of each selection rule's index, in bytes per item: `python -m benchmarks.index_memory`.

`--items` sets the size of the campaign, 1,000,000 by default. Each index is made in a process of its own, of three
kinds of posteriors: of a new campaign, where all items are alike; after 0 to 12 judgments of an item on a slider, where
many items have the same score; and with a score and a variance of its own for each item. Then HITs of 5 are drawn and
answered. The table shows the growth of Python's allocations when the index is made and after these HITs, the growth of
the process, the seconds that making the index takes without tracing, and the peak of the process meanwhile.
"""

import argparse
import gc
import multiprocessing
import os
import time
import tracemalloc
from typing import Any

import numpy as np

from app.selection.registry import SELECTION_RULES
from app.selection.rule import Index, ItemValues, Rule, SelectionSettings
from benchmarks.processes import peak_mb_of_this_process, resident_bytes
from benchmarks.selection import beta_score, beta_variance, simulate_beta_posteriors

POSTERIOR_KINDS = ("alike", "slider", "distinct")
ITEMS_PER_HIT, JUDGMENTS_PER_ITEM, GAMMA = 5, 20, 0.1
LABEL_CLASSES = 2


def simulate_item_values(kind: str, items: int, rng: np.random.Generator) -> ItemValues:
    """Return values of items of a kind of `POSTERIOR_KINDS`."""
    if kind == "alike":
        return ItemValues(np.full(items, 0.5), np.full(items, 1 / 12), np.zeros(items))
    alpha, beta, judgments = simulate_beta_posteriors(items, rng)
    score, variance = beta_score(alpha, beta), beta_variance(alpha, beta)
    if kind == "distinct":
        score, variance = score + rng.normal(0, 0.01, items), variance * rng.uniform(0.9, 1.1, items)
    return ItemValues(score, variance, judgments)


def make_index(rule: Rule, values: ItemValues, rng: np.random.Generator) -> Index:
    settings = SelectionSettings(
        judgments_per_item=JUDGMENTS_PER_ITEM,
        items_per_hit=ITEMS_PER_HIT,
        gamma=GAMMA,
        best_count=max(15, len(values.score) // 100),
    )
    extra: dict[str, Any] = {}
    if rule.reads_labels:
        first = rng.binomial(values.judgments, 0.3)
        extra["states"] = np.column_stack([first, values.judgments - first]) + 1 / LABEL_CLASSES
    return rule.make_selection_index(values, settings, **extra)


def draw_and_answer_hits(index: Index, hits: int, rng: np.random.Generator) -> None:
    """Draw HITs for annotators who have seen nothing, and update the index by random answers."""
    for _ in range(hits):
        hit = index.draw_hit_or_none(
            ITEMS_PER_HIT, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng
        )
        assert hit is not None
        shown = np.array(hit.items)
        judgments = index.judgments[shown] + 1
        score = index.score[shown] + (rng.random(ITEMS_PER_HIT) - index.score[shown]) / (judgments + 1)
        index.update(hit.items, score.tolist(), (index.variance[shown] * 0.9).tolist(), judgments.tolist())


def measure_index(
    rule_name: str, kind: str, items: int, hits: int, *, trace: bool
) -> tuple[float, float, float, float]:
    """Make an index and let it draw HITs.

    Returns:
        With `trace` the bytes per item that Python has allocated for the index, when it was made and after the HITs;
        else bytes per item by which the process has grown after the HITs and at its peak; both with the seconds that
        making the index took, and the seconds of a HIT.

    """
    rng = np.random.default_rng(items)
    values = simulate_item_values(kind, items, rng)
    gc.collect()
    if trace:
        tracemalloc.start()
    resident, peak = resident_bytes(os.getpid()), peak_mb_of_this_process()
    start = time.perf_counter()
    index = make_index(SELECTION_RULES[rule_name], values, rng)
    build_seconds = time.perf_counter() - start
    made = tracemalloc.get_traced_memory()[0] / items if trace else (peak_mb_of_this_process() - peak) * 2**20 / items
    start = time.perf_counter()
    draw_and_answer_hits(index, hits, rng)
    hit_seconds = (time.perf_counter() - start) / hits
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] if trace else resident_bytes(os.getpid()) - resident
    return made, grown / items, build_seconds, hit_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--hits", type=int, default=5_000)
    parser.add_argument("--rules", nargs="*", choices=SELECTION_RULES, default=[*SELECTION_RULES])
    options = parser.parse_args()
    print("| rule | posteriors | new index | after HITs | growth of the process | at its peak | seconds | ms a HIT |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.rules:
        if SELECTION_RULES[name].for_systems_only:
            continue
        for kind in POSTERIOR_KINDS:
            results = []
            for trace in (True, False):
                with multiprocessing.get_context("spawn").Pool(1) as measuring_process:
                    results.append(
                        measuring_process.apply(
                            measure_index, (name, kind, options.items, options.hits), {"trace": trace}
                        )
                    )
            (made, grown, _, _), (peak, resident, build_seconds, hit_seconds) = results
            print(
                f"| {name} | {kind} | {made:.0f} | {grown:.0f} | {resident:.0f} | {peak:.0f} | {build_seconds:.2f}"
                f" | {1000 * hit_seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
