"""Snapshot of a campaign for its page, as of one moment: counts from SQL, posteriors from memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.registry import simulated_platform_names
from app.campaigns.item_list import count_simulated_hits
from app.campaigns.totals import (
    average_judgments_per_task,
    costs_of_judgments,
    count_planned_judgments,
    pays_one_reward_per_person,
)
from app.dashboard.halo import HaloState, can_estimate_halo
from app.dashboard.heatmap import MAX_HEATMAP_ROWS
from app.dashboard.history import PosteriorHistory
from app.dashboard.implied import ImpliedState
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.precision import Precision
from app.database.audit_log import load_log_lines_since_launch
from app.database.bulk import fetch_array_by_column_on_driver
from app.database.campaign import gold_and_attention_item_count_sql
from app.database.session import Driver, driver_of
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.inference.ground.arrays import Array, Mask
from app.quality.annotators import JOIN_LEASED_HITS, load_plausible_median_seconds_or_none
from app.record import pace
from app.record.answer_rates import FIRST_ANSWER_TIME_COLUMN, load_hit_count_by_minute
from app.record.campaign import CountedCampaign
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.record.retired import load_retired_item_numbers
from app.selection.rule import Counts, Index, ItemStatus
from app.simulation.rehearsal_offer import is_rehearsal_crowd_gone

MAX_ITEM_NAME_CHARACTERS = 60

COUNT_LEASED_HITS = """
    SELECT count(*) FROM hits WHERE campaign_id = :campaign AND closed_at IS NULL AND leader IS NOT NULL
    AND expires_at > :now"""

LOAD_CAMPAIGN_COUNTS = text(f"""
    SELECT {FIRST_ANSWER_TIME_COLUMN},
           (SELECT count(*) FROM annotators a WHERE a.campaign_id = :campaign
            AND EXISTS (SELECT 1 FROM responses r
                        WHERE r.campaign_id = :campaign AND r.annotator_id = a.id
                        AND {COUNTING_RESPONSES_CONDITION})) AS annotators,
           ({COUNT_LEASED_HITS}) AS open_hits,
           CASE WHEN CAST(:paid AS boolean) THEN
               (SELECT count(*) FROM responses r {JOIN_LEASED_HITS}
                WHERE r.campaign_id = :campaign AND r.replaces IS NULL)
               - (SELECT count(*) FROM annotators a
                  JOIN responses r ON r.campaign_id = a.campaign_id AND r.annotator_id = a.id {JOIN_LEASED_HITS}
                  WHERE a.campaign_id = :campaign AND a.platform = ANY(:unpaid) AND r.replaces IS NULL)
           END AS paid_hits,
           CASE WHEN CAST(:paid_per_person AS boolean) THEN
               (SELECT count(*) FROM annotators a
                WHERE a.campaign_id = :campaign AND a.platform <> ALL(:unpaid)
                AND (CAST(:rehearsal AS boolean)
                     OR EXISTS (SELECT FROM assignments s
                                WHERE s.campaign_id = a.campaign_id AND s.annotator_id = a.id
                                AND s.completed_at IS NOT NULL))
                AND EXISTS (SELECT FROM responses r {JOIN_LEASED_HITS}
                            WHERE r.campaign_id = a.campaign_id AND r.annotator_id = a.id))
           END AS paid_people
""")

LIST_SCORES_OF_CRITERION = """
    SELECT score, variance FROM current_posteriors WHERE campaign_id = $1 AND criterion = $2 ORDER BY number
