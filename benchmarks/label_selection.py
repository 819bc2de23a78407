"""How many labels are right at an equal budget, by rule of selection: `python -m benchmarks.label_selection`.

A simulated crowd labels 300 items of four classes, one item a HIT: three of four labels are right, and who errs takes
two of the classes for each other most of the time, the other two seldom. In the second crowd every fifth item divides
its annotators for ever. Wanted are at most ten labels of an item; the budget is spent by each rule, and by uniform
asking, which gives to each item as many as to any other. The label of an item is the one given most often.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from app.inference.online import dirichlet
from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings

ITEMS, CLASSES, WANTED, RUNS = 300, 4, 10, 20
BUDGETS = (2, 3, 4, 5)  # labels an item
CROWD = np.array([[0.65, 0.25, 0.05, 0.05], [0.25, 0.65, 0.05, 0.05], [0.03, 0.03, 0.91, 0.03], [0.05, 0.05, 0.1, 0.8]])
ASKING = SelectionSettings(judgments_per_item=WANTED, items_per_hit=1, gamma=0.1)
LAW = dirichlet.make_dirichlet_law(CLASSES)
Counts = npt.NDArray[np.float64]
Labelled = Callable[[np.random.Generator, npt.NDArray[np.int64], npt.NDArray[np.bool_]], dict[int, float]]


def crowd(seed: int, divided: float) -> tuple[npt.NDArray[np.int64], Counts]:
    """The true class of each item, and how probable each label of it is."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(CLASSES, size=ITEMS)
    chance = CROWD[truth]
    for item in np.flatnonzero(rng.random(ITEMS) < divided):
        chance[item] = 0.02
        chance[item, truth[item]], chance[item, (truth[item] + 1) % CLASSES] = 0.5, 0.46
    return truth, chance


def right(counts: Counts, truth: npt.NDArray[np.int64]) -> float:
    """The share of items whose label is right; of labels given equally often one is chosen by lot."""
    ahead = counts == counts.max(axis=1, keepdims=True)
    return float((ahead[np.arange(len(truth)), truth] / ahead.sum(axis=1)).mean())


def asked(rule: str, truth: npt.NDArray[np.int64], chance: Counts, seed: int) -> list[float]:
    """The share of right labels after each budget."""
    rng = np.random.default_rng(seed)
    states = np.full((ITEMS, CLASSES), 1.0 / CLASSES)
    judgments, shares = np.zeros(ITEMS, np.int64), []
    score, variance = LAW.family.score(*states.T), LAW.family.variance(*states.T)
    more = {"states": states} if rule != "uniform" and SELECTION_RULES[rule].reads_labels else {}
    index = SELECTION_RULES["easl" if rule == "uniform" else rule].make_selection_index(
        ItemValues(score, variance, judgments), ASKING, **more
    )
    for given in range(ITEMS * BUDGETS[-1]):
        if rule == "uniform":
            item = int(rng.choice(np.flatnonzero(judgments == judgments.min())))
        else:
            draw = index.draw_hit_or_none(
                1, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng
            )
            assert draw is not None
            item = draw.leader
        states[item, rng.choice(CLASSES, p=chance[item])] += 1.0
        judgments[item] += 1
        new = states[item, :, None]
        index.update([item], LAW.family.score(*new), LAW.family.variance(*new), [judgments[item]])
        if more:
            index.update_labels([item], states[[item]])  # type: ignore[attr-defined]  # such a rule's index has it
        if (given + 1) % ITEMS == 0 and (given + 1) // ITEMS in BUDGETS:
            shares.append(right(states, truth))
    return shares


def table(divided: float, runs: int = RUNS) -> dict[str, npt.NDArray[np.float64]]:
    """The mean share of right labels of each rule after each budget."""
    crowds = [crowd(seed, divided) for seed in range(runs)]
    return {
        rule: np.mean([asked(rule, *one, seed) for seed, one in enumerate(crowds)], axis=0)
        for rule in ("uniform", *SELECTION_RULES)
    }


def main() -> None:
    for divided in (0.0, 0.2):
        print(f"\nShare of right labels, {ITEMS} items, {divided:.0%} of them dividing annotators, {RUNS} runs\n")
        print(f"| rule | {' | '.join(f'{budget} labels an item' for budget in BUDGETS)} |")
        print("|---|" + "---:|" * len(BUDGETS))
        for rule, shares in table(divided).items():
            print(f"| {rule} | {' | '.join(f'{share:.3f}' for share in shares)} |")


if __name__ == "__main__":
    main()
