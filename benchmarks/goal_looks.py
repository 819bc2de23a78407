"""How long it takes to say how near a goal is: `python -m benchmarks.goal_looks`, of 10,000 to 1,000,000 items.

What a look in the background works out from what all judgments add up to, without reading them. Items have 10 judgments
each, and the best 300 and those near the threshold 30 more; how far annotators differ is not the same for all items.
Then how long `easl-aware` takes to fit its scores to judgments, 10 of each item, a third of them at random. The time is
that of the processor, in seconds, with one thread.
"""

import time

import numpy as np

from app.goals.estimates import MAX_FITTED_JUDGMENTS, GoalEvidence
from app.goals.progress import goal_progress_or_none
from app.inference.observations.tally import Tally
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from benchmarks.campaign_of import campaign_of

SIZES = (10_000, 100_000, 1_000_000)
GOALS = ("best", "threshold", "intervals", "halves")
FITTED = (1_000, 5_000, 10_000, MAX_FITTED_JUDGMENTS)  # judgments
EACH, MORE, CONTESTED, BEST = 10, 30, 300, 10


def known(items: int, rng: np.random.Generator) -> ModeratedMeans:
    """The best ones are somewhat better than all others, so the goal is near and no way is short."""
    truth = 0.8 * rng.beta(2, 2, items)
    truth[:BEST] = np.linspace(0.88, 0.97, BEST)
    noise = 0.1 * np.exp(0.5 * rng.standard_normal(items))
    contested = np.r_[np.argsort(-truth)[:CONTESTED], np.argsort(np.abs(truth - 0.5))[:CONTESTED]]
    shown = np.r_[np.repeat(np.arange(items), EACH), np.repeat(contested, MORE)]
    said = np.clip(truth[shown] + noise[shown] * rng.standard_normal(len(shown)), 0, 1)
    return moderated_means_of_tally(
        Tally.empty(items).with_judgments_added(shown, rng.integers(2_000, size=len(shown)), said)
    )


def seconds(goal: str, of: ModeratedMeans) -> float:
    settings = {"goal_percent": 95, "goal_within": 5, "goal_width": 10, "goal_correlation": 0.9}
    campaign = campaign_of(goal=goal, when_reached="tell", best_items=BEST, threshold=50, **settings)
    begun = time.process_time()
    goal_progress_or_none(campaign, of, of.mean)
    return time.process_time() - begun


def fitting(judgments: int) -> float:
    rng = np.random.default_rng(2)
    items, people = judgments // EACH, max(10, judgments // 100)
    shown, who = np.repeat(np.arange(items), EACH), rng.integers(people, size=items * EACH)
    careful = rng.beta(2, 2, items)[shown] + 0.1 * rng.standard_normal(len(shown))
    values = np.where(who % 3, np.clip(careful, 0, 1), rng.random(len(shown)))
    of = GoalEvidence.empty(ONLINE_LAWS["easl-aware"], items).with_judgments_added(shown, who, values)
    begun = time.process_time()
    assert of.estimates_by_law_or_none is not None
    return time.process_time() - begun


def main() -> None:
    print("| items | " + " | ".join(GOALS) + " |\n" + "|---" * (1 + len(GOALS)) + "|")
    for items in SIZES:
        of = known(items, np.random.default_rng(1))
        print(f"| {items:,} | " + " | ".join(f"{seconds(goal, of):.2f}" for goal in GOALS) + " |", flush=True)
    print("\n| judgments | fit |\n|---|---|")
    for judgments in FITTED:
        print(f"| {judgments:,} | {fitting(judgments):.2f} |", flush=True)


if __name__ == "__main__":
    main()
