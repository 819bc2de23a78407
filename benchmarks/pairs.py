"""Ranking by the rule `pairs`: `python -m benchmarks.pairs [RUNS]`, default 100.

Campaigns of pairwise comparisons in memory, each answer by one of 30 annotators. The tables show how well the scores
order the items after 5, 8 and 10 comparisons an item: Spearman's correlation with the truth, of the rule `scores`, and
of other rules above or below that, with the band that holds 90 % of what resampled runs say. A Swiss tournament is
beside them, which Easel does not have: the item with the fewest comparisons meets the one with the nearest score among
those with as few. Scores are those of the law `trueskill`, as pages show them, and of Bradley & Terry's model.

The data: simulated comparisons by Thurstone's model, of items that are hard or easy to tell apart (their true scores
have a standard deviation of .6, 1.2 or 2.5 in units of the noise of a comparison), without and with annotators who
answer at random; and the real comparisons of arguments in examples/data/ukp_convarg1, 32 topics of about 32 arguments,
of a pair any answer that it got, with Bradley-Terry scores of all answers as the truth.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr

from app.experiments.amidei_2020 import load_argument_judgment_columns
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import spearman
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.preferences import bradley_terry
from app.selection.even_rule import EvenRule, LeastJudgedCompanions, LeastJudgedLeaders
from app.selection.index import ItemNumbers
from app.selection.item_sets import ItemSet
from app.selection.open_items import OpenItems
from app.selection.pairs_rule import PAIRS_RULE
from app.selection.registry import SELECTION_RULES
from app.selection.rule import Index, ItemValues, Rule, SelectionSettings
from app.simulation.campaign import SimulatedCampaign

ANNOTATORS, COMPARISONS_AT, RESAMPLED = 30, (5, 8, 10), 1000
SPREADS = (0.6, 1.2, 2.5)
Answer = Callable[[int, int, int, np.random.Generator], int]  # annotator, first and second item: +1, 0 or -1


class NearestCompanions(LeastJudgedCompanions):
    """Companions with the nearest score, first of the items with the fewest judgments."""

    def __init__(self, items: ItemNumbers, index: OpenItems, gamma: float) -> None:
        super().__init__(items, index, gamma)
        self.items = {*items.tolist()}

    def add(self, item: int) -> None:
        super().add(item)
        self.items.add(item)

    def remove(self, item: int) -> None:
        super().remove(item)
        self.items.remove(item)

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]:
        others = rng.permutation(sorted(self.items - barred - {leader, *chosen_items}))
        distance = np.abs(self._known.score[others] - self._known.score[leader])
        nearest: list[int] = others[np.lexsort((distance, self._known.judgments[others]))[:count]].tolist()
        return nearest


def make_swiss_pools(
    settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[LeastJudgedLeaders, NearestCompanions]:
    return LeastJudgedLeaders(items, open_items.judgments), NearestCompanions(items, open_items, settings.gamma)


RULES: dict[str, Rule] = {
    "scores": SELECTION_RULES["scores"],
    "pairs": PAIRS_RULE,
    "easl": SELECTION_RULES["easl"],
    "Swiss": EvenRule("swiss", "Swiss tournament", make_pools=make_swiss_pools),
}


@dataclass(frozen=True)
class Comparisons:
    """Where answers come from.

    Attributes:
        name: Its name in the table.
        made: Function of the number of a run and a source of randomness that returns the truth, and who answers.

    """

    name: str
    made: Callable[[int, np.random.Generator], tuple[Array, Answer]]


def simulated(items: int, spread: float, at_random: float, _run: int, rng: np.random.Generator) -> tuple[Array, Answer]:
    """Comparisons by Thurstone's model, by annotators who are careful or answer at random."""
    truth, careless = rng.normal(size=items) * spread, rng.permutation(ANNOTATORS) < at_random * ANNOTATORS

    def answer(annotator: int, first: int, second: int, rng: np.random.Generator) -> int:
        won = 0.5 if careless[annotator] else float(ndtr(truth[first] - truth[second]))
        return 1 if rng.random() < won else -1

    return truth, answer


