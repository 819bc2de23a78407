"""Measure how long goal progress takes for 10,000 to 1,000,000 items: `python -m benchmarks.goal_progress_time`.

The first table times what the server does in the background: it computes the progress towards a goal from running
totals, without reading judgments. Each item has 10 judgments; the 300 best items and the 300 closest to the threshold
have 30 more. The noise of judgments differs between items.

The second table times the fit of `easl-aware` to all judgments: 10 per item, a third of them random. All figures are
processor seconds of one thread.
"""

import time

import numpy as np

from app.goals.estimates import MAX_FITTED_JUDGMENTS, GoalEvidence
from app.goals.progress import goal_progress_or_none
from app.inference.observations.tally import Tally
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from benchmarks.unsaved_campaign import make_unsaved_campaign

ITEM_COUNTS = (10_000, 100_000, 1_000_000)
GOALS = ("best", "threshold", "intervals", "halves")
FITTED_JUDGMENTS = (1_000, 5_000, 10_000, MAX_FITTED_JUDGMENTS)  # judgments
JUDGMENTS_PER_ITEM, EXTRA_JUDGMENTS, CONTESTED_ITEMS, BEST_ITEMS = 10, 30, 300, 10


def simulate_means(items: int, rng: np.random.Generator) -> ModeratedMeans:
    """Return the means of simulated judgments.

    The best items are slightly better than all others, so the goal is nearly reached and no computation can stop early.
    """
    true_scores = 0.8 * rng.beta(2, 2, items)
    true_scores[:BEST_ITEMS] = np.linspace(0.88, 0.97, BEST_ITEMS)
    noise = 0.1 * np.exp(0.5 * rng.standard_normal(items))
    contested = np.r_[
        np.argsort(-true_scores)[:CONTESTED_ITEMS], np.argsort(np.abs(true_scores - 0.5))[:CONTESTED_ITEMS]
    ]
    judged_items = np.r_[np.repeat(np.arange(items), JUDGMENTS_PER_ITEM), np.repeat(contested, EXTRA_JUDGMENTS)]
    scores = np.clip(true_scores[judged_items] + noise[judged_items] * rng.standard_normal(len(judged_items)), 0, 1)
    return moderated_means_of_tally(
        Tally.empty(items).with_judgments_added(judged_items, rng.integers(2_000, size=len(judged_items)), scores)
    )


def processor_seconds_of_progress(goal: str, means: ModeratedMeans) -> float:
    """Return the processor seconds of computing a goal's progress."""
    settings = {"goal_percent": 95, "goal_within": 5, "goal_width": 10, "goal_correlation": 0.9}
    campaign = make_unsaved_campaign(goal=goal, when_reached="tell", best_items=BEST_ITEMS, threshold=50, **settings)
    start = time.process_time()
    goal_progress_or_none(campaign, means, means.mean)
    return time.process_time() - start


def processor_seconds_of_fit(judgments: int) -> float:
    """Return the processor seconds of fitting `easl-aware` to simulated judgments."""
    rng = np.random.default_rng(2)
    items, annotators = judgments // JUDGMENTS_PER_ITEM, max(10, judgments // 100)
    judged_items, judging_annotators = (
        np.repeat(np.arange(items), JUDGMENTS_PER_ITEM),
        rng.integers(annotators, size=items * JUDGMENTS_PER_ITEM),
    )
    careful_scores = rng.beta(2, 2, items)[judged_items] + 0.1 * rng.standard_normal(len(judged_items))
    scores = np.where(judging_annotators % 3, np.clip(careful_scores, 0, 1), rng.random(len(judged_items)))
    evidence = GoalEvidence.empty(ONLINE_LAWS["easl-aware"], items).with_judgments_added(
        judged_items, judging_annotators, scores
    )
    start = time.process_time()
    assert evidence.law_estimates_or_none is not None
    return time.process_time() - start


def main() -> None:
    print("| items | " + " | ".join(GOALS) + " |\n" + "|---" * (1 + len(GOALS)) + "|")
    for items in ITEM_COUNTS:
        means = simulate_means(items, np.random.default_rng(1))
        print(
            f"| {items:,} | "
            + " | ".join(f"{processor_seconds_of_progress(goal, means):.2f}" for goal in GOALS)
            + " |",
            flush=True,
        )
    print("\n| judgments | fit |\n|---|---|")
    for judgments in FITTED_JUDGMENTS:
        print(f"| {judgments:,} | {processor_seconds_of_fit(judgments):.2f} |", flush=True)


if __name__ == "__main__":
    main()
