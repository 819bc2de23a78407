"""Measure how often campaigns need what was forecast: `python -m benchmarks.forecasts [CAMPAIGNS [LAW]]`.

The default is 50 campaigns per row, and both laws. Simulated campaigns have 25 items and HITs of 5. They are forecast
as on the page *Plan*, with the number of annotators known: before the first answer, from the true population, or after
2 judgments per item, from these answers. Then each campaign continues until its goal is reached, which is checked as
often as in the forecast. `easl` has 200 annotators. `easl-aware`, which measures two of the goals itself, has 20; in
half of its rows 15 % of these answer at random.

For each goal the table shows how many campaigns needed a number of judgments within the band of the forecast, below it
and above it; and the ratio of the forecast median to what was needed, as the median over campaigns with a band that
contains 90 % of them.
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
from app.planning.forecast_defaults import DEFAULT_FORECAST_RUNS
from app.planning.goal_simulation import MAX_NEW_JUDGMENTS_PER_ITEM, UNLIMITED_JUDGMENTS, forecast_goal
from app.simulation.annotators import HabitAnnotators, Population
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import judgment_columns, make_process_pool
from benchmarks.unsaved_campaign import make_unsaved_campaign

ITEMS, ITEMS_PER_HIT = 25, 5
POPULATION = Population(bias_sd=0.05, noise=0.12)
RULES_BY_GOAL = {"best": "best", "threshold": "threshold", "intervals": "scores", "halves": "scores"}
JUDGMENTS_BEFORE_FORECAST = (0, 2)  # of each item

Evidence = TypeVar("Evidence", Tally, GoalEvidence)


class Row(NamedTuple):
    """Settings of a table row.

    Attributes:
        goal: Goal of the campaign.
        judgments_before: Judgments of each item at the time of the forecast.
        law: Update law.
        annotators: Number of annotators.
        random_share: Share of annotators who answer at random.

    """

    goal: str
    judgments_before: int
    law: str = "easl"
    annotators: int = 200
    random_share: float = 0.0


LAW_AND_ANNOTATORS = "easl-aware", 20
ROWS = (
    *(Row(goal, before) for before in JUDGMENTS_BEFORE_FORECAST for goal in RULES_BY_GOAL),
    *(
        Row(goal, k, *LAW_AND_ANNOTATORS, share)
        for share in (0, 0.15)
        for k in JUDGMENTS_BEFORE_FORECAST
        for goal in ("best", "intervals")
    ),
)


class ForecastAndNeed(NamedTuple):
    """Judgments from the forecast until the goal is reached.

    Attributes:
        needed: Judgments that the campaign needed.
        median: Median of the forecast.
        low: Lower end of the forecast's band.
        high: Upper end of the forecast's band.

    """

    needed: float
    median: float
    low: float
    high: float


def forecast_and_run_campaign(row: Row, seed: int) -> ForecastAndNeed:
    """Simulate a campaign whose items are spread over the scale, forecast it, and continue until its goal is
    reached.
    """
    rng = np.random.default_rng([seed, 1])
    population = replace(POPULATION, careless={"random": row.random_share})
    annotators = HabitAnnotators(population.draw_habits(row.annotators, rng), rng.beta(2, 2, ITEMS))
    campaign = make_campaign_with_goal(row.goal, points=8, best_items=4)
    simulation = SimulatedCampaign(
        campaign.rule, ONLINE_LAWS[row.law], campaign.selection_settings, LawParameters(), ITEMS, rng
    )
    for _ in range(row.judgments_before):
        simulation.judge_each_item_once(annotators)
    evidence = add_answers(GoalEvidence.empty(simulation.law, ITEMS), simulation.hits)
    forecast = forecast_goal(
        campaign, evidence, population, runs=DEFAULT_FORECAST_RUNS, seed=seed, annotator_count=row.annotators
    )
    return ForecastAndNeed(
        judgments_until_goal(campaign, simulation, annotators, evidence, forecast.checkpoints.tolist()),
        *forecast.median_and_band_of_judgments_needed,
    )


def make_campaign_with_goal(goal: str, *, points: int, best_items: int) -> Campaign:
    """Return an unsaved campaign with a goal.

    Args:
        goal: Name of the goal.
        points: Tolerance of the goals `best` and `threshold`, and half width of `intervals`.
        best_items: Number of best items to find.

    """
    return make_unsaved_campaign(
        goal=goal,
        when_reached="tell",
        goal_percent=95,
        goal_within=points,
        goal_width=points,
        goal_correlation=0.9,
        rule=RULES_BY_GOAL[goal],
        judgments_per_item=UNLIMITED_JUDGMENTS,
        items_per_hit=ITEMS_PER_HIT,
        fewest_items=1,
        repeat_items=True,
        hits_per_annotator=None,
        best_items=best_items,
        threshold=50,
        gamma=0.1,
        always_shown=[],
        hits_per_iteration=None,
        leaders_as_companions=False,
    )


def judgments_until_goal(
    campaign: Any,
    simulation: SimulatedCampaign,
    annotators: HabitAnnotators,
    evidence: GoalEvidence,
    checkpoints: list[int],
) -> float:
    """Continue a simulated campaign and return the judgments it needs; infinite if the goal is beyond the
    forecast's range.
    """
    hits = simulation.iterate_hits_while_answering_them(annotators)
    judgment_count = 0
    for checkpoint in checkpoints:
        new_hits: list[AnsweredHit] = []
        while judgment_count < checkpoint:
            new_hits.append(next(hits))
            judgment_count += len(new_hits[-1].items)
        evidence = add_answers(evidence, new_hits)
        estimates = evidence.goal_estimates(campaign, moderated_means_of_tally(evidence.tally))
        progress = goal_progress_or_none(campaign, estimates.estimates, simulation.score, estimates.source)
        if progress is not None and progress.is_reached:
            return checkpoint
    return np.inf


def add_answers(evidence: Evidence, hits: Sequence[AnsweredHit]) -> Evidence:
    """Return the evidence with the judgments of these HITs added."""
    return evidence.with_judgments_added(*judgment_columns(hits))


def format_table_row(row: Row, campaigns: list[ForecastAndNeed]) -> str:
    """Return the table row of all campaigns of a row."""
    needed, median, low, high = np.array(campaigns).T
    within = (low <= needed) & (needed <= high)
    is_comparable = np.isfinite(needed) & np.isfinite(median) & (needed > 0)
    ratio = (
        np.percentile(median[is_comparable] / needed[is_comparable], (50, 5, 95))
        if is_comparable.any()
        else np.full(3, np.nan)
    )
    band_counts = f"{within.sum()} | {(needed < low).sum()} | {(needed > high).sum()}"
    needed_per_item = np.median(needed) / ITEMS
    ratio_text = f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"
    settings = f"{row.law} | {row.random_share:.0%} | {row.judgments_before} | {row.goal}"
    return f"| {settings} | {band_counts} | {needed_per_item:.1f} | {ratio_text} |"


def list_rows_or_exit(law: str | None) -> list[Row]:
    """Return the rows of a law, or all rows; end the program if there are none."""
    rows = [row for row in ROWS if law in {None, row.law}]
    return rows or sys.exit(f"There are rows of {' and '.join(sorted({row.law for row in ROWS}))}, not of {law}.")


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rows = list_rows_or_exit(sys.argv[2] if len(sys.argv) > 2 else None)
    print(
        f"{campaigns} campaigns each, {DEFAULT_FORECAST_RUNS} runs a forecast, "
        f"up to {MAX_NEW_JUDGMENTS_PER_ITEM} judgments per item\n"
    )
    print("| law | at random | judgments before | goal | within | below | above | needed per item | plan / needed |")
    print("|---|---|---|---|---|---|---|---|---|")
    with make_process_pool() as pool:
        for row in rows:
            print(
                format_table_row(row, list(pool.map(partial(forecast_and_run_campaign, row), range(campaigns)))),
                flush=True,
            )


if __name__ == "__main__":
    main()
