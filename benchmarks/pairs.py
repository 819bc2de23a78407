"""Measure how well the rule `pairs` orders items: `python -m benchmarks.pairs [RUNS]`, 100 runs by default.

Simulated campaigns of pairwise comparisons have 30 annotators. The tables show how well scores order the items after 5,
8 and 10 comparisons per item: Spearman's correlation with the truth under the rule `scores`, and the differences of
other rules from it, with a band that contains 90 % of resampled sets of runs. *Swiss* is a tournament that Easel does
not offer: the item with the fewest comparisons meets the item with the nearest score among those with as few. Scores
are those of the law `trueskill`, which pages show, and of Bradley & Terry's model.

Simulated comparisons follow Thurstone's model. Items are hard or easy to tell apart (their true scores have a standard
deviation of .6, 1.2 or 2.5 in units of the noise of a comparison), with and without annotators who answer at random.
The real data are comparisons of arguments in examples/data/ukp_convarg1, 32 topics with about 32 arguments each. A
simulated answer is a random one of the real answers for the pair; the truth is Bradley-Terry's score of all answers.
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

ANNOTATORS, CHECKPOINTS, RESAMPLES = 30, (5, 8, 10), 1000
SCORE_SDS = (0.6, 1.2, 2.5)
DrawOutcome = Callable[[int, int, int, np.random.Generator], int]  # annotator, first and second item: +1, 0 or -1


class NearestCompanions(LeastJudgedCompanions):
    """Companions with the nearest score among the items with the fewest judgments."""

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
        """Return the companions with the fewest judgments, and among these with the nearest scores."""
        others = rng.permutation(sorted(self.items - barred - {leader, *chosen_items}))
        distance = np.abs(self._known.score[others] - self._known.score[leader])
        nearest: list[int] = others[np.lexsort((distance, self._known.judgments[others]))[:count]].tolist()
        return nearest


def make_swiss_pools(
    settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[LeastJudgedLeaders, NearestCompanions]:
    """Return leaders with the fewest judgments, and their nearest companions."""
    return LeastJudgedLeaders(items, open_items.judgments), NearestCompanions(items, open_items, settings.gamma)


RULES: dict[str, Rule] = {
    "scores": SELECTION_RULES["scores"],
    "pairs": PAIRS_RULE,
    "easl": SELECTION_RULES["easl"],
    "Swiss": EvenRule("swiss", "Swiss tournament", make_pools=make_swiss_pools),
}


@dataclass(frozen=True)
class ComparisonSource:
    """Source of simulated answers.

    Attributes:
        name: Name in the table.
        make_run: Function of a run's number and a source of randomness that returns true scores, and a function that
            answers.

    """

    name: str
    make_run: Callable[[int, np.random.Generator], tuple[Array, DrawOutcome]]


def make_simulated_run(
    items: int, spread: float, random_share: float, _run: int, rng: np.random.Generator
) -> tuple[Array, DrawOutcome]:
    """Return true scores and a function that answers by Thurstone's model, or at random for careless annotators."""
    true_scores, careless = rng.normal(size=items) * spread, rng.permutation(ANNOTATORS) < random_share * ANNOTATORS

    def draw_outcome(annotator: int, first: int, second: int, rng: np.random.Generator) -> int:
        win_probability = 0.5 if careless[annotator] else float(ndtr(true_scores[first] - true_scores[second]))
        return 1 if rng.random() < win_probability else -1

    return true_scores, draw_outcome


def arguments_by_topic() -> list[tuple[Array, dict[tuple[int, int], list[int]]]]:
    """Return true scores and real answers by pair for each topic, a group of items that were compared with each
    other.
    """
    first, second, outcomes, _ = load_argument_judgment_columns()
    fit = bradley_terry.fit(first, second, outcomes)
    topics = []
    for group in range(int(fit.group.max()) + 1):
        items = np.flatnonzero(fit.group == group)
        number = {int(item): item_number for item_number, item in enumerate(items)}
        answers: dict[tuple[int, int], list[int]] = {}
        for i, j, outcome in zip(first.tolist(), second.tolist(), outcomes.tolist(), strict=True):
            if i in number and j in number:
                answers.setdefault((number[i], number[j]), []).append(outcome)
                answers.setdefault((number[j], number[i]), []).append(-outcome)
        topics.append((fit.score[items], answers))
    return topics


