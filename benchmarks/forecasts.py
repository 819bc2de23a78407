"""How often campaigns need what was forecast: `python -m benchmarks.forecasts [CAMPAIGNS [LAW]]`.

By default 50 campaigns of each row, and both laws. They are campaigns in memory of 25 items, with HITs of 5, forecast
as the page *Plan* does, told how many annotators there are in all: before the first answer, by how these are, or after
2 judgments of each item, by what these tell. Then they go on until their goal is reached, at which they look as often
as the forecast does: under `easl` with 200 annotators, and under `easl-aware`, which measures two of the goals by
itself, with 20, of whom none or 15 % answer at random. For each goal the table shows in how many of the campaigns that
was within the band of the forecast, below it and above it; and by how much the median of the forecast was off, as the
median over campaigns of its ratio to what was needed, with nine of ten of them.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from app.designs.campaign import Campaign
from app.goals.estimates import GoalEvidence
from app.goals.progress import goal_progress_or_none
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.planning.forecast import DEFAULT_FORECAST_RUNS
from app.planning.goal_simulation import MAX_NEW_JUDGMENTS_PER_ITEM, UNLIMITED_JUDGMENTS, forecast_goal
from app.simulation.annotators import HabitAnnotators, Population
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import a_process_per_core
from benchmarks.campaign_of import campaign_of

ITEMS, N = 25, 5
PEOPLE = Population(bias_sd=0.05, noise=0.12)
RULE_FOR = {"best": "best", "threshold": "threshold", "intervals": "scores", "halves": "scores"}
BEFORE = (0, 2)  # judgments of each item, when the forecast is made

Known = TypeVar("Known", Tally, GoalEvidence)


class Row(NamedTuple):
    """A goal, how many judgments each item had when it was planned, the law, how many annotators there are, and which
    share of them answers at random.
    """

    goal: str
    before: int
    law: str = "easl"
    annotators: int = 200
    at_random: float = 0.0


AWARE = "easl-aware", 20
ROWS = (
    *(Row(goal, before) for before in BEFORE for goal in RULE_FOR),
    *(Row(goal, k, *AWARE, share) for share in (0, 0.15) for k in BEFORE for goal in ("best", "intervals")),
)


class Planned(NamedTuple):
    """Judgments from the forecast on until the goal is reached: what was needed, and the forecast's median and band."""

    needed: float
    middle: float
    low: float
    high: float


def planned(row: Row, seed: int) -> Planned:
    """One campaign, whose items are spread over the scale."""
    rng = np.random.default_rng([seed, 1])
    crowd = replace(PEOPLE, careless={"random": row.at_random})
    people = HabitAnnotators(crowd.draw_habits(row.annotators, rng), rng.beta(2, 2, ITEMS))
    campaign = settings_of(row)
    mine = SimulatedCampaign(
        campaign.rule, ONLINE_LAWS[row.law], campaign.selection_settings, LawParameters(), ITEMS, rng
    )
    for _ in range(row.before):
        mine.judge_each_item_once(people)
    known = with_answers(GoalEvidence.empty(mine.law, ITEMS), mine.hits)
    found = forecast_goal(campaign, known, crowd, runs=DEFAULT_FORECAST_RUNS, seed=seed, annotator_count=row.annotators)
    return Planned(
        needed(campaign, mine, people, known, found.checkpoints.tolist()), *found.median_and_band_of_judgments_needed
    )


def settings_of(row: Row) -> Campaign:
    """The row of a campaign with this goal."""
    goal = {
        "goal": row.goal,
        "when_reached": "tell",
        "goal_percent": 95,
        "goal_within": 8,
        "goal_width": 8,
        "goal_correlation": 0.9,
    }
    asked = {
        "rule": RULE_FOR[row.goal],
        "judgments_per_item": UNLIMITED_JUDGMENTS,
        "items_per_hit": N,
        "fewest_items": 1,
    }
    asked |= {"repeat_items": True, "hits_per_annotator": None}
    line = {"best_items": 4, "threshold": 50, "gamma": 0.1, "always_shown": [], "hits_per_iteration": None}
    return campaign_of(**goal, **asked, **line, leaders_as_companions=False)


def needed(
    campaign: Any, mine: SimulatedCampaign, people: HabitAnnotators, known: GoalEvidence, looks: list[int]
) -> float:
    """Infinite where a campaign does not get there in the time of a forecast."""
    hits = mine.iterate_answered_hits(people)
    more = 0
    for look in looks:
        new: list[AnsweredHit] = []
        while more < look:
            new.append(next(hits))
            more += len(new[-1].items)
        known = with_answers(known, new)
        measured = known.goal_estimates(campaign, moderated_means_of_tally(known.tally))
        found = goal_progress_or_none(campaign, measured.estimates, mine.score, measured.source)
        if found is not None and found.is_reached:
            return look
    return np.inf


def with_answers(known: Known, hits: Sequence[AnsweredHit]) -> Known:
    """With these answers too."""
    items = [item for hit in hits for item in hit.items]
    who = [hit.annotator for hit in hits for _ in hit.items]
    return known.with_judgments_added(items, who, [value for hit in hits for value in hit.values])


def line_of(row: Row, found: list[Planned]) -> str:
    """Rows of a table."""
    needs, middle, low, high = np.array(found).T
    within = (low <= needs) & (needs <= high)
    told = np.isfinite(needs) & np.isfinite(middle) & (needs > 0)
    ratio = np.percentile(middle[told] / needs[told], (50, 5, 95)) if told.any() else np.full(3, np.nan)
    where = f"{within.sum()} | {(needs < low).sum()} | {(needs > high).sum()}"
    needs_an_item = np.median(needs) / ITEMS
    off = f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"
    return f"| {row.law} | {row.at_random:.0%} | {row.before} | {row.goal} | {where} | {needs_an_item:.1f} | {off} |"


def rows_of(law: str | None) -> list[Row]:
    """Those of a law, or all. Ends the program where no row has that law."""
    rows = [row for row in ROWS if law in {None, row.law}]
    return rows or sys.exit(f"There are rows of {' and '.join(sorted({row.law for row in ROWS}))}, not of {law}.")


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rows = rows_of(sys.argv[2] if len(sys.argv) > 2 else None)
    print(
        f"{campaigns} campaigns each, {DEFAULT_FORECAST_RUNS} runs a forecast, "
        f"up to {MAX_NEW_JUDGMENTS_PER_ITEM} judgments per item\n"
    )
    print("| law | at random | judgments before | goal | within | below | above | needed per item | plan / needed |")
    print("|---|---|---|---|---|---|---|---|---|")
    with a_process_per_core() as pool:
        for row in rows:
            print(line_of(row, list(pool.map(partial(planned, row), range(campaigns)))), flush=True)


if __name__ == "__main__":
    main()
