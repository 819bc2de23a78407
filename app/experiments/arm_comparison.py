"""What people answered in the arms of an experiment, compared as the made-up experiment compares them."""

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
from app.database.tables import items
from app.errors import Conflict
from app.experiments import figures, report
from app.experiments.arm_replay import SHOWN_FIGURES, ArmRecord, BandedArmResult, replay_arm
from app.experiments.figures import Band
from app.experiments.result_tables import write_parquet_rows
from app.experiments.runs import judgments_to_reach
from app.inference.ground.arrays import Array
from app.inference.ground.jackknife import band_half_width
from app.record import responses
from app.record.campaign_law import law_hits, law_of
from app.record.replay import initial_beliefs
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.simulation.crowd import load_true_values

TRUTH_COLUMN = "oracle"  # the column of the items
ResultsByArm = Mapping[str, BandedArmResult]  # by arm
MIN_PEOPLE_FOR_BANDS = 6  # people in an arm; how often bands hold is measured from there on
BASELINE_ARM, IMPROVED_ARM = "DA", "EASL"

COUNT_ARM_ANSWERS = text(f"""
    SELECT count(DISTINCT annotator_id) AS people,
           count(DISTINCT annotator_id) FILTER (WHERE a.platform = ANY(:made_up)) AS made_up,
           count(*) AS hits, min(received_at) AS first, max(received_at) AS last
    FROM responses r JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    WHERE r.campaign_id = :campaign AND {COUNTING_RESPONSES_CONDITION}
""")  # noqa: S608  (made of constants)

# Who came by the arms' own links may have answered in several.
COUNT_PEOPLE_IN_SEVERAL_ARMS = text("""
    SELECT count(*) FROM (
        SELECT FROM experiment_arms e JOIN annotators a ON a.campaign_id = e.campaign_id
        WHERE e.experiment = :experiment AND a.platform <> ALL(:made_up)
        AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = a.campaign_id AND r.annotator_id = a.id)
        GROUP BY a.platform, a.worker_id HAVING count(*) > 1
    ) AS several
""")


@dataclass(frozen=True)
class AnsweredArm:
    """An arm, who answered in it and when, and what they answered. names: of the items, (N,)."""

    name: str
    campaign: Row[Any]
    answered: Row[Any]
    record: ArmRecord
    names: Sequence[str]

    @property
    def judgments(self) -> float:
        """An item."""
        return self.record.judgments / len(self.record.truth)


@dataclass(frozen=True)
class AnsweredExperiment:
    """All that an experiment's record holds. in_several: how many people answered in more than one arm."""

    name: str
    arms: Sequence[AnsweredArm]
    in_several: int

    @property
    def checkpoint_count(self) -> int:
        """How many judgments an item every arm has."""
        return min(arm.record.checkpoint_count for arm in self.arms)


async def load_answered_experiment(connection: AsyncConnection, experiment: str) -> AnsweredExperiment:
    """The record of all arms; give it a `snapshot`.

    Raises `NotFound` (`experiment_not_found`), `Conflict` (`not_launched`, `items_differ`), and `Invalid` for items
    without a truth.
    """
    arms = [
        await load_answered_arm(connection, row)
        for row in await experiment_arms.load_experiment_arms(connection, experiment)
    ]
    if any(arm.names != arms[0].names for arm in arms):
        raise Conflict(
            f"The arms of “{experiment}” do not ask about the same items any more, so they cannot be compared.",
            code="items_differ",
        )
    people_in_several = await connection.execute(
        COUNT_PEOPLE_IN_SEVERAL_ARMS, {"experiment": experiment, "made_up": simulated_platform_names()}
    )
    return AnsweredExperiment(experiment, arms, people_in_several.scalar_one())


async def load_answered_arm(connection: AsyncConnection, campaign: Row[Any]) -> AnsweredArm:
    """Raises `Conflict` (`not_launched`) for a draft, of which nothing is believed yet."""
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft. Launch all arms first.", code="not_launched")
    truth = await load_true_values(connection, campaign.id, TRUTH_COLUMN, np.random.default_rng())
    answer_counts = await connection.execute(
        COUNT_ARM_ANSWERS, {"campaign": campaign.id, "made_up": simulated_platform_names()}
    )
    shown = select(items.c.shown).where(items.c.campaign_id == campaign.id).order_by(items.c.number)
    names = [*await connection.scalars(shown)]
    hits = law_hits(campaign, await responses.load_responses(connection, campaign.id))
    record = ArmRecord(law_of(campaign), await initial_beliefs(connection, campaign), hits, truth)
    return AnsweredArm(campaign.arm, campaign, answer_counts.one(), record, names)


