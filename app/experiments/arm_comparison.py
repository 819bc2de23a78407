"""Comparison of the arms of an experiment with people, by the same figures as the simulated experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.registry import simulated_platform_names
from app.campaigns import experiment_arms
from app.campaigns.experiment_arms import ArmCampaign
from app.database.tables import items
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.experiments import figures, report
from app.experiments.arm_replay import SHOWN_FIGURES, ArmRecord, BandedArmResult, replay_arm
from app.experiments.figures import Band
from app.experiments.result_tables import write_parquet_rows
from app.experiments.runs import judgments_until_mean_reaches_goal
from app.inference.ground.arrays import Array
from app.inference.ground.jackknife import half_width_of_student_t_band
from app.record import responses
from app.record.campaign_law import convert_judging_responses_to_hits_of_law
from app.record.replay import load_initial_beliefs
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.simulation.crowd import load_or_draw_true_values

TRUTH_COLUMN = "oracle"
ResultsByArm = Mapping[str, BandedArmResult]
MIN_PEOPLE_FOR_BANDS = 6  # people in an arm; the coverage of bands was measured for this number and more
BASELINE_ARM, IMPROVED_ARM = "DA", "EASL"

COUNT_ARM_ANSWERS = text(f"""
    SELECT count(DISTINCT annotator_id) AS people,
           count(DISTINCT annotator_id) FILTER (WHERE a.platform = ANY(:simulated)) AS simulated,
           count(*) AS hits, min(received_at) AS first, max(received_at) AS last
    FROM responses r JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    WHERE r.campaign_id = :campaign AND {COUNTING_RESPONSES_CONDITION}
""")

# People who used the arms' own links may have answered in several.
COUNT_PEOPLE_IN_SEVERAL_ARMS = text("""
    SELECT count(*) FROM (
        SELECT FROM experiment_arms e JOIN annotators a ON a.campaign_id = e.campaign_id
        WHERE e.experiment = :experiment AND a.platform <> ALL(:simulated)
        AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = a.campaign_id AND r.annotator_id = a.id)
        GROUP BY a.platform, a.worker_id HAVING count(*) > 1
    ) AS several
""")


@dataclass(frozen=True)
class AnsweredArm:
    """An arm with its answers.

    Attributes:
        name: Name of the arm.
        answered: How many people answered, and when.
        record: Their HITs.
        names: Names of the items, (N,).

    """

    name: str
    campaign: Campaign
    answered: Row[Any]
    record: ArmRecord
    names: Sequence[str]

    @property
    def judgments(self) -> float:
        """Judgments per item."""
        return self.record.judgments / len(self.record.truth)


@dataclass(frozen=True)
class AnsweredExperiment:
    """All answers of an experiment.

    Attributes:
        name: Name of the experiment.
        in_several: Number of people who answered in more than one arm.

    """

    name: str
    arms: Sequence[AnsweredArm]
    in_several: int

    @property
    def checkpoint_count(self) -> int:
        """Number of judgments per item that every arm has."""
        return min(arm.record.checkpoint_count for arm in self.arms)


async def load_comparable_arms_of_experiment(connection: AsyncConnection, experiment: str) -> AnsweredExperiment:
    """Load the record of all arms. The connection must come from `open_snapshot`.

    Raises `NotFound` (`experiment_not_found`), `Conflict` (`not_launched`, `items_differ`), and `Invalid` for items
    without true values.
    """
    arms = [
        await load_arm_record_or_refuse_draft(connection, row)
        for row in await experiment_arms.load_experiment_arms_or_refuse(connection, experiment)
    ]
    if any(arm.names != arms[0].names for arm in arms):
        raise Conflict(
            f"The arms of “{experiment}” no longer have the same items, so they cannot be compared.",
            code="items_differ",
        )
    people_in_several = await connection.execute(
        COUNT_PEOPLE_IN_SEVERAL_ARMS, {"experiment": experiment, "simulated": simulated_platform_names()}
    )
    return AnsweredExperiment(experiment, arms, people_in_several.scalar_one())


async def load_arm_record_or_refuse_draft(connection: AsyncConnection, campaign: ArmCampaign) -> AnsweredArm:
    """Load the record of an arm. Raises `Conflict` (`not_launched`) for a draft, which has no posteriors yet."""
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft. Launch all arms first.", code="not_launched")
    truth = await load_or_draw_true_values(connection, campaign.id, TRUTH_COLUMN, np.random.default_rng())
    answer_counts = await connection.execute(
        COUNT_ARM_ANSWERS, {"campaign": campaign.id, "simulated": simulated_platform_names()}
    )
    shown = select(items.c.shown).where(items.c.campaign_id == campaign.id).order_by(items.c.number)
    names = [*await connection.scalars(shown)]
    (criterion,) = campaign.criteria
    hits = convert_judging_responses_to_hits_of_law(
        criterion, await responses.load_counted_responses(connection, campaign.id)
    )
    record = ArmRecord(criterion.law, await load_initial_beliefs(connection, criterion), hits, truth)
    return AnsweredArm(campaign.arm, campaign, answer_counts.one(), record, names)


def write_arm_comparison_report(experiment: AnsweredExperiment, folder: Path, command: str, *, now: datetime) -> Path:
    """Write figures, tables and the report, and return the file of the report."""
    results = (
        {arm.name: replay_arm(arm.record, experiment.checkpoint_count) for arm in experiment.arms}
        if experiment.checkpoint_count
        else {}
    )
    context = plot_arm_figures_and_build_context(experiment, results, folder) if results else {}
    path = folder / f"{experiment.name}.md"
    report.write_report(
        path, "people.md", command=command, now=now, few=MIN_PEOPLE_FOR_BANDS, of=experiment, courses=results, **context
    )
    return path


def plot_arm_figures_and_build_context(
    experiment: AnsweredExperiment, results: ResultsByArm, folder: Path
) -> dict[str, Any]:
    """Write figures and tables of the arms, and return the context of the report's page."""
    name, truth = experiment.name, experiment.arms[0].record.truth
    checkpoints = [*range(1, experiment.checkpoint_count + 1)]
    bands = {figure: {arm: result.band(figure) for arm, result in results.items()} for figure in SHOWN_FIGURES}
    for figure, y_title in report.FIGURE_TITLES if len(checkpoints) > 1 else ():  # one checkpoint makes no curve
        figures.plot_bands(
            folder / f"{name}-{figure}.svg", checkpoints, bands[figure], x_title=report.PER_ITEM_AXIS, y_title=y_title
        )
    scores_by_title = {"Truth": truth} | {arm: result.score for arm, result in results.items()}
    figures.plot_score_histograms(
        folder / f"{name}-histograms.svg", {title: scores[None] for title, scores in scores_by_title.items()}
    )
    write_comparison_tables(experiment, results, folder)
    names = experiment.arms[0].names
    return {
        "rows": {
            figure: [[format_band(band, k) for band in bands_by_arm.values()] for k, _ in enumerate(checkpoints)]
            for figure, bands_by_arm in bands.items()
        },
        "ranges": [
            (title, report.mean_texts_of_low_high_and_deviation(scores[None]))
            for title, scores in scores_by_title.items()
        ],
        "some": [
            [names[k], *(f"{100 * scores[k]:.1f}" for scores in scores_by_title.values())]
            for k in report.item_numbers_evenly_spaced_by_truth(truth)
        ],
        "gains": table_rows_of_easl_gain(results, checkpoints),
    }


