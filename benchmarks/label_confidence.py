"""How often labels of Dawid-Skene are right that seem certain, and how often intervals hold the prevalence:
`python -m benchmarks.label_confidence [RUNS]`; 20 runs take five minutes.

Simulated crowds. Of each: the share of items with the right label, and of the labels with a confidence of .99 or more
their share and how many are right, by Dawid-Skene's own posteriors and by the cautious ones that Easel shows.
"""

import sys
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.labels import dawid_skene
from app.inference.labels.cautious_posterior import result_with_cautious_posteriors
from app.inference.labels.dawid_skene import DawidSkeneResult
from app.inference.labels.prevalence_interval import ends_of_bootstrap_prevalence_intervals

CERTAIN = 0.99
PREVALENCE_OF_FIRST = 0.6


class LabelCrowd(NamedTuple):
    """Items, annotators, classes and labels of each item; how good annotators are, and whether few give most labels."""

    items: int
    annotators: int
    classes: int
    per_item: int
    accuracy: tuple[float, float]
    spammers: float = 0.0
    is_uneven: bool = False

    @property
    def prevalence(self) -> Array:
        others = self.classes - 1
        shares: Array = np.r_[PREVALENCE_OF_FIRST, np.full(others, (1.0 - PREVALENCE_OF_FIRST) / others)]
        return shares


LABEL_CROWDS = {
    "100 items, 3 labels, 20 uneven": LabelCrowd(100, 20, 2, 3, (6, 2), is_uneven=True),
    "100 items, 5 labels, 20 annotators": LabelCrowd(100, 20, 2, 5, (6, 2)),
    "200 items, 3 labels, 40 uneven, 3 classes": LabelCrowd(200, 40, 3, 3, (6, 2), is_uneven=True),
    "200 items, 5 labels, 40 uneven, 4 classes, poor": LabelCrowd(200, 40, 4, 5, (4, 2), is_uneven=True),
    "500 items, 5 labels, 30 poor": LabelCrowd(500, 30, 2, 5, (4, 2)),
    "300 items, 5 labels, 30, a quarter at random, 3 classes": LabelCrowd(300, 30, 3, 5, (16, 2), 0.25),
    "150 items, 3 labels, 25 uneven, 3 classes, good": LabelCrowd(150, 25, 3, 3, (40, 2), is_uneven=True),
}


def label_items(crowd: LabelCrowd, rng: np.random.Generator) -> tuple[Integers, list[Integers]]:
    """Classes of the items, and items, annotators and labels of the judgments."""
    truth = rng.choice(crowd.classes, size=crowd.items, p=crowd.prevalence)
    accuracy = rng.beta(*crowd.accuracy, (crowd.annotators, crowd.classes))
    accuracy[rng.random(crowd.annotators) < crowd.spammers] = 1.0 / crowd.classes
    weight = 1.0 / np.arange(1, crowd.annotators + 1) if crowd.is_uneven else np.ones(crowd.annotators)
    # The largest of weighted exponential races are a draw without replacement.
    races = rng.exponential(size=(crowd.items, crowd.annotators)) / weight
    annotators = np.argsort(races, axis=1)[:, : crowd.per_item]
    is_right = rng.random(annotators.shape) < accuracy[annotators, truth[:, None]]
    wrong = (truth[:, None] + rng.integers(1, crowd.classes, size=annotators.shape)) % crowd.classes
    labels = np.where(is_right, truth[:, None], wrong)
    return truth, [np.repeat(np.arange(crowd.items), crowd.per_item), annotators.ravel(), labels.ravel()]


def right_and_certain(result: DawidSkeneResult, truth: Integers) -> tuple[float, float, float]:
    """Share of right labels, of certain ones, and of certain ones that are right times their share."""
    is_right = result.posterior.argmax(axis=1) == truth
    is_certain = result.posterior.max(axis=1) >= CERTAIN
    return float(is_right.mean()), float(is_certain.mean()), float((is_right & is_certain).mean())


def measure(crowd: LabelCrowd, seed: int, draws: int = 60) -> Array:
    """Figures of both posteriors, and the share of classes whose interval holds the prevalence, (7,)."""
    truth, judgments = label_items(crowd, np.random.default_rng([seed, *crowd[:4]]))
    result = dawid_skene.fit(
        *judgments, n_items=crowd.items, n_annotators=crowd.annotators, n_labels=crowd.classes, max_iterations=10_000
    )
    low, high = ends_of_bootstrap_prevalence_intervals(result, *judgments, draws=draws, rng=np.random.default_rng(seed))
    cautious = result_with_cautious_posteriors(result, *judgments)
    held = ((low <= crowd.prevalence) & (crowd.prevalence <= high)).mean()
    return np.array([*right_and_certain(result, truth), *right_and_certain(cautious, truth), held])


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("| crowd | right, Dawid-Skene | certain, right of them | right, cautious | certain, right of them | held |")
    print("|---|---|---|---|---|---|")
    for title, crowd in LABEL_CROWDS.items():
        right, sure, both, right_2, sure_2, both_2, held = np.mean([measure(crowd, k) for k in range(runs)], axis=0)
        cells = f"{right:.3f} | {sure:.2f}, {both / sure:.3f} | {right_2:.3f} | {sure_2:.2f}, {both_2 / sure_2:.3f}"
        print(f"| {title} | {cells} | {held:.3f} |", flush=True)


if __name__ == "__main__":
    main()