def write_arm_comparison(experiment: AnsweredExperiment, folder: Path, command: str, *, now: datetime) -> Path:
    """Write figures, tables and the report; the file of the report."""
    courses = (
        {arm.name: replay_arm(arm.record, experiment.checkpoint_count) for arm in experiment.arms}
        if experiment.checkpoint_count
        else {}
    )
    context = draw_comparison(experiment, courses, folder) if courses else {}
    path = folder / f"{experiment.name}.md"
    report.write_report(
        path, "people.md", command=command, now=now, few=MIN_PEOPLE_FOR_BANDS, of=experiment, courses=courses, **context
    )
    return path


def draw_comparison(experiment: AnsweredExperiment, courses: ResultsByArm, folder: Path) -> dict[str, Any]:
    """What the page says of the arms' courses; their figures and tables are written."""
    name, looks, truth = experiment.name, [*range(1, experiment.checkpoint_count + 1)], experiment.arms[0].record.truth
    bands = {figure: {arm: one.band(figure) for arm, one in courses.items()} for figure in SHOWN_FIGURES}
    for figure, y_title in report.FIGURE_TITLES if len(looks) > 1 else ():  # one look makes no curve
        figures.plot_bands(
            folder / f"{name}-{figure}.svg", looks, bands[figure], x_title=report.PER_ITEM_AXIS, y_title=y_title
        )
    scores_by_title = {"Truth": truth} | {arm: one.score for arm, one in courses.items()}
    figures.plot_histograms(
        folder / f"{name}-histograms.svg", {title: one[None] for title, one in scores_by_title.items()}
    )
    write_comparison_tables(experiment, courses, folder)
    names = experiment.arms[0].names
    return {
        "rows": {
            figure: [[format_band(band, k) for band in of_arms.values()] for k, _ in enumerate(looks)]
            for figure, of_arms in bands.items()
        },
        "ranges": [(title, report.score_range_texts(one[None])) for title, one in scores_by_title.items()],
        "some": [
            [names[k], *(f"{100 * one[k]:.1f}" for one in scores_by_title.values())]
            for k in report.evenly_spaced_items(truth)
        ],
        "gains": easl_gain_rows(courses, looks),
    }


def format_band(band: Band, checkpoint: int) -> str:
    """A figure at a look; with its band, if there is one."""
    middle, low, high = (float(line[checkpoint]) for line in band)
    return f"{middle:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def easl_gain_rows(courses: ResultsByArm, checkpoints: Sequence[int]) -> list[list[str]]:
    """At each look by how much EASL is better than direct assessment, and with how many judgments it is as good.

    Nothing where one of them was deleted.
    """
    if not {BASELINE_ARM, IMPROVED_ARM} <= courses.keys():
        return []
    base, gaining = courses[BASELINE_ARM], courses[IMPROVED_ARM]
    goals, values = base.figures["spearman"], gaining.figures["spearman"]
    error = np.hypot(base.standard_error_of("spearman"), gaining.standard_error_of("spearman"))
    half_width = band_half_width(error, np.minimum(base.people, gaining.people))
    better = Band(values - goals, values - goals - half_width, values - goals + half_width)
    return [
        [
            format_band(better, k),
            format_judgments_to_match(checkpoints, values, float(goals[k])),
            str(report.PAPER_GAIN.needed.get(look, "")),
        ]
        for k, look in enumerate(checkpoints)
    ]


def format_judgments_to_match(checkpoints: Sequence[int], values: Array, goal: float) -> str:
    """With how many judgments, as far as all arms went."""
    return report.format_judgment_count(judgments_to_reach(checkpoints, values[None], goal), checkpoints[-1])


def write_comparison_tables(experiment: AnsweredExperiment, courses: ResultsByArm, folder: Path) -> None:
    """A row for each arm and look, and one for each arm and item after the last look."""
    metadata = {"experiment": experiment.name, "campaigns": " ".join(arm.campaign.slug for arm in experiment.arms)}
    checkpoint_rows = [
        {"arm": arm, "judgments": look + 1} | {name: float(line[look]) for name, line in band_columns(one).items()}
        for arm, one in courses.items()
        for look in range(experiment.checkpoint_count)
    ]
    item_rows = [
        {"arm": arm.name, "item": item, "truth": float(true), "score": float(score)}
        for arm in experiment.arms
        for item, true, score in zip(arm.names, arm.record.truth, courses[arm.name].score, strict=True)
    ]
    write_parquet_rows(folder / f"{experiment.name}.parquet", checkpoint_rows, metadata)
    write_parquet_rows(folder / f"{experiment.name}-scores.parquet", item_rows, metadata)


def band_columns(result: BandedArmResult) -> dict[str, Array]:
    """The columns of an arm: each figure and the ends of its band, (looks,)."""
    ends = ("", "_low", "_high")
    return {figure + end: line for figure in SHOWN_FIGURES for end, line in zip(ends, result.band(figure), strict=True)}