def arguments_by_topic() -> list[tuple[Array, dict[tuple[int, int], list[int]]]]:
    """Return the truth and the answers of each topic: items that were compared with each other, by pair."""
    first, second, outcomes, _ = load_argument_judgment_columns()
    everything = bradley_terry.fit(first, second, outcomes)
    topics = []
    for group in range(int(everything.group.max()) + 1):
        items = np.flatnonzero(everything.group == group)
        number = {int(item): place for place, item in enumerate(items)}
        answers: dict[tuple[int, int], list[int]] = {}
        for i, j, outcome in zip(first.tolist(), second.tolist(), outcomes.tolist(), strict=True):
            if i in number and j in number:
                answers.setdefault((number[i], number[j]), []).append(outcome)
                answers.setdefault((number[j], number[i]), []).append(-outcome)
        topics.append((everything.score[items], answers))
    return topics


def repeated(
    topics: list[tuple[Array, dict[tuple[int, int], list[int]]]], run: int, _rng: np.random.Generator
) -> tuple[Array, Answer]:
    """Comparisons as they were answered."""
    truth, answers = topics[run % len(topics)]

    def answer(_annotator: int, first: int, second: int, rng: np.random.Generator) -> int:
        # The few pairs that nobody compared are ties.
        return int(rng.choice(answers.get((first, second), [0])))

    return truth, answer


