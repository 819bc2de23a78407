"""What people answered in the arms of an experiment, compared as the made-up experiment compares them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import experiment_arms
from app.crowd.registry import simulated_platform_names
from app.database.tables import items
from app.errors import Conflict
from app.experiments import figures, report
from app.experiments.figures import Band
from app.experiments.parquet import write_table
from app.experiments.replayed import SHOWN, ArmRecord, BandedCourse, course
from app.experiments.runs import judgments_for
from app.inference.ground.arrays import Array
from app.inference.ground.jackknife import reach
from app.record import stream
from app.record.law import hits_of, law_of
from app.record.replay import begun
from app.record.stream import COUNTING
from app.simulation.crowd import truth_of

TRUTH = "oracle"  # the column of the items
Courses = Mapping[str, BandedCourse]  # by arm
FEW = 6  # people in an arm; how often bands hold is measured from there on
BASE, GAINING = "DA", "EASL"

ANSWERED = text(f"""
    SELECT count(DISTINCT annotator_id) AS people,
           count(DISTINCT annotator_id) FILTER (WHERE a.platform = ANY(:made_up)) AS made_up,
           count(*) AS hits, min(received_at) AS first, max(received_at) AS last
    FROM responses r JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    WHERE r.campaign_id = :campaign AND {COUNTING}
""")  # noqa: S608  (made of constants)

# Who came by the arms' own links may have answered in several.
IN_SEVERAL = text("""
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
    def looks(self) -> int:
        """How many judgments an item every arm has."""
        return min(arm.record.looks for arm in self.arms)


async def found(connection: AsyncConnection, experiment: str) -> AnsweredExperiment:
    """The record of all arms; give it a `snapshot`.

    Raises `NotFound` (`experiment_not_found`), `Conflict` (`not_launched`, `items_differ`), and `Invalid` for items
    without a truth.
    """
    arms = [await arm_of(connection, row) for row in await experiment_arms.arms_of(connection, experiment)]
    if any(arm.names != arms[0].names for arm in arms):
        raise Conflict(
            f"The arms of “{experiment}” do not ask about the same items any more, so they cannot be compared.",
            code="items_differ",
        )
    several = await connection.execute(IN_SEVERAL, {"experiment": experiment, "made_up": simulated_platform_names()})
    return AnsweredExperiment(experiment, arms, several.scalar_one())


async def arm_of(connection: AsyncConnection, campaign: Row[Any]) -> AnsweredArm:
    """Raises `Conflict` (`not_launched`) for a draft, of which nothing is believed yet."""
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft. Launch all arms first.", code="not_launched")
    truth = await truth_of(connection, campaign.id, TRUTH, np.random.default_rng())
    answered = await connection.execute(ANSWERED, {"campaign": campaign.id, "made_up": simulated_platform_names()})
    shown = select(items.c.shown).where(items.c.campaign_id == campaign.id).order_by(items.c.number)
    names = [*await connection.scalars(shown)]
    hits = hits_of(campaign, await stream.responses(connection, campaign.id))
    record = ArmRecord(law_of(campaign), await begun(connection, campaign), hits, truth)
    return AnsweredArm(campaign.arm, campaign, answered.one(), record, names)


def compare(experiment: AnsweredExperiment, out: Path, command: str, *, now: datetime) -> Path:
    """Write figures, tables and the report; the file of the report."""
    courses = {arm.name: course(arm.record, experiment.looks) for arm in experiment.arms} if experiment.looks else {}
    told = drawn(experiment, courses, out) if courses else {}
    path = out / f"{experiment.name}.md"
    report.write(path, "people.md", command=command, now=now, few=FEW, of=experiment, courses=courses, **told)
    return path


def drawn(experiment: AnsweredExperiment, courses: Courses, out: Path) -> dict[str, Any]:
    """What the page says of the arms' courses; their figures and tables are written."""
    name, looks, truth = experiment.name, [*range(1, experiment.looks + 1)], experiment.arms[0].record.truth
    bands = {figure: {arm: one.band(figure) for arm, one in courses.items()} for figure in SHOWN}
    for figure, y_title in report.SHOWN_AS if len(looks) > 1 else ():  # one look makes no curve
        figures.bands(out / f"{name}-{figure}.svg", looks, bands[figure], x_title=report.AN_ITEM, y_title=y_title)
    shown = {"Truth": truth} | {arm: one.score for arm, one in courses.items()}
    figures.histograms(out / f"{name}-histograms.svg", {title: one[None] for title, one in shown.items()})
    write_tables(experiment, courses, out)
    names = experiment.arms[0].names
    return {
        "rows": {
            figure: [[in_words(band, k) for band in of_arms.values()] for k, _ in enumerate(looks)]
            for figure, of_arms in bands.items()
        },
        "ranges": [(title, report.where(one[None])) for title, one in shown.items()],
        "some": [[names[k], *(f"{100 * one[k]:.1f}" for one in shown.values())] for k in report.evenly(truth)],
        "gains": gains(courses, looks),
    }


def in_words(band: Band, look: int) -> str:
    """A figure at a look; with its band, if there is one."""
    middle, low, high = (float(line[look]) for line in band)
    return f"{middle:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def gains(courses: Courses, looks: Sequence[int]) -> list[list[str]]:
    """At each look by how much EASL is better than direct assessment, and with how many judgments it is as good.

    Nothing where one of them was deleted.
    """
    if not {BASE, GAINING} <= courses.keys():
        return []
    base, gaining = courses[BASE], courses[GAINING]
    goals, values = base.figures["spearman"], gaining.figures["spearman"]
    error = np.hypot(base.error("spearman"), gaining.error("spearman"))
    far = reach(error, np.minimum(base.people, gaining.people))
    better = Band(values - goals, values - goals - far, values - goals + far)
    return [
        [in_words(better, k), as_good(looks, values, float(goals[k])), str(report.GAIN.needed.get(look, ""))]
        for k, look in enumerate(looks)
    ]


def as_good(looks: Sequence[int], values: Array, goal: float) -> str:
    """With how many judgments, as far as all arms went."""
    return report.as_far(judgments_for(looks, values[None], goal), looks[-1])


def write_tables(experiment: AnsweredExperiment, courses: Courses, out: Path) -> None:
    """A row for each arm and look, and one for each arm and item after the last look."""
    about = {"experiment": experiment.name, "campaigns": " ".join(arm.campaign.slug for arm in experiment.arms)}
    by_look = [
        {"arm": arm, "judgments": look + 1} | {name: float(line[look]) for name, line in lines_of(one).items()}
        for arm, one in courses.items()
        for look in range(experiment.looks)
    ]
    by_item = [
        {"arm": arm.name, "item": item, "truth": float(true), "score": float(score)}
        for arm in experiment.arms
        for item, true, score in zip(arm.names, arm.record.truth, courses[arm.name].score, strict=True)
    ]
    write_table(out / f"{experiment.name}.parquet", by_look, about)
    write_table(out / f"{experiment.name}-scores.parquet", by_item, about)


def lines_of(one: BandedCourse) -> dict[str, Array]:
    """The columns of an arm: each figure and the ends of its band, (looks,)."""
    ends = ("", "_low", "_high")
    return {figure + end: line for figure in SHOWN for end, line in zip(ends, one.band(figure), strict=True)}
