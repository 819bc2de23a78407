"""State of a campaign's page that all its viewers share: counts from SQL, the rest from the posteriors in memory."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard import cards, classes, implied, plain_summary
from app.dashboard import halo as halos
from app.dashboard.charts import score_history_of_highest_items
from app.dashboard.goal_texts import goal_position_or_empty_if_slow, goal_sentences_or_empty
from app.dashboard.halo import HaloTexts
from app.dashboard.heatmap import Heatmap, heatmap_row_labels, match_quality_heatmap_of_row_groups
from app.dashboard.history import PosteriorHistory
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.snapshot import (
    COUNT_LEASED_HITS,
    CampaignSnapshot,
    load_campaign_snapshot,
    load_snapshot_updated_to_now,
)
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.scale import MAX_POINTS
from app.errors import pluralize
from app.goals.cut_line import CutLine
from app.goals.progress import Progress
from app.goals.settings import does_rule_ask_by_scores
from app.inference.ground.arrays import Array
from app.inference.online.law import PosteriorFamily
from app.inference.ratings.moderated_means import ModeratedMeans
from app.inference.ratings.shrunken_means import ItemShrinkage
from app.record import pace
from app.record.changes import Watermark, poll_changes
from app.simulation.rehearsal_offer import is_rehearsal_crowd_gone

SCORE_HISTOGRAM_BINS = 20
SAMPLED_INTERVALS = 500
Z95 = 1.959964  # half of a normal distribution's central 95 % interval, in standard deviations
UNCERTAINTY_NOTE = "Uncertainty of the median item after each task."


@dataclass(frozen=True)
class DashboardState:
    """All figures of the page that change while someone watches, ready for the page and for the browser.

    Attributes:
        figures: Numbers and texts, ready for JSON.
        heatmap: Match quality of all pairs; None where items have no scores on a scale.
        intervals: Mean and calibrated interval of each item, on 0 to 1.
        history: Posteriors now and earlier.
        unread_answer_count: Number of answers that are not replayed yet.
        snapshot: What all of these are made from.
        cut_line: Line that the goal draws through the ranking, if any.
        shrinkage: Shrunken mean of each item, for a campaign that asks by scores; None if plain means are right.

    """

    figures: dict[str, Any]
    heatmap: Heatmap | None
    intervals: ModeratedMeans
    history: PosteriorHistory
    unread_answer_count: int
    snapshot: CampaignSnapshot
    cut_line: CutLine | None = None
    shrinkage: ItemShrinkage | None = None

    @cached_property
    def figures_json_text(self) -> str:
        """Figures as JSON; equal figures give equal text."""
        return json.dumps(self.figures, separators=(",", ":"), sort_keys=True)

    @cached_property
    def version(self) -> str:
        """Short hash, the same in every process, so that a client that reconnects anywhere can tell whether it missed a
        state.
        """
        return hashlib.blake2b(self.figures_json_text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class ChangeMarker:
    """Marker that changes when an answer came in, a HIT was leased or expired, the campaign's status or revision
    changed, or a rehearsal lost its crowd or got it back.

    Attributes:
        polls_with_answers: Number of polls in this sequence that found answers.

    """

    status: str
    revision: int
    open_hits: int
    polls_with_answers: int
    crowd_gone: bool
    watermark: Watermark = field(compare=False)


async def load_dashboard_change_marker(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    previous_marker: ChangeMarker | None = None,
    *,
    now: datetime,
) -> ChangeMarker:
    """Load the marker as of now, in 0.3 ms."""
    changes = await poll_changes(
        connection, criterion.campaign.id, previous_marker.watermark if previous_marker else None
    )
    open_hits = (
        await connection.execute(text(COUNT_LEASED_HITS), {"campaign": criterion.campaign.id, "now": now})
    ).scalar_one()
    polls_with_answers = (previous_marker.polls_with_answers if previous_marker else 0) + (
        changes.first_new_seq is not None
    )
    gone = await is_rehearsal_crowd_gone(connection, criterion.campaign)
    return ChangeMarker(
        criterion.campaign.status, changes.watermark.revision, open_hits, polls_with_answers, gone, changes.watermark
    )


async def load_dashboard_state(
    connection: AsyncConnection,
    cache: PosteriorCache,
    replays: IncrementalReplays,
    criterion: Criterion[Campaign],
    *,
    now: datetime,
) -> DashboardState:
    """Load the state of a launched campaign as of now.

    Drawing 100,000 items takes 14 ms, so a thread does it.
    """
    return await asyncio.to_thread(
        build_dashboard_state, await load_campaign_snapshot(connection, cache, replays, criterion, now=now)
    )


async def load_state_updated_to_now(
    connection: AsyncConnection, state: DashboardState, *, now: datetime
) -> DashboardState:
    """Return the state as of now of a campaign whose marker and row are those of `state`.

    Bars and rates move with the clock. Answers are not read again, so this costs the same however many there are.
    """
    snapshot = await load_snapshot_updated_to_now(connection, state.snapshot, now=now)
    return await asyncio.to_thread(build_dashboard_state, snapshot)


def build_dashboard_state(snapshot: CampaignSnapshot) -> DashboardState:
    campaign, law, design = snapshot.campaign, snapshot.criterion.law, snapshot.criterion.design
    family = law.family
    progress, cut = goal_position_or_empty_if_slow(snapshot)
    heatmap = (
        None
        if family.counts_classes
        else match_quality_heatmap_of_row_groups(snapshot.score, snapshot.variance, campaign.gamma)
    )
    built_cards = cards.build_dashboard_cards(snapshot, progress)
    figures = {
        "status": campaign.status,
        "answered": snapshot.hit_count > 0,
        "crowd_gone": snapshot.crowd_gone,
        "cards": asdict(built_cards),
        "summary": plain_summary.summary_sentences(snapshot, built_cards.goal),
        "cut": cut.description_text if cut else "",
        "words": live_sentence_by_name(snapshot, progress),
        "pace": pace_json_fields(snapshot),
        "histogram": score_histogram_json_fields(snapshot),
        "uncertainty": typical_interval_json_fields(snapshot),
        "replaying": max(0, snapshot.hit_count - snapshot.history.answers),
        "unit": design.score_unit(law).unit_settings_for_script,
        "unit_of_means": design.unit.unit_settings_for_script,
        "classes": classes.judged_item_counts_per_leading_label_or_none(design.classes, family, snapshot.history),
        "heatmap": heatmap and heatmap_json_fields(heatmap, snapshot.item_names),
        "course": score_history_of_highest_items(snapshot),
    }
    replayed_answers = min(
        replayed.answers for replayed in (snapshot.history, snapshot.implied, snapshot.halo) if replayed is not None
    )
    unread_answer_count = max(snapshot.unread_answer_count, snapshot.hit_count - replayed_answers)
    shrinkage = snapshot.precision.shrinkage if design.is_ordered and does_rule_ask_by_scores(campaign) else None
    return DashboardState(
        figures, heatmap, snapshot.precision.intervals, snapshot.history, unread_answer_count, snapshot, cut, shrinkage
    )


def heatmap_json_fields(heatmap: Heatmap, item_names: Sequence[str]) -> dict[str, Any]:
    return {
        "labels": heatmap_row_labels(heatmap, item_names),
        "grouped": heatmap.has_grouped_rows,
        "cells": base64.b64encode(heatmap.quality_as_bytes.tobytes()).decode(),
    }


def live_sentence_by_name(snapshot: CampaignSnapshot, progress: Progress | None) -> dict[str, str]:
    """Return the sentences of the page that change with answers."""
    halo_texts = halos.halo_texts(snapshot.halo, snapshot.campaign.criterion_names) if snapshot.halo else HaloTexts()
    return {
        "hits": pluralize(snapshot.hit_count, "task"),
        "held": interval_coverage_sentence_or_empty(*interval_coverage_and_width_ratio_or_nan(snapshot)),
        "simulated": simulated_answers_warning_or_empty(snapshot),
        "implied": implied.sentence_on_skipped_and_contradicted_pairs(snapshot.implied.tally)
        if snapshot.implied
        else "",
        "halo": halo_texts.correlation_text,
        "halo_warning": halo_texts.warning,
        "goal": goal_sentences_or_empty(snapshot, progress),
        "pace_note": pace_note_or_empty(snapshot),
    }


def interval_coverage_and_width_ratio_or_nan(snapshot: CampaignSnapshot) -> tuple[float, float]:
    """Return the share of posterior intervals that hold the mean of all annotators, and their relative width.

    The second number is how many times as wide as the calibrated interval the median posterior interval is. Both are
    NaN while that is not known, and where the two are in other units. For points this is also computed where the law
    reads their order alone: its scores are meant to be on the same scale, and this tells how far off they are.

    Only some items, spread over all, are used: quantiles of a Beta for a million would take seconds.
    """
    law, design = snapshot.criterion.law, snapshot.criterion.design
    family = law.family
    comparable = design.has_same_unit_as_scores_of(law) or design.value_kind == "points"
    if not comparable or snapshot.unread_answer_count or snapshot.history.answers < snapshot.hit_count:
        return np.nan, np.nan
    sampled_items = np.unique(np.linspace(0, len(snapshot.score) - 1, SAMPLED_INTERVALS).astype(np.intp))
    low, high = family.interval(*snapshot.history.state[:, sampled_items])
    return snapshot.precision.intervals.select_items(sampled_items).expected_coverage_and_width_ratio(low, high)


def interval_coverage_sentence_or_empty(covered_share: float, width_ratio: float) -> str:
    if not np.isfinite(covered_share):
        return ""
    width = f"{width_ratio:.1f} times as wide" if f"{width_ratio:.1f}" != "1.0" else "about as wide"
    contain = f"about {100 * covered_share:.0f} % of them contain that mean"
    return f"The thin lines (posterior intervals) are {width}, and {contain}."


def simulated_answers_warning_or_empty(snapshot: CampaignSnapshot) -> str:
    """Warn of answers of `easel simulate`; empty where there are none."""
    if not snapshot.simulated_hit_count or snapshot.campaign.rehearsal_of:  # the page's head says so for rehearsals
        return ""
    hits = pluralize(snapshot.hit_count, "task")
    return f"easel simulate answered {snapshot.simulated_hit_count:,} of {hits}. These answers are not from people."


def pace_note_or_empty(snapshot: CampaignSnapshot) -> str:
    """Return a note on the bars of the pace chart; empty for a campaign that takes no answers."""
    if snapshot.counts.first_at is None:
        imported = "Imported answers have no pace. " if snapshot.hit_count else ""
        return f"{imported}Bars appear with the first answer."
    return "Last 24 h. The pale bar is not complete yet." if snapshot.campaign.status == "running" else ""


def pace_json_fields(snapshot: CampaignSnapshot) -> dict[str, Any]:
    bars = pace.build_bars_of_hits_per_hour(snapshot.hits_by_minute, *snapshot.first_answer_and_now_epoch_seconds)
    return {"start": bars.start_minute * 60, "minutes": bars.bar_minutes, "bars": bars.hits_per_hour}


def score_histogram_json_fields(snapshot: CampaignSnapshot) -> dict[str, Any]:
    low, high = lowest_and_highest_drawn_score(snapshot.criterion.law.family, snapshot.score, snapshot.variance)
    counts, _ = np.histogram(np.clip(snapshot.score, low, high), bins=SCORE_HISTOGRAM_BINS, range=(low, high))
    return {"low": low * MAX_POINTS, "high": high * MAX_POINTS, "counts": counts.tolist()}


def typical_interval_json_fields(snapshot: CampaignSnapshot) -> dict[str, Any]:
    """Return the JSON fields of the uncertainty chart; `behind` is the number of answers not read yet."""
    return {
        "points": response_counts_and_half_widths_in_unit(snapshot),
        "changes": [line.answers for line in snapshot.changes if line.answers is not None],
        "behind": snapshot.unread_answer_count,
        "note": f"Loading answers: {pluralize(snapshot.unread_answer_count, 'task')} left."
        if snapshot.unread_answer_count
        else UNCERTAINTY_NOTE,
    }


def response_counts_and_half_widths_in_unit(snapshot: CampaignSnapshot) -> list[list[float]]:
    """Return [responses, half width] points in the unit of means, without points that the unit cannot express."""
    unit = snapshot.criterion.design.unit
    known = (
        (answers, unit.half_width_or_factor_or_none(places))
        for answers, places in snapshot.precision.response_counts_and_median_half_widths()
    )
    return [[answers, round(value, 2)] for answers, value in known if value is not None]


def lowest_and_highest_drawn_score(family: PosteriorFamily, score: Array, variance: Array) -> tuple[float, float]:
    """Return the limits of the score axis: the support of scores, or, if unbounded, 0 to 1 widened to hold the
    intervals.
    """
    lowest, highest = family.support
    if np.isfinite(lowest) and np.isfinite(highest):
        return lowest, highest
    reach = Z95 * np.sqrt(variance)
    return (
        min(0.0, float(np.floor((score - reach).min() * 10) / 10)),
        max(1.0, float(np.ceil((score + reach).max() * 10) / 10)),
    )