def course(comparisons: Comparisons, rule: str, most: int, run: int) -> list[tuple[float, float]]:
    """Spearman's correlation with the truth after 5, 8 and 10 comparisons an item: of the law, of Bradley-Terry."""
    truth, answer = comparisons.made(run, np.random.default_rng([run, 21]))
    rng = np.random.default_rng([run, 22])
    asking = SelectionSettings(judgments_per_item=most, items_per_hit=2, min_items=2, gamma=0.1)
    items = len(truth)
    mine = SimulatedCampaign(RULES[rule], ONLINE_LAWS["trueskill"], asking, LawParameters(), items, rng)
    found = []
    for number in range(COMPARISONS_AT[-1] * items // 2):
        annotator = int(rng.integers(ANNOTATORS))
        draw = mine.draw_next_hit_or_none(annotator)
        if draw is not None:
            outcome = answer(annotator, draw.items[0], draw.items[1], rng)
            mine.update_campaign_by_answer(AnsweredHit(annotator, draw.items, [(1 + outcome) / 2, (1 - outcome) / 2]))
        if number + 1 in [at * items // 2 for at in COMPARISONS_AT]:
            fit = bradley_terry.fit(*comparison_columns(mine), n_items=items)
            found.append((float(spearman(mine.score, truth)), float(spearman(np.nan_to_num(fit.score), truth))))
    return found


def comparison_columns(campaign: SimulatedCampaign) -> Sequence[Sequence[int]]:
    """Return first items, second items and outcomes."""
    rows = [(*hit.items, round(hit.values[0] - hit.values[1])) for hit in campaign.hits]
    first, second, outcomes = zip(*rows, strict=True)
    return first, second, outcomes


def with_band(difference: Array) -> str:
    """Mean of paired differences, (runs,), and the band of 90 % of what resampled runs say."""
    again = np.random.default_rng(1).integers(len(difference), size=(RESAMPLED, len(difference)))
    low, high = np.percentile(difference[again].mean(axis=1), (5, 95))
    return f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def show(data: list[Comparisons], rows: dict[str, tuple[str, int]], runs: int) -> None:
    """Print two tables. rows: what a row is called, its rule, and the most judgments of an item."""
    found = {
        (each.name, row): np.array([course(each, rule, most, run) for run in range(runs)])
        for each in data
        for row, (rule, most) in rows.items()
    }
    for number, scores in enumerate(("of the law trueskill", "of Bradley-Terry")):
        print(f"\nSpearman with the truth, scores {scores}; {runs} runs\n")
        print(f"| data | rule | {' | '.join(f'{at} comparisons' for at in COMPARISONS_AT)} |\n|---|---|---|---|---|")
        for each in data:
            even = found[each.name, "scores"][:, :, number]
            print(f"| {each.name} | scores | {' | '.join(f'{value:.3f}' for value in even.mean(axis=0))} |")
            for row in [*rows][1:]:
                difference = found[each.name, row][:, :, number] - even
                print(f"| {each.name} | {row} | {' | '.join(map(with_band, difference.T))} |", flush=True)


def time_draws(items: int, draws: int = 300) -> None:
    """Print how long a draw and an answer take, of which 8 were asked of each item."""
    truth, answer = simulated(items, 1.2, 0.0, 0, np.random.default_rng(1))
    asking, rng = SelectionSettings(judgments_per_item=10**6, items_per_hit=2, gamma=0.1), np.random.default_rng(2)
    known = ItemValues(truth / 10 + 0.5, np.full(items, 0.004), np.full(items, 8))
    index = PAIRS_RULE.make_selection_index(known, asking)
    pairs = rng.permuted(np.tile(np.arange(items), (8, 1)), axis=1).reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    won = np.array([[(1 + outcome) / 2, (1 - outcome) / 2] for outcome in (answer(0, i, j, rng) for i, j in pairs)])
    start = time.thread_time()
    if index.log is not None:
        index.log.add_hits(np.repeat(np.arange(len(pairs)), 2), pairs.ravel(), won.ravel(), tie_margin=0, ties=True)
        index.log.replace_posterior_by_fitted_one(*index.log.begin_due_posterior_fit_or_none()())  # type: ignore[misc]  # it is due
    build = time.thread_time() - start
    taken = [draw_and_learn(index, items, rng) for _ in range(draws)]
    (draw50, learn50), (draw95, _) = np.percentile(taken, (50, 95), axis=0) / 1000
    print(f"| {items:,} | {build:.2f} | {draw50:.0f} | {draw95:.0f} | {learn50:.0f} |", flush=True)


def draw_and_learn(index: Index, items: int, rng: np.random.Generator) -> tuple[int, int]:
    """Nanoseconds of this thread for a draw, and for learning its answer."""
    seen: set[int] = set(rng.integers(items, size=min(50, items // 4)).tolist())
    start = time.thread_time_ns()
    draw = index.draw_hit_or_none(2, seen=seen, full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng)
    drawn = time.thread_time_ns()
    assert draw is not None
    index.learn_comparisons_of_hit(draw.items, rng.permutation(2).tolist(), tie_margin=0, ties=True)  # type: ignore[attr-defined]
    return drawn - start, time.thread_time_ns() - drawn


def main() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("One HIT, microseconds of processor time (reading 8 comparisons an item: seconds)\n")
    print("| items | reading | draw p50 | draw p95 | answer p50 |\n|---:|---:|---:|---:|---:|")
    for items in (50, 300, 1_000, 10_000, 1_000_000):
        time_draws(items)
    rows = {name: (name, 10**6) for name in RULES}
    data = [Comparisons(f"50 items, {spread:g}", partial(simulated, 50, spread, 0.0)) for spread in SPREADS]
    data.append(Comparisons("50 items, 1.2, 20% at random", partial(simulated, 50, 1.2, 0.2)))
    data.append(Comparisons("150 items, 1.2", partial(simulated, 150, 1.2, 0.0)))
    data.append(Comparisons("arguments", partial(repeated, arguments_by_topic())))
    show(data, rows | {"pairs, at most 10": ("pairs", 10)}, runs)
    large = Comparisons("1,200 items, 1.2", partial(simulated, 1_200, 1.2, 0.0))
    show([large], {name: rows[name] for name in ("scores", "pairs", "Swiss")}, max(2, runs // 10))


if __name__ == "__main__":
    main()
