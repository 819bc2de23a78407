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

from app.inference.observations.judgment_kinds import can_law_read_answers
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import AnsweredHit, Law, LawBeliefs, LawParameters
from app.inference.online.laws import ONLINE_LAWS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # an escape in its source
    import trueskill

ITEMS, PER_HIT, ANNOTATORS, CHECKED, BESIDE = 10_000, 5, 30, 20_000, 500
PARAMETERS = LawParameters()


def hits_of(count: int, rng: np.random.Generator) -> list[AnsweredHit]:
    rounds = -(-count * PER_HIT // ITEMS)
    items = np.concatenate([rng.permutation(ITEMS) for _ in range(rounds)]).reshape(-1, PER_HIT)[:count]
    scores = rng.integers(101, size=items.shape) / 100
    return [*map(AnsweredHit, (np.arange(count) % ANNOTATORS).tolist(), items.tolist(), scores.tolist())]


def begun(law: Law) -> LawBeliefs:
    return law.initial_beliefs([np.full(ITEMS, number) for number in law.family.default_prior], PARAMETERS)


def seconds(action: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def one_by_one(beliefs: LawBeliefs, hits: list[AnsweredHit]) -> None:
    """As the server does it: an answer at a time."""
    for hit in hits:
        beliefs.apply_hits([hit])


def live(law: ItemLaw, hits: list[AnsweredHit]) -> float:
    """Seconds for what answers change: the state, score and variance of their items."""
    columns = [column.tolist() for column in begun(law).state]
    start = time.perf_counter()
    for _, items, scores in hits:
        after = law.update(*([column[i] for i in items] for column in columns), scores, PARAMETERS)
        law.family.scores_and_variances(*after)
    return time.perf_counter() - start


def package(hits: list[AnsweredHit]) -> float:
    """Seconds a HIT of the `trueskill` package, pair by pair."""
    env = trueskill.TrueSkill(mu=0.5, sigma=(1 / 12) ** 0.5, beta=PARAMETERS.gamma, tau=0.0, draw_probability=0.1)
    ratings = [env.create_rating() for _ in range(ITEMS)]

    def rate(items: Any, scores: Any) -> None:
        for i, j in combinations(range(len(items)), 2):
            better, worse = (items[i], items[j]) if scores[i] >= scores[j] else (items[j], items[i])
            tied = scores[i] == scores[j]
            ratings[better], ratings[worse] = trueskill.rate_1vs1(ratings[better], ratings[worse], tied, env=env)

    def rate_all() -> None:
        for _, items, scores in hits:
            rate(items, scores)

    return seconds(rate_all) / len(hits)


def main(count: int = 1_000_000) -> None:
    hits = hits_of(count, np.random.default_rng(2018))
    print(f"Replay of {count:,} HITs of {PER_HIT} items, {ITEMS:,} items")
    print()
    print("| law | replay, s | bits as live | one answer live, µs | beside it |")
    print("|---|---|---|---|---|")
    few = hits[:CHECKED]
    for law in (law for law in ONLINE_LAWS.values() if can_law_read_answers(law.reads, "points", 0)):
        taken = hits if law.quick else few
        whole, part, single = begun(law), begun(law), begun(law)
        took = seconds(whole.apply_hits, taken)
        if len(taken) > len(few):
            part.apply_hits(few)
        else:
            part = whole
        each = seconds(one_by_one, single, few)
        if isinstance(law, ItemLaw):
            each = live(law, few)
        bits = "the same" if part.state.tobytes() == single.state.tobytes() else "DIFFERENT"
        name, beside = law.name if law.quick else f"{law.name}, {len(taken):,} HITs", ""
        if law.name == "trueskill":
            theirs = package(hits[:BESIDE]) * count
            beside = f"`trueskill` {trueskill.__version__}: {theirs:,.0f} s, {theirs / took:.0f} times as long"
        print(f"| {name} | {took:.1f} | {bits} | {each / len(few) * 1e6:.1f} | {beside} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