"""


@dataclass(frozen=True)
class CampaignSnapshot:
    """Data of a campaign by one criterion, as of one moment; arrays are (N,).

    Attributes:
        criterion: The criterion that is shown.
        as_of: The moment, at most the end of the campaign.
        hit_count: Number of HITs that count.
        counts: First answer, number of annotators, open HITs, answered HITs to pay for (None without pay), and people
            who finished and get a reward (None unless the platform pays each person one reward).
        planned_costs: Least and greatest pay for all judgments wanted, once if they are the same; empty if unknown.
        usual_seconds: Median time of an answered HIT; None if unknown.
        simulated_hit_count: Number of HITs that simulated annotators answered.
        hits_by_minute: HITs by minute since 1970.
        check_count: Number of gold and attention items.
        item_names: Names of the items; empty if there are many.
        score: Scores.
        variance: Variances.
        judgments: Numbers of judgments.
        is_gone: Items that left the pool: too many annotators could not judge them, or a researcher retired them.
        is_settled: Items that are released, so no HIT asks about them.
        precision: Precision by the disagreement of annotators.
        history: Posteriors now and earlier.
        implied: Implied pairs; None unless the campaign skips them.
        halo: Halo between criteria; None where it cannot be estimated.
        changes: Changes since the launch, from the audit log.
        crowd_gone: True for a rehearsal whose crowd no process leads any more.

    """

    criterion: Criterion[Campaign]
    as_of: datetime
    hit_count: int
    counts: Row[Any]
    planned_costs: Sequence[float]
    usual_seconds: float | None
    simulated_hit_count: int
    hits_by_minute: dict[int, int]
    check_count: int
    item_names: list[str]
    score: Array
    variance: Array
    judgments: Counts
    is_gone: Mask
    is_settled: Mask
    precision: Precision
    history: PosteriorHistory
    implied: ImpliedState | None
    halo: HaloState | None
    changes: Sequence[Row[Any]]
    crowd_gone: bool

    @property
    def campaign(self) -> Campaign:
        return self.criterion.campaign

    @property
    def judgment_counts_without_always_shown(self) -> Counts:
        """Judgments of the items that are drawn: all but those that every HIT shows."""
        return np.delete(self.judgments, self.campaign.always_shown)

    @property
    def judgments_left_count(self) -> int:
        return int(np.maximum(self.wanted_judgments_of_each_item - self.judgment_counts_without_always_shown, 0).sum())

    @property
    def judgments_wanted(self) -> int:
        return int(self.wanted_judgments_of_each_item.sum())

    @cached_property
    def wanted_judgments_of_each_item(self) -> Counts:
        """Judgments wanted of each drawn item; for items that left the pool or are settled, the judgments that they
        have.
        """
        gone = np.delete(self.is_gone | self.is_settled, self.campaign.always_shown)
        return np.where(gone, self.judgment_counts_without_always_shown, int(self.campaign.judgments_per_item))

    @property
    def judgments_per_task(self) -> float:
        """Number of wanted judgments that a HIT brings on average."""
        return average_judgments_per_task(self.campaign, len(self.score), self.check_count)

    @property
    def unread_answer_count(self) -> int:
        """Number of answers that the calibrated intervals do not include yet."""
        return self.hit_count - self.precision.answers

    @property
    def first_answer_and_now_epoch_seconds(self) -> tuple[float, float]:
        """Times of the first answer and of this moment, in seconds since 1970."""
        now = self.as_of.timestamp()
        return min(self.counts.first_at.timestamp(), now) if self.counts.first_at else now, now

    @property
    def recent_hit_count_and_hourly_rate_or_none(self) -> tuple[int, float] | None:
        return pace.recent_hit_count_and_hits_per_hour_or_none(
            self.hits_by_minute, *self.first_answer_and_now_epoch_seconds
        )


async def load_campaign_snapshot(
    connection: AsyncConnection,
    cache: PosteriorCache,
    replays: IncrementalReplays,
    criterion: Criterion[Campaign],
    *,
    now: datetime,
) -> CampaignSnapshot:
    """Load the snapshot of a launched campaign as of now, by a criterion."""
    as_of = min(now, criterion.campaign.finished_at or now)
    campaign_id = criterion.campaign.id
    # First, so that they are never more than all.
    simulated_hits = await count_simulated_hits(connection, campaign_id)
    count_parameters = {
        "campaign": campaign_id,
        "now": now,
        "paid": bool(criterion.campaign.pay_per_hit),
        "paid_per_person": bool(criterion.campaign.pay_per_hit) and pays_one_reward_per_person(criterion.campaign),
        "rehearsal": criterion.campaign.rehearsal_of
        is not None,  # its crowd does not ask for the page that ends a visit
        "unpaid": [] if criterion.campaign.rehearsal_of else simulated_platform_names(),
    }
    counts = (await connection.execute(LOAD_CAMPAIGN_COUNTS, count_parameters)).one()
    hits_by_minute = await load_hit_count_by_minute(connection, campaign_id, as_of)
    driver = await driver_of(connection)
    index = (await cache.load_current_index(driver, criterion.campaign)).index
    # These are copies: other requests change the originals while a thread draws.
    judgments, status = index.judgments.copy(), index.status.copy()
    score, variance = await load_scores_and_variances(driver, criterion, index)
    names = await load_shortened_item_names(connection, campaign_id) if len(index.score) <= MAX_HEATMAP_ROWS else []
    is_retired = np.isin(np.arange(len(status)), await load_retired_item_numbers(connection, campaign_id))
    precision = await replays.precisions.replay_new_answers_and_return_position(connection, criterion)
    history = (await replays.histories.replay_new_answers_and_return_position(connection, criterion)).state
    skips_implied_pairs = criterion.campaign.implied_asked_percent is not None
    implied_state = (
        (await replays.implied.replay_new_answers_and_return_position(connection, criterion)).state
        if skips_implied_pairs
        else None
    )
    first_criterion = criterion.campaign.criteria[0]
    halo = (
        (await replays.halos.replay_new_answers_and_return_position(connection, first_criterion)).state
        if can_estimate_halo(criterion)
        else None
    )
    check_count = await connection.scalar(select(gold_and_attention_item_count_sql(campaign_id))) or 0
    counted = CountedCampaign.from_columns(
        criterion.campaign.column_values_of_campaign()
        | {"item_count": len(score), "retired_count": int(is_retired.sum()), "check_count": check_count}
    )
    return CampaignSnapshot(
        criterion=criterion,
        as_of=as_of,
        hit_count=precision.state.answers + precision.remaining_response_count,
        counts=counts,
        planned_costs=costs_of_judgments(counted, count_planned_judgments(counted)),
        usual_seconds=await load_plausible_median_seconds_or_none(connection, campaign_id),
        simulated_hit_count=simulated_hits,
        hits_by_minute=hits_by_minute,
        check_count=check_count,
        item_names=names,
        score=score,
        variance=variance,
        judgments=judgments,
        is_gone=(status & ItemStatus.GONE > 0) | is_retired,
        is_settled=(status & ItemStatus.SETTLED > 0) & ~is_retired,
        precision=precision.state,
        history=history,
        implied=implied_state,
        halo=halo,
        changes=await load_log_lines_since_launch(connection, campaign_id),
        crowd_gone=await is_rehearsal_crowd_gone(connection, criterion.campaign),
    )


async def load_snapshot_updated_to_now(
    connection: AsyncConnection, snapshot: CampaignSnapshot, *, now: datetime
) -> CampaignSnapshot:
    """Return a snapshot as of now, if no answer came in since and the campaign's row is the same."""
    campaign = snapshot.campaign
    changes = await load_log_lines_since_launch(connection, campaign.id)
    return replace(snapshot, as_of=min(now, campaign.finished_at or now), changes=changes)


async def load_scores_and_variances(
    connection: Driver, criterion: Criterion[Campaign], index: Index
) -> tuple[Array, Array]:
    """Load score and variance of each item, (N,) each.

    Without criteria these are the ones that select items; with several, those of the criterion by which it is read.
    """
    if not criterion.campaign.has_criteria:
        return index.score.copy(), index.variance.copy()
    columns = await fetch_array_by_column_on_driver(
        connection, LIST_SCORES_OF_CRITERION, (criterion.campaign.id, criterion.number), score="f8", variance="f8"
    )
    item_count = len(index.score)  # an item may have joined since
    return columns["score"][:item_count], columns["variance"][:item_count]


async def load_shortened_item_names(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """Load the names of a small campaign's items, by number."""
    statement = select(items.c.shown).where(items.c.campaign_id == campaign_id).order_by(items.c.number)
    return [shorten_to_one_line_name(shown) for shown in await connection.scalars(statement)]


def shorten_to_one_line_name(full_name: str) -> str:
    line = " ".join(full_name.split())
    return line if len(line) <= MAX_ITEM_NAME_CHARACTERS else line[: MAX_ITEM_NAME_CHARACTERS - 1] + "…"