def make_replayed_run(
    topics: list[tuple[Array, dict[tuple[int, int], list[int]]]], run: int, _rng: np.random.Generator
) -> tuple[Array, DrawOutcome]:
    """Return true scores and a function that returns a random one of a pair's real answers."""
    true_scores, answers = topics[run % len(topics)]

    def draw_outcome(_annotator: int, first: int, second: int, rng: np.random.Generator) -> int:
        # The few pairs without an answer are ties.
        return int(rng.choice(answers.get((first, second), [0])))

    return true_scores, draw_outcome


def correlations_at_checkpoints(
    source: ComparisonSource, rule: str, max_judgments_per_item: int, run: int
) -> list[tuple[float, float]]:
    """Simulate a campaign and return Spearman's correlation of the law and of Bradley-Terry at each checkpoint."""
    true_scores, draw_outcome = source.make_run(run, np.random.default_rng([run, 21]))
    rng = np.random.default_rng([run, 22])
    settings = SelectionSettings(judgments_per_item=max_judgments_per_item, items_per_hit=2, min_items=2, gamma=0.1)
    items = len(true_scores)
    campaign = SimulatedCampaign(RULES[rule], ONLINE_LAWS["trueskill"], settings, LawParameters(), items, rng)
    correlations = []
    for number in range(CHECKPOINTS[-1] * items // 2):
        annotator = int(rng.integers(ANNOTATORS))
        draw = campaign.draw_next_hit_or_none(annotator)
        if draw is not None:
            outcome = draw_outcome(annotator, draw.items[0], draw.items[1], rng)
            campaign.update_campaign_by_answer(
                AnsweredHit(annotator, draw.items, [(1 + outcome) / 2, (1 - outcome) / 2])
            )
        if number + 1 in [comparisons_per_item * items // 2 for comparisons_per_item in CHECKPOINTS]:
            fit = bradley_terry.fit(*comparison_columns_of_campaign(campaign), n_items=items)
            correlations.append(
                (float(spearman(campaign.score, true_scores)), float(spearman(np.nan_to_num(fit.score), true_scores)))
            )
    return correlations


def comparison_columns_of_campaign(campaign: SimulatedCampaign) -> Sequence[Sequence[int]]:
    """Return first items, second items and outcomes of all hits."""
    rows = [(*hit.items, round(hit.values[0] - hit.values[1])) for hit in campaign.hits]
    first, second, outcomes = zip(*rows, strict=True)
    return first, second, outcomes


def format_mean_with_band(difference: Array) -> str:
    """Return the mean of paired differences, (runs,), and the band with 90 % of resampled means, as text."""
    resamples = np.random.default_rng(1).integers(len(difference), size=(RESAMPLES, len(difference)))
    low, high = np.percentile(difference[resamples].mean(axis=1), (5, 95))
    return f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def print_tables(data: list[ComparisonSource], rows: dict[str, tuple[str, int]], runs: int) -> None:
    """Simulate all rows and print a table for each kind of score.

    Args:
        data: Sources of answers.
        rows: Rule and maximal judgments per item, by the row's name.
        runs: Number of runs.

    """
    correlations = {
        (source.name, row): np.array(
            [correlations_at_checkpoints(source, rule, max_judgments, run) for run in range(runs)]
        )
        for source in data
        for row, (rule, max_judgments) in rows.items()
    }
    for number, scores in enumerate(("of the law trueskill", "of Bradley-Terry")):
        print(f"\nSpearman with the truth, scores {scores}; {runs} runs\n")
        print(
            f"| data | rule | {' | '.join(f'{number} comparisons' for number in CHECKPOINTS)} |\n|---|---|---|---|---|"
        )
        for source in data:
            even = correlations[source.name, "scores"][:, :, number]
            print(f"| {source.name} | scores | {' | '.join(f'{value:.3f}' for value in even.mean(axis=0))} |")
            for row in [*rows][1:]:
                difference = correlations[source.name, row][:, :, number] - even
                print(f"| {source.name} | {row} | {' | '.join(map(format_mean_with_band, difference.T))} |", flush=True)


def time_draws(items: int, draws: int = 300) -> None:
    """Print how long a draw and an answer take after 8 comparisons of each item."""
    true_scores, draw_outcome = make_simulated_run(items, 1.2, 0.0, 0, np.random.default_rng(1))
    settings, rng = SelectionSettings(judgments_per_item=10**6, items_per_hit=2, gamma=0.1), np.random.default_rng(2)
    item_values = ItemValues(true_scores / 10 + 0.5, np.full(items, 0.004), np.full(items, 8))
    index = PAIRS_RULE.make_selection_index(item_values, settings)
    pairs = rng.permuted(np.tile(np.arange(items), (8, 1)), axis=1).reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    values = np.array(
        [[(1 + outcome) / 2, (1 - outcome) / 2] for outcome in (draw_outcome(0, i, j, rng) for i, j in pairs)]
    )
    start = time.thread_time()
    if index.log is not None:
        index.log.add_hits(np.repeat(np.arange(len(pairs)), 2), pairs.ravel(), values.ravel(), tie_margin=0, ties=True)
        index.log.replace_posterior_by_fitted_one(*index.log.begin_due_fit_and_return_function_or_none()())  # type: ignore[misc]  # it is due
    build_seconds = time.thread_time() - start
    nanoseconds = [nanoseconds_to_draw_and_learn(index, items, rng) for _ in range(draws)]
    (draw50, learn50), (draw95, _) = np.percentile(nanoseconds, (50, 95), axis=0) / 1000
    print(f"| {items:,} | {build_seconds:.2f} | {draw50:.0f} | {draw95:.0f} | {learn50:.0f} |", flush=True)


def nanoseconds_to_draw_and_learn(index: Index, items: int, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a HIT, answer it, and return the nanoseconds of this thread for each."""
    seen: set[int] = set(rng.integers(items, size=min(50, items // 4)).tolist())
    start = time.thread_time_ns()
    draw = index.draw_hit_or_none(2, seen=seen, full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng)
    draw_end = time.thread_time_ns()
    assert draw is not None
    index.learn_comparisons_of_hit(draw.items, rng.permutation(2).tolist(), tie_margin=0, ties=True)  # type: ignore[attr-defined]
    return draw_end - start, time.thread_time_ns() - draw_end


def main() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("One HIT, microseconds of processor time (reading 8 comparisons an item: seconds)\n")
    print("| items | reading | draw p50 | draw p95 | answer p50 |\n|---:|---:|---:|---:|---:|")
    for items in (50, 300, 1_000, 10_000, 1_000_000):
        time_draws(items)
    rows = {name: (name, 10**6) for name in RULES}
    data = [
        ComparisonSource(f"50 items, {spread:g}", partial(make_simulated_run, 50, spread, 0.0)) for spread in SCORE_SDS
    ]
    data.append(ComparisonSource("50 items, 1.2, 20% at random", partial(make_simulated_run, 50, 1.2, 0.2)))
    data.append(ComparisonSource("150 items, 1.2", partial(make_simulated_run, 150, 1.2, 0.0)))
    data.append(ComparisonSource("arguments", partial(make_replayed_run, arguments_by_topic())))
    print_tables(data, rows | {"pairs, at most 10": ("pairs", 10)}, runs)
    large = ComparisonSource("1,200 items, 1.2", partial(make_simulated_run, 1_200, 1.2, 0.0))
    print_tables([large], {name: rows[name] for name in ("scores", "pairs", "Swiss")}, max(2, runs // 10))


if __name__ == "__main__":
    main()
