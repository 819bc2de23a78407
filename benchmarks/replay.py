"""Measure how long it takes to replay a campaign and to apply one answer: `python -m benchmarks.replay [HITS]`.

HITs of 5 out of 10,000 items have random scores on a slider with 101 steps. *bits as live* checks on the first HITs
that a replay gives exactly the numbers that the server stored answer by answer. The last column times the `trueskill`
package on the same pairs, scaled up from fewer HITs.
"""

import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from app.inference.observations.judgment_kinds import can_law_read_answers
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import AnsweredHit, Law, LawBeliefs, LawParameters
from app.inference.online.laws import ONLINE_LAWS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # an escape in its source
    import trueskill

ITEMS, ITEMS_PER_HIT, ANNOTATORS, CHECKED_HITS, PACKAGE_HITS = 10_000, 5, 30, 20_000, 500
PARAMETERS = LawParameters()


def simulate_hits(count: int, rng: np.random.Generator) -> list[AnsweredHit]:
    """Return answered HITs in which all items are equally frequent."""
    rounds = -(-count * ITEMS_PER_HIT // ITEMS)
    items = np.concatenate([rng.permutation(ITEMS) for _ in range(rounds)]).reshape(-1, ITEMS_PER_HIT)[:count]
    scores = rng.integers(101, size=items.shape) / 100
    return [*map(AnsweredHit, (np.arange(count) % ANNOTATORS).tolist(), items.tolist(), scores.tolist())]


def initial_beliefs(law: Law) -> LawBeliefs:
    """Return a law's beliefs before any answer."""
    return law.initial_beliefs([np.full(ITEMS, number) for number in law.family.default_prior], PARAMETERS)


def seconds_of(action: Callable[..., Any], *arguments: Any) -> float:
    """Run an action and return how many seconds it takes."""
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def apply_hits_one_by_one(beliefs: LawBeliefs, hits: list[AnsweredHit]) -> None:
    """Apply each HIT on its own, as the server does."""
    for hit in hits:
        beliefs.apply_hits([hit])


def seconds_to_update_items(law: ItemLaw, hits: list[AnsweredHit]) -> float:
    """Return the seconds for updating state, score and variance of the items of each HIT, one HIT after another."""
    columns = [column.tolist() for column in initial_beliefs(law).state]
    start = time.perf_counter()
    for _, items, scores in hits:
        new_state = law.update(*([column[i] for i in items] for column in columns), scores, PARAMETERS)
        law.family.scores_and_variances(*new_state)
    return time.perf_counter() - start


def seconds_per_hit_of_trueskill_package(hits: list[AnsweredHit]) -> float:
    """Return the seconds per HIT of the `trueskill` package, which updates one pair after another."""
    env = trueskill.TrueSkill(mu=0.5, sigma=(1 / 12) ** 0.5, beta=PARAMETERS.gamma, tau=0.0, draw_probability=0.1)
    ratings = [env.create_rating() for _ in range(ITEMS)]

    def rate(items: Any, scores: Any) -> None:
        for i, j in combinations(range(len(items)), 2):
            better, worse = (items[i], items[j]) if scores[i] >= scores[j] else (items[j], items[i])
            is_tie = scores[i] == scores[j]
            ratings[better], ratings[worse] = trueskill.rate_1vs1(ratings[better], ratings[worse], is_tie, env=env)

    def rate_all() -> None:
        for _, items, scores in hits:
            rate(items, scores)

    return seconds_of(rate_all) / len(hits)


def main(count: int = 1_000_000) -> None:
    hits = simulate_hits(count, np.random.default_rng(2018))
    print(f"Replay of {count:,} HITs of {ITEMS_PER_HIT} items, {ITEMS:,} items")
    print()
    print("| law | replay, s | bits as live | one answer live, µs | beside it |")
    print("|---|---|---|---|---|")
    checked_hits = hits[:CHECKED_HITS]
    for law in (law for law in ONLINE_LAWS.values() if can_law_read_answers(law.reads, "points", 0)):
        replayed_hits = hits if law.quick else checked_hits
        replayed, replayed_start, applied_one_by_one = initial_beliefs(law), initial_beliefs(law), initial_beliefs(law)
        replay_seconds = seconds_of(replayed.apply_hits, replayed_hits)
        if len(replayed_hits) > len(checked_hits):
            replayed_start.apply_hits(checked_hits)
        else:
            replayed_start = replayed
        live_seconds = seconds_of(apply_hits_one_by_one, applied_one_by_one, checked_hits)
        if isinstance(law, ItemLaw):
            live_seconds = seconds_to_update_items(law, checked_hits)
        bits = "the same" if replayed_start.state.tobytes() == applied_one_by_one.state.tobytes() else "DIFFERENT"
        name, comparison = law.name if law.quick else f"{law.name}, {len(replayed_hits):,} HITs", ""
        if law.name == "trueskill":
            package_seconds = seconds_per_hit_of_trueskill_package(hits[:PACKAGE_HITS]) * count
            ratio = package_seconds / replay_seconds
            comparison = f"`trueskill` {trueskill.__version__}: {package_seconds:,.0f} s, {ratio:.0f} times as long"
        print(
            f"| {name} | {replay_seconds:.1f} | {bits} | {live_seconds / len(checked_hits) * 1e6:.1f} | {comparison} |",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
