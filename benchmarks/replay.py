"""How long it takes to replay a campaign, and to apply one answer: `python -m benchmarks.replay [HITS]`.

HITs of 5 items, 10,000 items, scores on a slider of 101 steps, all drawn at random. Replay must give the bits that the
server stored, which is checked here on the first HITs; TrueSkill stands beside the `trueskill` package, which applies
the same pairs one by one. The seconds of the slow ones are scaled up from fewer HITs.
"""

import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from app.inference.online.laws import ONLINE, Hit, Law, Parameters, Replay, replay, steps

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # an escape in its source
    import trueskill

ITEMS, PER_HIT, CHECKED, BESIDE = 10_000, 5, 20_000, 500
PARAMETERS = Parameters()


def hits_of(count: int, rng: np.random.Generator) -> list[Hit]:
    rounds = -(-count * PER_HIT // ITEMS)
    items = np.concatenate([rng.permutation(ITEMS) for _ in range(rounds)]).reshape(-1, PER_HIT)[:count]
    scores = rng.integers(101, size=items.shape) / 100
    return list(zip(items.tolist(), scores.tolist(), strict=True))


def priors(law: Law) -> tuple[list[float], list[float]]:
    return [law.default_prior[0]] * ITEMS, [law.default_prior[1]] * ITEMS


def seconds(action: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def one_by_one(law: Law, hits: list[Hit]) -> tuple[list[float], list[float]]:
    """As the server does it: an answer at a time."""
    a, b = priors(law)
    for _ in steps(law, a, b, hits, PARAMETERS):
        pass
    return a, b


def same_bits(law: Law, hits: list[Hit]) -> bool:
    replayed, live = replay(law, *priors(law), hits, PARAMETERS), one_by_one(law, hits)
    return all(np.array(after).tobytes() == column.tobytes() for after, column in zip(live, replayed, strict=True))


def live(law: Law, hits: list[Hit]) -> float:
    """Microseconds for what one answer changes: both parameters, score and variance of its items."""
    assert law.update is not None
    a, b = priors(law)
    start = time.perf_counter()
    for items, scores in hits:
        after = law.update([a[i] for i in items], [b[i] for i in items], scores, PARAMETERS)
        law.estimates(*after)
    return (time.perf_counter() - start) / len(hits) * 1e6


def learning(law: Law, hits: list[Hit]) -> str:
    """The line of a law that learns about annotators, 30 of them here, from fewer HITs."""
    who = [k % 30 for k in range(len(hits))]
    whole, live = Replay(law, *priors(law), PARAMETERS), Replay(law, *priors(law), PARAMETERS)
    took = seconds(whole.take, hits, who)
    began = time.perf_counter()
    for hit, annotator in zip(hits, who, strict=True):
        live.take([hit], [annotator])
    each = (time.perf_counter() - began) / len(hits) * 1e6
    same = whole.a.tobytes() == live.a.tobytes() and whole.b.tobytes() == live.b.tobytes()
    return f"| {law.name}, {len(hits):,} HITs | {took:.1f} | {'the same' if same else 'DIFFERENT'} | {each:.1f} | |"


def package(hits: list[Hit]) -> float:
    """Seconds a HIT of the `trueskill` package, pair by pair."""
    env = trueskill.TrueSkill(mu=0.5, sigma=(1 / 12) ** 0.5, beta=PARAMETERS.gamma, tau=0.0, draw_probability=0.1)
    ratings = [env.create_rating() for _ in range(ITEMS)]

    def rate(items: Any, scores: Any) -> None:
        for i, j in combinations(range(len(items)), 2):
            better, worse = (items[i], items[j]) if scores[i] >= scores[j] else (items[j], items[i])
            tied = scores[i] == scores[j]
            ratings[better], ratings[worse] = trueskill.rate_1vs1(ratings[better], ratings[worse], tied, env=env)

    def rate_all() -> None:
        for items, scores in hits:
            rate(items, scores)

    return seconds(rate_all) / len(hits)


def main(count: int = 1_000_000) -> None:
    hits = hits_of(count, np.random.default_rng(2018))
    print(f"Replay of {count:,} HITs of {PER_HIT} items, {ITEMS:,} items")
    print()
    print("| law | replay, s | bits as live | one answer live, µs | beside it |")
    print("|---|---|---|---|---|")
    for law in ONLINE.values():
        if law.update is None:
            print(learning(law, hits[:CHECKED]), flush=True)
            continue
        took = seconds(replay, law, *priors(law), hits, PARAMETERS)
        bits = "the same" if same_bits(law, hits[:CHECKED]) else "DIFFERENT"
        beside = ""
        if law.name == "trueskill":
            theirs = package(hits[:BESIDE]) * count
            beside = f"`trueskill` {trueskill.__version__}: {theirs:,.0f} s, {theirs / took:.0f} times as long"
        print(f"| {law.name} | {took:.1f} | {bits} | {live(law, hits[:CHECKED]):.1f} | {beside} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
