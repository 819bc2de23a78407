"""Calibrated intervals of all items of a campaign, from every stored judgment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.load_answers import count_items_of_campaign, stream_judgment_batches
from app.analysis.result_types import columns_to_cell_rows
from app.database.bulk import NumberColumn, fetch_array_by_column_on_driver
from app.database.campaign import is_judgeable_sql
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.designs.scale import MAX_POINTS
from app.designs.unit import Unit
from app.goals.estimates import GoalEstimates, GoalEvidence
from app.goals.progress import goal_item_numbers
from app.inference.ground.arrays import Array, Integers
from app.inference.observations.tally import Tally
from app.inference.online.law import Law
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.inference.ratings.shrunken_means import ItemShrinkage, ShrunkenMeans, fit_item_shrinkage
from app.record.changes import Watermark, poll_changes
from app.record.posterior_storage import present_posteriors_condition_sql
from app.record.retired import is_retired_sql

CALIBRATED_COLUMNS = ("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95")  # for programs
SHRUNKEN_COLUMNS = ("shrunken_score", "shrunken_low_95", "shrunken_high_95")


@dataclass(frozen=True)
class CalibratedEvidence:
    """Evidence from all counted judgments before a watermark, and the intervals that it gives."""

    evidence: GoalEvidence
    intervals: ModeratedMeans
    watermark: Watermark

    @property
    def tally(self) -> Tally:
        """Sums of the judgments."""
        return self.evidence.tally

    @cached_property
    def shrinkage(self) -> ItemShrinkage:
        """Fit of the means and of the prior that shrinks them. The first access takes up to a seventh of a second."""
        return fit_item_shrinkage(self.tally)

    async def fit_shrinkage_in_thread(self) -> ItemShrinkage:
        """Return `shrinkage`. Runs in a thread."""
        return await asyncio.to_thread(lambda: self.shrinkage)

    async def estimate_goal_in_thread(self, campaign: Campaign) -> GoalEstimates:
        """Return the estimates by which the goal is measured. Runs in a thread; the first time takes up to a second."""
        return await asyncio.to_thread(self.evidence.goal_estimates, campaign, self.intervals)


def mean_error_and_interval_columns(intervals: ModeratedMeans) -> tuple[Array, ...]:
    """Return `CALIBRATED_COLUMNS` of these items, NaN where there is no evidence."""
    return intervals.mean, intervals.standard_error, *intervals.interval()


def calibrated_columns_by_name_in_unit(unit: Unit, intervals: ModeratedMeans) -> dict[str, Array]:
    """Return `CALIBRATED_COLUMNS` by name in a unit, without those that the unit does not have."""
    mean, error, *ends = mean_error_and_interval_columns(intervals)
    columns_by_name = {unit.mean_column: unit.shares_to_unit_values(mean)}
    columns_by_name |= (
        {CALIBRATED_COLUMNS[1]: unit.shares_to_unit_values(error)} if unit.can_express_standard_errors else {}
    )
    return columns_by_name | dict(zip(CALIBRATED_COLUMNS[2:], map(unit.shares_to_unit_values, ends), strict=True))


def shrunken_scores_and_interval_ends(shrunken: ShrunkenMeans) -> tuple[Array, Array, Array]:
    """Return `SHRUNKEN_COLUMNS` of these items, NaN where there is no evidence."""
    return shrunken.score, shrunken.low, shrunken.high


def mean_error_and_interval_rows(intervals: ModeratedMeans) -> list[tuple[Any, ...]]:
    """Return each item's `CALIBRATED_COLUMNS`."""
    return columns_to_cell_rows(*mean_error_and_interval_columns(intervals))


async def load_calibrated_evidence_extending_previous(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    previous_evidence: CalibratedEvidence | None = None,
    *,
    law: Law | None = None,
) -> CalibratedEvidence:
    """Return the evidence as of now. Takes some microseconds a judgment, in a thread.

    Args:
        connection: A snapshot.
        criterion: The criterion.
        previous_evidence: Earlier evidence; its judgments are not read again.
        law: Update law that reads the judgments, None for the campaign's own.

    """
    if previous_evidence is not None and not previous_evidence.tally.judgments.any():
        previous_evidence = None  # before the launch there may be more items since
    now, first, since = await poll_changes(
        connection, criterion.campaign.id, previous_evidence.watermark if previous_evidence else None
    )
    if previous_evidence is None or since is None:
        count = await count_items_of_campaign(connection, criterion.campaign.id)
        evidence, after = GoalEvidence.empty(law or criterion.law, count), 0
    elif first is None:
        return replace(previous_evidence, watermark=now)
    else:
        evidence, after = previous_evidence.evidence, first - 1
    design = criterion.design
    if design.is_ordered:  # else there are no means
        async for rows in stream_judgment_batches(connection, criterion, after_seq=after, since_watermark=since):
            evidence = await asyncio.to_thread(evidence_with_judgments_added, evidence, rows, design)
    return CalibratedEvidence(evidence, await asyncio.to_thread(moderated_means_of_tally, evidence.tally), now)


def evidence_with_judgments_added(
    evidence: GoalEvidence, judgments: Mapping[str, NumberColumn], design: Design
) -> GoalEvidence:
    """Return the evidence with these judgments added."""
    return evidence.with_judgments_added(
        judgments["item"],
        judgments["annotator"],
        design.values_to_points(judgments["value"], judgments["seq"]) / MAX_POINTS,
    )


FIND_POSTERIOR_SCORES = f"""
    SELECT CASE WHEN $3::int = 0 THEN p.score ELSE (
               SELECT o.score FROM posteriors o WHERE o.campaign_id = $1 AND o.revision = p.revision
               AND o.criterion = $3 AND o.subject = p.subject
           ) END AS score, CASE WHEN {is_judgeable_sql("p", unjudged_limit_sql="$2::int")} AND NOT
           {is_retired_sql("$1")}
                         THEN 1 ELSE 0 END AS in_pool
    FROM posteriors p WHERE {present_posteriors_condition_sql("$1")} ORDER BY p.subject
"""


async def load_goal_item_numbers_and_scores(connection: AsyncConnection, campaign: Campaign) -> tuple[Integers, Array]:
    """Return the numbers of the items that count for a goal, and their scores by its criterion, (n,)."""
    driver = await driver_of(connection)
    arguments = campaign.id, campaign.unjudged_people, campaign.goal_criterion.number
    columns = await fetch_array_by_column_on_driver(driver, FIND_POSTERIOR_SCORES, arguments, score="f8", in_pool="i4")
    items = goal_item_numbers(campaign, columns["in_pool"] > 0)
    score: Array = columns["score"]
    return items, score[items]
