"""Compare forecasts from a sample of items with forecasts from all items.

Run `python -m benchmarks.forecasts_of_samples [FORECASTS]`; the default is 4 forecasts per row.

Drafts with 2,000 items and HITs of 5 are forecast twice: with 1,000 items, as the page *Plan* does for large campaigns,
and with all items. Annotators are like those of the et-en translations. The table shows the judgments per item that are
forecast (mean over forecasts of the median and of both ends of the band), and the processor seconds of one run.
"""

import sys
import time
from functools import partial
from typing import NamedTuple

import numpy as np

from app.goals.estimates import GoalEvidence
from app.inference.ground.arrays import Array
from app.inference.online.laws import ONLINE_LAWS
from app.planning.forecast_defaults import DEFAULT_POPULATION
from app.planning.goal_simulation import forecast_goal
from app.simulation.annotators import POPULATIONS
from benchmarks.annotator_aware import make_process_pool
from benchmarks.forecasts import make_campaign_with_goal

ITEMS, RUNS = 2_000, 5


class Row(NamedTuple):
    """Forecast settings of a table row.

    Attributes:
        goal: Goal of the campaign.
        best_items: Number of best items to find; 0 for other goals.
        simulated_items: Number of items that are simulated.

    """

    goal: str
    best_items: int
    simulated_items: int


GOALS = (("intervals", 0), ("halves", 0), ("best", 100), ("best", 4), ("threshold", 0))
ROWS = tuple(Row(goal, best, simulated) for goal, best in GOALS for simulated in (1_000, ITEMS))


def forecast_judgments_per_item(row: Row, seed: int) -> Array:
    """Return the median and both ends of the band in judgments per item, and processor seconds per run, (4,)."""
    start = time.process_time()
    campaign = make_campaign_with_goal(row.goal, points=10, best_items=row.best_items)
    evidence = GoalEvidence.empty(ONLINE_LAWS["easl"], ITEMS)
    forecast = forecast_goal(
        campaign, evidence, POPULATIONS[DEFAULT_POPULATION], runs=RUNS, seed=seed, sample=row.simulated_items
    )
    return np.array(
        [
            *(judgments / ITEMS for judgments in forecast.median_and_band_of_judgments_needed),
            (time.process_time() - start) / RUNS,
        ]
    )


def main() -> None:
    forecasts = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print(f"{forecasts} forecasts each, of {RUNS} runs\n")
    print("| goal | items simulated | judgments per item | seconds a run |")
    print("|---|---|---|---|")
    with make_process_pool() as pool:
        for row in ROWS:
            median, low, high, seconds = np.mean(
                list(pool.map(partial(forecast_judgments_per_item, row), range(forecasts))), axis=0
            )
            goal = f"best {row.best_items}" if row.best_items else row.goal
            print(
                f"| {goal} | {row.simulated_items:,} | {median:.1f} ({low:.1f} to {high:.1f}) | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
