"""Benefit of asking more about items that annotators differ on: `python -m benchmarks.neyman [RUNS]`, default 100.

Moderated Neyman allocation (`systems/neyman.py`) against asking about all items as often as each other (`scores`), in
campaigns in memory of 150 items with HITs of 5 and of 1, on the data of `benchmarks.goals`; the noise's logarithm
differs by 0, .5 or .8 between simulated items. The truth is what annotators would say of an item on average. Of
Spearman with the truth, and of the root mean square error in points, the table tells what `scores` reaches, and how far
Neyman is above or below in the mean of paired runs; then with how many judgments per item Neyman has the error that
`scores` has with 10 and with 20, and in how many runs it had evidence by then. Bands hold 90 % of what resampled runs
say.
"""

import sys
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.designs.scale import MAX_POINTS
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.metrics import spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.even_rule import EVEN_RULE
from app.selection.index import SelectionIndex
from app.selection.rule import Rule, SelectionSettings
from app.simulation.annotators import SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import a_process_per_core
from benchmarks.goals import ITEMS, MLQE, RESAMPLED, Data, alike, real_scores, repeated
from benchmarks.stopping import NOISE, cut
from benchmarks.systems.neyman import NEYMAN, GainsMost, variances_differ

SIZES = (5, 1)  # of a HIT
AT = (3, 5, 10, 20)  # judgments per item
SAME_AS = (10, 20)
LOOKS = 5  # an item and judgment
SPARE = 2  # where Neyman needs more
SPREADS = {"alike": 0.0, "hard items": 0.5, "harder items": 0.8}


class Look(NamedTuple):
    """At a campaign. error: root mean square, in points. evidence: 1 where variances demonstrably differ."""

    spearman: float
    error: float
    evidence: float


def simulated(spread: float, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    people, truth = alike(spread, rng)
    return people, cut(truth + people.noise * NOISE[:, None])


def course(data: Data, rule: Rule, n: int, most: int, seed: int) -> list[Look]:
    """One run, up to `most` judgments per item."""
    people, truth = data.made(np.random.default_rng([seed, 21]))
    asking = SelectionSettings(judgments_per_item=10**6, items_per_hit=n, gamma=0.1)
    mine = SimulatedCampaign(
        rule, ONLINE_LAWS["easl"], asking, LawParameters(), ITEMS, np.random.default_rng([seed, 22])
    )
    hits, looks = mine.iterate_answered_hits(people), []
    for _ in range(LOOKS * most):
        list(islice(hits, ITEMS // (LOOKS * n)))
        error = MAX_POINTS * float(np.sqrt(np.mean((mine.score - truth) ** 2)))
        looks.append(Look(spearman(truth, mine.score), error, evidence(mine)))
    return looks


def evidence(mine: SimulatedCampaign) -> float:
    """1 where it was found by a rule that looks for it."""
    leaders = mine.index.leaders if isinstance(mine.index, SelectionIndex) else None
    return float(isinstance(leaders, GainsMost) and variances_differ(leaders.tally))


def met_at(errors: Array, goal: float) -> float:
    """Judgments per item at which the mean error of runs, (runs, looks), is down to the goal; infinite if never."""
    met = errors.mean(axis=0) <= goal
    return (1 + int(met.argmax())) / LOOKS if met.any() else np.inf


class Pair(NamedTuple):
    """Courses of both rules, (runs, looks, 3) each."""

    even: Array
    neyman: Array

    def cells(self) -> list[str]:
        """A row of the table, but for its names."""
        shown = [self.difference(k, LOOKS * n - 1, places) for k, places in ((0, 4), (1, 2)) for n in AT]
        return [*shown, *(self.same_as(LOOKS * n - 1) for n in SAME_AS), self.found()]

    def difference(self, which: int, look: int, places: int) -> str:
        """Result of `scores`, and the gain of Neyman over it."""
        even, more = self.even[:, look, which], (self.neyman - self.even)[:, look, which]
        low, high = np.percentile(more[resampled(len(more))].mean(axis=1), (5, 95))
        return f"{even.mean():.{places - 1}f} {more.mean():+.{places}f} ({low:+.{places}f} to {high:+.{places}f})"

    def same_as(self, look: int) -> str:
        """With how many judgments per item Neyman has the error that `scores` has at this look."""
        errors, goals = self.neyman[:, :, 1], self.even[:, look, 1]
        again = [met_at(errors[k], goals[k].mean()) for k in resampled(len(goals))]
        low, high = np.percentile(again, (5, 95), method="nearest")
        return f"{met_at(errors, goals.mean()):g} ({low:g} to {high:g})"

    def found(self) -> str:
        """In how many runs there was evidence."""
        return ", ".join(f"{self.neyman[:, LOOKS * n - 1, 2].mean():.0%}" for n in AT)


def resampled(runs: int) -> Integers:
    return np.random.default_rng(1).integers(runs, size=(RESAMPLED, runs))


def compared(data: Data, n: int, runs: int, pool: Executor) -> Pair:
    most = max(AT) + SPARE
    courses = [pool.map(partial(course, data, rule, n, most), range(runs)) for rule in (EVEN_RULE, NEYMAN)]
    return Pair(*(np.array(list(found)) for found in courses))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    data = [Data(f"simulated, {kind}", partial(simulated, spread)) for kind, spread in SPREADS.items()]
    data += [Data(f"MLQE {languages}", partial(repeated, real_scores(languages))) for languages in MLQE]
    heads = [f"{what}, {n}" for what in ("Spearman", "error") for n in AT]
    heads += [f"error of {n} with" for n in SAME_AS] + [f"evidence, {' '.join(map(str, AT))}"]
    print(f"{runs} runs\n\n| HIT of | data | {' | '.join(heads)} |\n|---|---{'|---' * len(heads)}|", flush=True)
    with a_process_per_core() as pool:
        for n in SIZES:
            for one in data:
                print(f"| {n} | {one.name} | {' | '.join(compared(one, n, runs, pool).cells())} |", flush=True)


if __name__ == "__main__":
    main()