def format_band(band: Band, checkpoint: int) -> str:
    """Format a figure at a checkpoint, with its band if there is one."""
    middle, low, high = (float(line[checkpoint]) for line in band)
    return f"{middle:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def table_rows_of_easl_gain(results: ResultsByArm, checkpoints: Sequence[int]) -> list[list[str]]:
    """Return at each checkpoint how much better EASL is than direct assessment, and how many judgments EASL needs to
    match it.

    Empty if one of the two arms was deleted.
    """
    if not {BASELINE_ARM, IMPROVED_ARM} <= results.keys():
        return []
    base, gaining = results[BASELINE_ARM], results[IMPROVED_ARM]
    goals, values = base.figures["spearman"], gaining.figures["spearman"]
    error = np.hypot(
        base.standard_errors_at_each_checkpoint("spearman"), gaining.standard_errors_at_each_checkpoint("spearman")
    )
    half_width = half_width_of_student_t_band(error, np.minimum(base.people, gaining.people))
    better = Band(values - goals, values - goals - half_width, values - goals + half_width)
    return [
        [
            format_band(better, k),
            format_judgment_count_reaching_goal(checkpoints, values, float(goals[k])),
            str(report.PAPER_GAIN.needed.get(judgments, "")),
        ]
        for k, judgments in enumerate(checkpoints)
    ]


def format_judgment_count_reaching_goal(checkpoints: Sequence[int], values: Array, goal: float) -> str:
    """Format the number of judgments at which the values reach the goal, as far as all arms went."""
    return report.format_judgment_count_or_more_than(
        judgments_until_mean_reaches_goal(checkpoints, values[None], goal), checkpoints[-1]
    )


def write_comparison_tables(experiment: AnsweredExperiment, results: ResultsByArm, folder: Path) -> None:
    """Write one table by arm and checkpoint, and one by arm and item at the last checkpoint."""
    metadata = {"experiment": experiment.name, "campaigns": " ".join(arm.campaign.slug for arm in experiment.arms)}
    checkpoint_rows = [
        {"arm": arm, "judgments": checkpoint + 1}
        | {name: float(line[checkpoint]) for name, line in figure_and_band_columns_by_name(result).items()}
        for arm, result in results.items()
        for checkpoint in range(experiment.checkpoint_count)
    ]
    item_rows = [
        {"arm": arm.name, "item": item, "truth": float(true), "score": float(score)}
        for arm in experiment.arms
        for item, true, score in zip(arm.names, arm.record.truth, results[arm.name].score, strict=True)
    ]
    write_parquet_rows(folder / f"{experiment.name}.parquet", checkpoint_rows, metadata)
    write_parquet_rows(folder / f"{experiment.name}-scores.parquet", item_rows, metadata)


def figure_and_band_columns_by_name(result: BandedArmResult) -> dict[str, Array]:
    """Return the columns of an arm: each figure and the ends of its band, (checkpoints,)."""
    ends = ("", "_low", "_high")
    return {figure + end: line for figure in SHOWN_FIGURES for end, line in zip(ends, result.band(figure), strict=True)}
