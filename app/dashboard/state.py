"""State of a campaign's page that all its viewers share: counts from SQL, the rest from the posteriors in memory."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard import classes, implied
from app.dashboard import halo as halos
from app.dashboard.halo import HaloTexts
from app.dashboard.heatmap import Heatmap, heatmap_row_labels, match_quality_heatmap
from app.dashboard.history import PosteriorHistory
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.precision import typical_interval
from app.dashboard.snapshot import COUNT_LEASED_HITS, CampaignSnapshot, load_campaign_snapshot
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.scale import MAX_POINTS
from app.errors import pluralize
from app.goals.progress import (
    Progress,
    describe_goal,
    format_goal_progress,
    goal_progress,
    numbers_of_goal_items,
    stored_goal_text,
)
from app.goals.settings import NO_GOAL
from app.inference.ground.arrays import Array
from app.inference.online.law import PosteriorFamily
from app.inference.ratings.moderated_means import ModeratedMeans
from app.record import pace
from app.record.answer_rates import minutes_since_epoch
from app.record.changes import Watermark, poll_changes
from app.simulation.rehearsal_offer import is_rehearsal_crowd_gone

SCORE_HISTOGRAM_BINS = 20
SAMPLED_INTERVALS = 500
MAX_ITEMS_FOR_QUICK_GOAL = 20_000  # for more, the chance of a goal takes longer than some milliseconds
MAX_JUDGMENTS_FOR_QUICK_FIT = 5_000  # measured by `benchmarks.goal_looks`
Z95 = 1.959964  # half of a normal distribution's central 95 % interval, in standard deviations
UNCERTAINTY_NOTE = "Uncertainty of the median item after each HIT."


@dataclass(frozen=True)
class DashboardState:
    """All figures of the page that change while someone watches, ready for the page and for the browser.

    Attributes:
        figures: Numbers and texts, ready for JSON.
        heatmap: Match quality of all pairs; None where items have no scores on a scale.
        intervals: Mean and calibrated interval of each item, on 0 to 1.
        history: Posteriors now and earlier.
        unread_answers: Number of answers that are not replayed yet.

    """

    figures: dict[str, Any]
    heatmap: Heatmap | None
    intervals: ModeratedMeans
    history: PosteriorHistory
    unread_answers: int

    @cached_property
    def figures_json(self) -> str:
        """Figures as JSON; equal figures give equal text."""
        return json.dumps(self.figures, separators=(",", ":"), sort_keys=True)

    @cached_property
    def version(self) -> str:
        """Short hash, the same in every process, so that a client that reconnects anywhere can tell whether it missed a
        state.
        """
        return hashlib.blake2b(self.figures_json.encode(), digest_size=8).hexdigest()


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


async def load_change_marker(
    connection: AsyncConnection, criterion: Criterion[Campaign], previous: ChangeMarker | None = None, *, now: datetime
) -> ChangeMarker:
    """Load the marker as of now, in 0.3 ms."""
    changes = await poll_changes(connection, criterion.campaign.id, previous.watermark if previous else None)
    open_hits = (
        await connection.execute(text(COUNT_LEASED_HITS), {"campaign": criterion.campaign.id, "now": now})
    ).scalar_one()
    polls_with_answers = (previous.polls_with_answers if previous else 0) + (changes.first_new_seq is not None)
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
        draw_dashboard_state, await load_campaign_snapshot(connection, cache, replays, criterion, now=now)
    )


def draw_dashboard_state(snapshot: CampaignSnapshot) -> DashboardState:
    campaign, law, design = snapshot.campaign, snapshot.criterion.law, snapshot.criterion.design
    family = law.family
    heatmap = (
        None if family.counts_classes else match_quality_heatmap(snapshot.score, snapshot.variance, campaign.gamma)
    )
    figures = {
        "status": campaign.status,
        "answered": snapshot.hit_count > 0,
        "crowd_gone": snapshot.crowd_gone,
        "done": snapshot.judgments_wanted - snapshot.judgments_left,
        "wanted": snapshot.judgments_wanted,
        "done_at": expected_finish_time(snapshot),
        "words": summary_texts(snapshot) | pace_texts(snapshot),
        "pace": pace_figures(snapshot),
        "histogram": histogram_figures(snapshot),
        "uncertainty": uncertainty_figures(snapshot),
        "replaying": max(0, snapshot.hit_count - snapshot.history.answers),
        "unit": design.score_unit(law).drawing_settings,
        "unit_of_means": design.unit.drawing_settings,
        "classes": classes.item_counts_by_leading_label(design.classes, family, snapshot.history),
        "heatmap": heatmap and heatmap_figures(heatmap, snapshot.item_names),
    }
    replayed_answers = min(
        replayed.answers for replayed in (snapshot.history, snapshot.implied, snapshot.halo) if replayed is not None
    )
    unread_answers = max(snapshot.unread_answers, snapshot.hit_count - replayed_answers)
    return DashboardState(figures, heatmap, snapshot.precision.intervals, snapshot.history, unread_answers)


def heatmap_figures(heatmap: Heatmap, item_names: Sequence[str]) -> dict[str, Any]:
    return {
        "labels": heatmap_row_labels(heatmap, item_names),
        "grouped": heatmap.has_grouped_rows,
        "top": heatmap.colour_scale_end,
        "cells": base64.b64encode(heatmap.colour_levels.tobytes()).decode(),
    }


def summary_texts(snapshot: CampaignSnapshot) -> dict[str, str]:
    """Return the texts at the top of the page: how far the campaign is, and how sure its results are."""
    halo_texts = halos.halo_texts(snapshot.halo, snapshot.campaign.criterion_names) if snapshot.halo else HaloTexts()
    return {
        "judgments": f"{snapshot.drawn_judgments.sum():,} of {snapshot.judgments_wanted:,}",
        "wanted": pluralize(snapshot.judgments_wanted, "judgment").partition(" ")[2],
        "hits": pluralize(snapshot.hit_count, "HIT"),
        "open": open_hits_text(snapshot),
        "annotators": pluralize(snapshot.counts.annotators, "annotator"),
        "precision": typical_interval_text(snapshot),
        "held": interval_coverage_text(*interval_coverage(snapshot)),
        "simulated": simulated_answers_warning(snapshot),
        "implied": implied.implied_pairs_text(snapshot.implied.tally) if snapshot.implied else "",
        "halo": halo_texts.correlation_text,
        "halo_warning": halo_texts.warning,
        "goal": goal_text(snapshot),
    }


def goal_text(snapshot: CampaignSnapshot) -> str:
    """Describe how far the campaign is from its goal; for many items only the background check computes that."""
    campaign = snapshot.campaign
    if campaign.goal == NO_GOAL:
        return ""
    progress = quick_goal_progress(snapshot)
    sentences = [
        f"{goal_heading(campaign, progress)}: {describe_goal(campaign)}.",
        f"Now it is {format_goal_progress(campaign, progress)}. {measured_by_text(campaign, progress)}".strip()
        if progress
        else "",
        too_few_annotators_text(snapshot) if progress and not progress.is_reached else "",
        released_items_text(int(snapshot.is_settled.sum())),
    ]
    return " ".join(filter(None, sentences))


def goal_heading(campaign: Campaign, progress: Progress | None) -> str:
    """Return a heading that says whether the goal is reached, or can no longer be reached."""
    if campaign.goal_reached == stored_goal_text(campaign):
        return "Goal reached"
    return "Goal not reached" if campaign.status == "finished" and progress and not progress.is_reached else "Goal"


def quick_goal_progress(snapshot: CampaignSnapshot) -> Progress | None:
    """Compute the progress towards the goal; None where that would take too long for a page."""
    campaign, evidence = snapshot.campaign, snapshot.precision.evidence
    if (
        len(snapshot.score) > MAX_ITEMS_FOR_QUICK_GOAL
        or snapshot.unread_answers
        or evidence.fitted_judgment_count > MAX_JUDGMENTS_FOR_QUICK_FIT
    ):
        return None
    items = numbers_of_goal_items(campaign, ~snapshot.is_gone)
    estimates, measured_by = evidence.goal_estimates(campaign, snapshot.precision.intervals)
    return goal_progress(campaign, estimates.select_items(items), snapshot.score[items], measured_by)


def measured_by_text(campaign: Campaign, progress: Progress) -> str:
    """Describe how the goal is measured, for laws that could measure it."""
    law = campaign.law
    if not law.fit:
        return ""
    by_law = progress.measured_by == law.name
    return f"Measured by the scores of {law.short_title}." if by_law else "Measured by plain means of answers."


def too_few_annotators_text(snapshot: CampaignSnapshot) -> str:
    """Advise more annotators if most judgments repeat one by the same annotator, which says little about others."""
    tally = snapshot.precision.evidence.tally
    if 2 * tally.annotators.sum() >= tally.judgments.sum():
        return ""
    return "Most judgments are repeats by the same person. More annotators would help reach the goal."


def released_items_text(count: int) -> str:
    if count == 0:
        return ""
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return f"{pluralize(count, 'item')} {are} settled, and annotators are no longer asked about {them}."


def open_hits_text(snapshot: CampaignSnapshot) -> str:
    """Return "3 HITs open now", or "took part" for a finished campaign."""
    if snapshot.campaign.status == "finished":
        return "took part"
    return f"{pluralize(snapshot.counts.open_hits, 'HIT')} open now" if snapshot.counts.open_hits else "no HIT open now"


def typical_interval_text(snapshot: CampaignSnapshot) -> str:
    """Describe how well the median item is known: its typical interval, or the share of its likeliest label."""
    design = snapshot.criterion.design
    if design.is_ordered:
        return design.unit.format_spread(typical_interval(snapshot.precision.intervals))
    return f"{100 * np.median(snapshot.score):.0f} %" if snapshot.judgments.any() else "not known yet"


def interval_coverage(snapshot: CampaignSnapshot) -> tuple[float, float]:
    """Return the share of posterior intervals that hold the mean of all annotators, and their relative width.

    The second number is how many times as wide as the calibrated interval the median posterior interval is. Both are
    NaN while that is not known, and where the two are in other units. For points this is also computed where the law
    reads their order alone: its scores are meant to be on the same scale, and this tells how far off they are.

    Only some items, spread over all, are used: quantiles of a Beta for a million would take seconds.
    """
    law, design = snapshot.criterion.law, snapshot.criterion.design
    family = law.family
    comparable = design.has_same_unit_as_scores_of(law) or design.value_kind == "points"
    if not comparable or snapshot.unread_answers or snapshot.history.answers < snapshot.hit_count:
        return np.nan, np.nan
    sampled_items = np.unique(np.linspace(0, len(snapshot.score) - 1, SAMPLED_INTERVALS).astype(np.intp))
    low, high = family.interval(*snapshot.history.state[:, sampled_items])
    return snapshot.precision.intervals.select_items(sampled_items).expected_coverage_and_width_ratio(low, high)


def interval_coverage_text(covered_share: float, width_ratio: float) -> str:
    if not np.isfinite(covered_share):
        return ""
    width = f"{width_ratio:.1f} times as wide" if f"{width_ratio:.1f}" != "1.0" else "about as wide"
    return f"The posterior intervals are {width}, and about {100 * covered_share:.0f} % of them contain that mean."


def simulated_answers_warning(snapshot: CampaignSnapshot) -> str:
    """Warn of answers of `easel simulate`; empty where there are none."""
    if not snapshot.simulated_hit_count or snapshot.campaign.rehearsal_of:  # the page's head says so for rehearsals
        return ""
    hits = pluralize(snapshot.hit_count, "HIT")
    return f"easel simulate answered {snapshot.simulated_hit_count:,} of {hits}. These answers are not from people."


def pace_texts(snapshot: CampaignSnapshot) -> dict[str, str]:
    """Describe the pace and the time left; a campaign that takes no answers, or had none yet, has neither."""
    if snapshot.counts.first_at is None:
        time_left, note = "no answer yet", "Bars appear with the first answer."
        if snapshot.hit_count:
            time_left, note = "no answer on Easel yet", f"Imported answers have no pace. {note}"
        running = snapshot.campaign.status == "running"
        return {"rate": "no pace yet", "left": time_left if running else snapshot.campaign.status, "pace_note": note}
    if snapshot.campaign.status != "running":
        return {"rate": "", "left": snapshot.campaign.status, "pace_note": ""}
    recent = snapshot.recent_rate
    rate = f"{recent[1]:,.0f} HITs/h" if recent else "HITs/h: not known yet"
    return {
        "rate": (f"{rate} before that" if recent and recent[0] else "") if silence_text(snapshot) else rate,
        "left": time_left_text(snapshot),
        "pace_note": "Last 24 h. The pale bar is not complete yet.",
    }


def time_left_text(snapshot: CampaignSnapshot) -> str:
    """Describe the time left of a running campaign, or how long it has had no answers."""
    hours = hours_left(snapshot)
    return silence_text(snapshot) or (f"about {pace.format_hours(hours)} left" if hours else "no estimate yet")


def silence_text(snapshot: CampaignSnapshot) -> str | None:
    """Describe how long no answer has come; None while answers come in."""
    return pace.describe_silence(snapshot.hits_by_minute, minutes_since_epoch(snapshot.as_of))


def hours_left(snapshot: CampaignSnapshot) -> float | None:
    """Hours until all wanted judgments are given, at the recent rate; None where there is too little data."""
    if snapshot.counts.first_at is None or snapshot.campaign.status != "running":
        return None
    span = snapshot.as_of - snapshot.counts.first_at
    return pace.hours_to_completion(
        snapshot.judgments_left, drawn_items_per_hit(snapshot.campaign), snapshot.recent_rate, span
    )


def drawn_items_per_hit(campaign: Campaign) -> int:
    """Return how many items of a HIT get one of the wanted judgments."""
    return int(campaign.items_per_hit) - len(campaign.always_shown)


def expected_finish_time(snapshot: CampaignSnapshot) -> int | None:
    """Expected end, in seconds since 1970, to the minute; None while it is unknown or no answers come."""
    hours = hours_left(snapshot)
    if hours is None or silence_text(snapshot):
        return None
    return minutes_since_epoch(snapshot.as_of + timedelta(hours=hours)) * 60


def pace_figures(snapshot: CampaignSnapshot) -> dict[str, Any]:
    bars = pace.build_hourly_rate_bars(snapshot.hits_by_minute, *snapshot.time_span)
    return {"start": bars.start_minute * 60, "minutes": bars.bar_minutes, "bars": bars.hits_per_hour}


def histogram_figures(snapshot: CampaignSnapshot) -> dict[str, Any]:
    low, high = score_domain(snapshot.criterion.law.family, snapshot.score, snapshot.variance)
    counts, _ = np.histogram(np.clip(snapshot.score, low, high), bins=SCORE_HISTOGRAM_BINS, range=(low, high))
    return {"low": low * MAX_POINTS, "high": high * MAX_POINTS, "counts": counts.tolist()}


def uncertainty_figures(snapshot: CampaignSnapshot) -> dict[str, Any]:
    """Typical interval as answers came in; `behind` is the number of answers not read yet."""
    return {
        "points": typical_interval_curve(snapshot),
        "changes": [line.answers for line in snapshot.changes if line.answers is not None],
        "behind": snapshot.unread_answers,
        "note": f"Loading answers: {pluralize(snapshot.unread_answers, 'HIT')} left."
        if snapshot.unread_answers
        else UNCERTAINTY_NOTE,
    }


def typical_interval_curve(snapshot: CampaignSnapshot) -> list[list[float]]:
    """Typical interval after so many responses, in the unit of means, without points that the unit cannot express."""
    unit = snapshot.criterion.design.unit
    known = ((answers, unit.spread_as_shown(places)) for answers, places in snapshot.precision.interval_points())
    return [[answers, round(value, 2)] for answers, value in known if value is not None]


def score_domain(family: PosteriorFamily, score: Array, variance: Array) -> tuple[float, float]:
    """Scale of the figures: the support of scores; for an unbounded one 0 to 1, widened to hold the intervals."""
    lowest, highest = family.support
    if np.isfinite(lowest) and np.isfinite(highest):
        return lowest, highest
    reach = Z95 * np.sqrt(variance)
    return (
        min(0.0, float(np.floor((score - reach).min() * 10) / 10)),
        max(1.0, float(np.ceil((score + reach).max() * 10) / 10)),
    )
