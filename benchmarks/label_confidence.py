"""Measure how often confident Dawid-Skene labels are correct, and how often prevalence intervals contain the truth.

Run `python -m benchmarks.label_confidence [RUNS]`; 20 runs take five minutes.

Crowds are simulated. For each crowd the table shows the share of correct labels, the share of labels with a confidence
of .99 or more, and how many of these are correct: for the posteriors of Dawid-Skene itself, and for the cautious
posteriors that Easel shows. *held* is the share of prevalence intervals that contain the true prevalence.
"""

import sys
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.labels import dawid_skene
from app.inference.labels.cautious_posterior import result_with_cautious_posteriors
from app.inference.labels.dawid_skene import DawidSkeneResult
from app.inference.labels.prevalence_interval import ends_of_bootstrap_prevalence_intervals

MIN_CONFIDENCE = 0.99
PREVALENCE_OF_FIRST_CLASS = 0.6


class LabelCrowd(NamedTuple):
    """A simulated labelling study.

    Attributes:
        items: Number of items.
        annotators: Number of annotators.
        classes: Number of classes.
        labels_per_item: Labels per item.
        accuracy: Parameters of the Beta distribution of annotators' accuracies.
        spammers: Share of annotators who label at random.
        is_uneven: Whether a few annotators give most of the labels.

    """

    items: int
    annotators: int
    classes: int
    labels_per_item: int
    accuracy: tuple[float, float]
    spammers: float = 0.0
    is_uneven: bool = False

    @property
    def class_prevalence(self) -> Array:
        """Return the true share of each class, (classes,)."""
        others = self.classes - 1
        shares: Array = np.r_[PREVALENCE_OF_FIRST_CLASS, np.full(others, (1.0 - PREVALENCE_OF_FIRST_CLASS) / others)]
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


def simulate_labels(crowd: LabelCrowd, rng: np.random.Generator) -> tuple[Integers, list[Integers]]:
    """Return the true classes of the items, and columns of items, annotators and labels."""
    true_classes = rng.choice(crowd.classes, size=crowd.items, p=crowd.class_prevalence)
    accuracy = rng.beta(*crowd.accuracy, (crowd.annotators, crowd.classes))
    accuracy[rng.random(crowd.annotators) < crowd.spammers] = 1.0 / crowd.classes
    activity = 1.0 / np.arange(1, crowd.annotators + 1) if crowd.is_uneven else np.ones(crowd.annotators)
    # The largest of weighted exponential races are a draw without replacement.
    races = rng.exponential(size=(crowd.items, crowd.annotators)) / activity
    annotators = np.argsort(races, axis=1)[:, : crowd.labels_per_item]
    is_right = rng.random(annotators.shape) < accuracy[annotators, true_classes[:, None]]
    wrong_labels = (true_classes[:, None] + rng.integers(1, crowd.classes, size=annotators.shape)) % crowd.classes
    labels = np.where(is_right, true_classes[:, None], wrong_labels)
    return true_classes, [np.repeat(np.arange(crowd.items), crowd.labels_per_item), annotators.ravel(), labels.ravel()]


def correct_and_confident_shares(result: DawidSkeneResult, true_classes: Integers) -> tuple[float, float, float]:
    """Return the shares of labels that are correct, that are confident, and that are both."""
    is_correct = result.posterior.argmax(axis=1) == true_classes
    is_confident = result.posterior.max(axis=1) >= MIN_CONFIDENCE
    return float(is_correct.mean()), float(is_confident.mean()), float((is_correct & is_confident).mean())


def label_figures(crowd: LabelCrowd, seed: int, draws: int = 60) -> Array:
    """Return three label figures of each posterior and the share of intervals that contain the prevalence, (7,)."""
    true_classes, judgments = simulate_labels(crowd, np.random.default_rng([seed, *crowd[:4]]))
    result = dawid_skene.fit(
        *judgments, n_items=crowd.items, n_annotators=crowd.annotators, n_labels=crowd.classes, max_iterations=10_000
    )
    low, high = ends_of_bootstrap_prevalence_intervals(result, *judgments, draws=draws, rng=np.random.default_rng(seed))
    cautious = result_with_cautious_posteriors(result, *judgments)
    held_share = ((low <= crowd.class_prevalence) & (crowd.class_prevalence <= high)).mean()
    return np.array(
        [
            *correct_and_confident_shares(result, true_classes),
            *correct_and_confident_shares(cautious, true_classes),
            held_share,
        ]
    )


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("| crowd | right, Dawid-Skene | certain, right of them | right, cautious | certain, right of them | held |")
    print("|---|---|---|---|---|---|")
    for title, crowd in LABEL_CROWDS.items():
        correct, confident, both, correct_2, confident_2, both_2, held_share = np.mean(
            [label_figures(crowd, k) for k in range(runs)], axis=0
        )
        own = f"{correct:.3f} | {confident:.2f}, {both / confident:.3f}"
        cautious = f"{correct_2:.3f} | {confident_2:.2f}, {both_2 / confident_2:.3f}"
        print(f"| {title} | {own} | {cautious} | {held_share:.3f} |", flush=True)


if __name__ == "__main__":
    main()
