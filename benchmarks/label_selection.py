"""Compare selection rules by how many labels are correct for the same budget: `python -m benchmarks.label_selection`.

A simulated crowd labels 300 items in four classes, one item per HIT. Three of four labels are correct; errors mostly
confuse two of the classes, and seldom the other two. In the second crowd, annotators split on every fifth item however
many labels it gets. Each item may get up to ten labels.

Each rule spends the same budget, and so does *uniform*, which gives all items the same number of labels. The label of
an item is the one that most annotators gave.
"""

import numpy as np
import numpy.typing as npt

from app.inference.online import dirichlet
from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings

ITEMS, CLASSES, MAX_LABELS_PER_ITEM, RUNS = 300, 4, 10, 20
LABELS_PER_ITEM_BUDGETS = (2, 3, 4, 5)  # labels an item
LABEL_PROBABILITIES_BY_TRUE_CLASS = np.array(
    [[0.65, 0.25, 0.05, 0.05], [0.25, 0.65, 0.05, 0.05], [0.03, 0.03, 0.91, 0.03], [0.05, 0.05, 0.1, 0.8]]
)
SETTINGS = SelectionSettings(judgments_per_item=MAX_LABELS_PER_ITEM, items_per_hit=1, gamma=0.1)
LAW = dirichlet.make_dirichlet_law(CLASSES)
Counts = npt.NDArray[np.float64]


def simulate_classes_and_label_probabilities(seed: int, split_share: float) -> tuple[npt.NDArray[np.int64], Counts]:
    """Return the true class of each item, (items,), and the probability of each label for it, (items, classes).

    Args:
        seed: Seed of the crowd.
        split_share: Share of items on which annotators split.

    """
    rng = np.random.default_rng(seed)
    true_classes = rng.integers(CLASSES, size=ITEMS)
    label_probabilities = LABEL_PROBABILITIES_BY_TRUE_CLASS[true_classes]
    for item in np.flatnonzero(rng.random(ITEMS) < split_share):
        label_probabilities[item] = 0.02
        label_probabilities[item, true_classes[item]], label_probabilities[item, (true_classes[item] + 1) % CLASSES] = (
            0.5,
            0.46,
        )
    return true_classes, label_probabilities


def share_of_correct_labels(label_counts: Counts, true_classes: npt.NDArray[np.int64]) -> float:
    """Return the share of items with the correct label; a tie counts as the chance of drawing the correct one."""
    is_most_frequent = label_counts == label_counts.max(axis=1, keepdims=True)
    return float((is_most_frequent[np.arange(len(true_classes)), true_classes] / is_most_frequent.sum(axis=1)).mean())


def correct_shares_by_budget(
    rule: str, true_classes: npt.NDArray[np.int64], label_probabilities: Counts, seed: int
) -> list[float]:
    """Simulate a campaign under a rule and return the share of correct labels after each budget, (budgets,)."""
    rng = np.random.default_rng(seed)
    states = np.full((ITEMS, CLASSES), 1.0 / CLASSES)
    judgments, shares = np.zeros(ITEMS, np.int64), []
    score, variance = LAW.family.score(*states.T), LAW.family.variance(*states.T)
    label_options = {"states": states} if rule != "uniform" and SELECTION_RULES[rule].reads_labels else {}
    index = SELECTION_RULES["easl" if rule == "uniform" else rule].make_selection_index(
        ItemValues(score, variance, judgments), SETTINGS, **label_options
    )
    for label_number in range(ITEMS * LABELS_PER_ITEM_BUDGETS[-1]):
        if rule == "uniform":
            item = int(rng.choice(np.flatnonzero(judgments == judgments.min())))
        else:
            draw = index.draw_hit_or_none(
                1, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng
            )
            assert draw is not None
            item = draw.leader
        states[item, rng.choice(CLASSES, p=label_probabilities[item])] += 1.0
        judgments[item] += 1
        changed_state = states[item, :, None]
        index.update([item], LAW.family.score(*changed_state), LAW.family.variance(*changed_state), [judgments[item]])
        if label_options:
            index.update_label_posteriors([item], states[[item]])  # type: ignore[attr-defined]  # such a rule's index has it
        if (label_number + 1) % ITEMS == 0 and (label_number + 1) // ITEMS in LABELS_PER_ITEM_BUDGETS:
            shares.append(share_of_correct_labels(states, true_classes))
    return shares


def mean_correct_shares_by_rule(split_share: float, runs: int = RUNS) -> dict[str, npt.NDArray[np.float64]]:
    """Return the mean share of correct labels after each budget, (budgets,), by rule."""
    crowds = [simulate_classes_and_label_probabilities(seed, split_share) for seed in range(runs)]
    return {
        rule: np.mean([correct_shares_by_budget(rule, *crowd, seed) for seed, crowd in enumerate(crowds)], axis=0)
        for rule in ("uniform", *SELECTION_RULES)
    }


def main() -> None:
    for split_share in (0.0, 0.2):
        print(f"\nShare of right labels, {ITEMS} items, {split_share:.0%} of them dividing annotators, {RUNS} runs\n")
        print(f"| rule | {' | '.join(f'{budget} labels an item' for budget in LABELS_PER_ITEM_BUDGETS)} |")
        print("|---|" + "---:|" * len(LABELS_PER_ITEM_BUDGETS))
        for rule, shares in mean_correct_shares_by_rule(split_share).items():
            print(f"| {rule} | {' | '.join(f'{share:.3f}' for share in shares)} |")


if __name__ == "__main__":
    main()
