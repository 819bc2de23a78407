"""How far forecasts of a sample are from those of all items: `python -m benchmarks.forecasts_of_samples [FORECASTS]`.

By default 4 of each. Drafts of 2,000 items, with HITs of 5, by annotators like those of the translations et-en, are
forecast as the page *Plan* does for large campaigns, and with all items. The table shows how many judgments per item
the forecast says, as the mean over forecasts of their medians, the ends of their bands, and the seconds of one
processor that a run took.
"""

import sys
import time
from functools import partial
from typing import NamedTuple

import numpy as np

from app.goals.estimates import GoalEvidence
from app.inference.ground.arrays import Array
from app.inference.online.laws import ONLINE_LAWS
from app.planning.forecast import DEFAULT_POPULATION
from app.planning.goal_simulation import UNLIMITED_JUDGMENTS, forecast_goal
from app.simulation.annotators import POPULATIONS
from benchmarks.annotator_aware import a_process_per_core
from benchmarks.campaign_of import campaign_of

ITEMS, RUNS = 2_000, 5
RULE_FOR = {"best": "best", "threshold": "threshold", "intervals": "scores", "halves": "scores"}


class Row(NamedTuple):
    """A goal, and how many items are simulated."""

    goal: str
    best: int
    simulated: int


GOALS = (("intervals", 0), ("halves", 0), ("best", 100), ("best", 4), ("threshold", 0))
ROWS = tuple(Row(goal, best, simulated) for goal, best in GOALS for simulated in (1_000, ITEMS))


def planned(row: Row, seed: int) -> Array:
    """Median and band in judgments per item, and seconds a run."""
    begun = time.process_time()
    goal = {"goal": row.goal, "when_reached": "tell", "goal_percent": 95, "goal_within": 10}
    goal |= {"goal_width": 10, "goal_correlation": 0.9}
    asked = {
        "rule": RULE_FOR[row.goal],
        "judgments_per_item": UNLIMITED_JUDGMENTS,
        "items_per_hit": 5,
        "fewest_items": 1,
    }
    asked |= {"repeat_items": True, "hits_per_annotator": None}
    line = {"best_items": row.best, "threshold": 50, "gamma": 0.1, "always_shown": [], "hits_per_iteration": None}
    campaign = campaign_of(**goal, **asked, **line, leaders_as_companions=False)
    known = GoalEvidence.empty(ONLINE_LAWS["easl"], ITEMS)
    found = forecast_goal(campaign, known, POPULATIONS[DEFAULT_POPULATION], runs=RUNS, seed=seed, sample=row.simulated)
    return np.array(
        [*(each / ITEMS for each in found.median_and_band_of_judgments_needed), (time.process_time() - begun) / RUNS]
    )


def main() -> None:
    forecasts = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print(f"{forecasts} forecasts each, of {RUNS} runs\n")
    print("| goal | items simulated | judgments per item | seconds a run |")
    print("|---|---|---|---|")
    with a_process_per_core() as pool:
        for row in ROWS:
            middle, low, high, seconds = np.mean(list(pool.map(partial(planned, row), range(forecasts))), axis=0)
            goal = f"best {row.best}" if row.best else row.goal
            print(
                f"| {goal} | {row.simulated:,} | {middle:.1f} ({low:.1f} to {high:.1f}) | {seconds:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
