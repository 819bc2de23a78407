"""How often intervals hold the truth under every rule that asks about items of its choice, and of the items that lead
a list: `python -m benchmarks.coverage_under_rules [RUNS]`, 20 if not said.

Campaigns in memory of 150 items, with HITs of 5, each by one of 30 annotators, looked at after 2, 3, 5 and 10 judgments
per item. A rule that releases items looks after every third HIT which ones its goal needs no longer. The truth is what
all annotators would say on average; of MLQE the mean of an item's real scores. Side by side, for the plain calibrated
interval and for the shrunken one: the share that holds the truth, of all items, of those with one or two judgments, and
of the twelve that lead the list by the score that belongs to the interval; how wide intervals are, and by how many
points the scores of these twelve are too high.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.designs.scale import MAX_POINTS
from app.goals.progress import mask_of_settled_items
from app.goals.settings import RELEASE_ITEMS, Goal
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.inference.ratings.shrunken_means import fit_item_shrinkage
from app.selection.registry import SELECTION_RULES
from app.selection.rule import Counts, SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population, SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import a_process_per_core
from benchmarks.campaign_of import campaign_of
from benchmarks.forecasts import with_answers
from benchmarks.goals import MLQE, real_scores, repeated
from benchmarks.stopping import PLAIN, meant

ITEMS, ANNOTATORS, N, BEST, LEADING, FEW, CAP = 150, 30, 5, 15, 12, 2, 20
BUDGETS = (2, 3, 5, 10)
PER_ROUND = ITEMS // N
HITS_BETWEEN_RELEASES = 3
HABITS = Population(0.15, 0.3, 0.15, 0.4)

MadeBy = Callable[[np.random.Generator], tuple[SimulatedAnnotators, Array]]


class Asking(NamedTuple):
    """A rule, and the goal by which items are released."""

    rule: str
    released_by: Goal | None = None

    @property
    def title(self) -> str:
        return f"{self.rule}, releasing" if self.released_by else self.rule


ASKINGS = (
    Asking("scores"),
    Asking("easl"),
    Asking("best"),
    Asking("threshold"),
    Asking("best", "best"),
    Asking("threshold", "threshold"),
    Asking("scores", "intervals"),
)


def simulated(
    people: Population, truths: Callable[[np.random.Generator], Array], rng: np.random.Generator
) -> tuple[SimulatedAnnotators, Array]:
    annotators = HabitAnnotators(people.draw_habits(ANNOTATORS, rng), truths(rng))
    return annotators, np.mean([meant(habits, annotators.true_values) for habits in annotators.habits], axis=0)


def beta_items(a: float, b: float, rng: np.random.Generator) -> Array:
    return rng.beta(a, b, ITEMS)


def two_heaps(rng: np.random.Generator) -> Array:
    return np.where(rng.random(ITEMS) < 0.3, rng.beta(8, 3, ITEMS), rng.beta(3, 8, ITEMS))


DATA: dict[str, MadeBy] = {
    "all alike": partial(simulated, Population(), partial(beta_items, 2, 2)),
    "biases .15": partial(simulated, HABITS, partial(beta_items, 2, 2)),
    "the same, 15 % random": partial(
        simulated, Population(0.15, 0.3, 0.15, 0.4, careless={"random": 0.15}), partial(beta_items, 2, 2)
    ),
    "noise .3": partial(simulated, Population(0.05, 0.1, 0.3, 0.3), partial(beta_items, 2, 2)),
    "alike, items in two heaps": partial(simulated, Population(), two_heaps),
    "alike, items close together": partial(simulated, Population(), partial(beta_items, 20, 20)),
    "biases .15, items piled up near 0": partial(simulated, HABITS, partial(beta_items, 1, 4)),
    **{f"MLQE {languages}": partial(repeated, real_scores(languages)) for languages in MLQE},
}


class Held(NamedTuple):
    """Shares of intervals that hold the truth, the mean width, and how much too high leading scores are, in points.

    `few` is the number of items with few judgments that do, of `few_items`.
    """

    all_items: float
    few: float
    few_items: float
    leading: float
    width: float
    too_high: float


def looks(made: MadeBy, asking: Asking, seed: int) -> Iterator[tuple[int, Tally, Array]]:
    """Judgments per item, the judgments so far and the truth, at each of `BUDGETS`."""
    people, truth = made(np.random.default_rng([seed, 1]))
    threshold = float(np.median(truth))
    settings = SelectionSettings(
        CAP if asking.released_by else 10**6, N, gamma=0.1, best_count=BEST, threshold=threshold
    )
    mine = SimulatedCampaign(
        SELECTION_RULES[asking.rule],
        ONLINE_LAWS["easl"],
        settings,
        LawParameters(),
        ITEMS,
        np.random.default_rng([seed, 2]),
    )
    goal = {"goal": asking.released_by, "when_reached": RELEASE_ITEMS, "threshold": MAX_POINTS * threshold}
    campaign = campaign_of(best_items=BEST, **goal, **PLAIN) if asking.released_by else None
    hits, tally = mine.iterate_answered_hits(people), Tally.empty(ITEMS)
    for per_item in range(1, max(BUDGETS) + 1):
        for _ in range(0, PER_ROUND, HITS_BETWEEN_RELEASES):
            tally = with_answers(tally, list(islice(hits, HITS_BETWEEN_RELEASES)))
            if campaign:
                mine.release_settled_items(mask_of_settled_items(campaign, moderated_means_of_tally(tally), mine.score))
        if per_item in BUDGETS:
            yield per_item, tally, truth


def held(score: Array, low: Array, high: Array, truth: Array, judgments: Counts) -> Held:
    right, leading, few = (
        (low <= truth) & (truth <= high),
        np.argsort(-score, kind="stable")[:LEADING],
        judgments <= FEW,
    )
    too_high = MAX_POINTS * float((score - truth)[leading].mean())
    return Held(
        right.mean(), right[few].sum(), few.sum(), right[leading].mean(), MAX_POINTS * (high - low).mean(), too_high
    )


def one_run(made: MadeBy, asking: Asking, seed: int) -> dict[str, list[Held]]:
    """What holds at each look, by interval."""
    found: dict[str, list[Held]] = defaultdict(list)
    for _, tally, truth in looks(made, asking, seed):
        known: ModeratedMeans = moderated_means_of_tally(tally)
        asked = np.flatnonzero(np.isfinite(known.standard_error))
        known, truths, judgments = known.select_items(asked), truth[asked], tally.judgments[asked].astype(np.int64)
        found["plain"].append(held(known.mean, *known.interval(), truths, judgments))
        shrunken = fit_item_shrinkage(tally).shrink_items(asked)
        found["shrunken"].append(held(shrunken.score, shrunken.low, shrunken.high, truths, judgments))
    return found


def cells(looks_of: Sequence[Held]) -> str:
    mean = Held(*np.mean(looks_of, axis=0))
    few = f"{mean.few / mean.few_items:.3f}" if mean.few_items else "none"
    return f"{mean.all_items:.3f} | {few} | {mean.leading:.3f} | {mean.width:.1f} | {mean.too_high:+.1f}"


HEADS = "all items | at most 2 judgments | leading 12 | width | leading scores too high"


def show_heads(title: str) -> None:
    print(f"\n{title}\n\n| | interval | {HEADS} |\n|---|---|---|---|---|---|---|")


def show_row(name: str, found: dict[str, list[Held]]) -> None:
    """A line of each interval."""
    for interval, looks_of in found.items():
        print(f"| {name} | {interval} | {cells(looks_of)} |", flush=True)


def merged(runs: Sequence[dict[str, list[Held]]]) -> dict[str, list[Held]]:
    return {interval: [one for run in runs for one in run[interval]] for interval in runs[0]}


def show_rules(runs: int, pool: ProcessPoolExecutor) -> None:
    """By rule over all data; by judgments per item, and by data, over the rules that ask selectively."""
    show_heads(f"By rule, over all data; {runs} runs each")
    found: dict[Asking, dict[str, list[dict[str, list[Held]]]]] = {}
    for asking in ASKINGS:
        found[asking] = {
            name: list(pool.map(partial(one_run, made, asking), range(runs))) for name, made in DATA.items()
        }
        show_row(asking.title, merged([run for of in found[asking].values() for run in of]))
    selective = [of for asking, of in found.items() if asking.rule in ("best", "threshold")]
    every = [run for by_data in selective for of in by_data.values() for run in of]
    show_heads("Rules best and threshold, by judgments per item")
    for look, budget in enumerate(BUDGETS):
        show_row(f"{budget} an item", {interval: [run[interval][look] for run in every] for interval in every[0]})
    show_heads("Rules best and threshold, by data")
    for name in DATA:
        show_row(name, merged([run for by_data in selective for run in by_data[name]]))


def main() -> None:
    with a_process_per_core() as pool:
        show_rules(int(sys.argv[1]) if len(sys.argv) > 1 else 20, pool)


if __name__ == "__main__":
    main()
