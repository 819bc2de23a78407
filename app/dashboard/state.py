"""What a campaign's page shows to everyone who watches it: counts from SQL, the rest from the posteriors in memory."""

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

from app.campaigns.rehearsed import crowd_is_gone
from app.dashboard import classes, implied
from app.dashboard import halo as halos
from app.dashboard.course import Course
from app.dashboard.facts import OPEN_HITS, Facts, newest_facts
from app.dashboard.follow import Followers
from app.dashboard.halo import HaloWords
from app.dashboard.heatmap import Heatmap, heatmap, row_labels
from app.dashboard.precision import typical
from app.designs.criteria import names_of
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.errors import plural
from app.goals.progress import Progress, counting, figure, progress
from app.goals.progress import words as words_of_goal
from app.goals.settings import NONE
from app.inference.ground.arrays import Array
from app.inference.online.law import Family
from app.inference.ratings.moderated import Moderated
from app.record import pace
from app.record.law import law_of
from app.record.news import Watermark, look
from app.record.per_minute import minute_of
from app.serving.posterior_cache import PosteriorCache

BINS = 20
LOOKED_AT = 500  # items, to tell how many intervals are right
MOST_BY_THE_WAY = 20_000  # items, for which the chance of a goal takes some milliseconds
MOST_FITTED = 5_000  # judgments that a law is fitted to by the way: see `benchmarks.goal_looks`
Z95 = 1.959964  # half of a normal distribution's central 95 % interval, in standard deviations
PLAIN_UNCERTAINTY = "How well the median item was known after so many HITs."


@dataclass(frozen=True)
class State:
    """Everything that changes while one watches, ready for the page and for the browser.

    picture: the match quality of all pairs, None where scores are no places on a scale.
    intervals: each item's mean and calibrated interval, on 0 to 1. behind: how many answers are not followed yet.
    """

    figures: dict[str, Any]
    picture: Heatmap | None
    intervals: Moderated
    course: Course
    behind: int

    @cached_property
    def body(self) -> str:
        """The figures as JSON: equal figures give equal text."""
        return json.dumps(self.figures, separators=(",", ":"), sort_keys=True)

    @cached_property
    def version(self) -> str:
        """Short and the same in every process, so that a reconnect anywhere finds out whether it missed something."""
        return hashlib.blake2b(self.body.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Marker:
    """Differs from the one before when an answer came in, a HIT was leased or ran out, the campaign's status or
    revision changed, or a rehearsal lost its crowd or got it back.

    looks: how many of those before it, one after another, found answers.
    """

    status: str
    revision: int
    open_hits: int
    looks: int
    crowd_gone: bool
    watermark: Watermark = field(compare=False)


async def marker(connection: AsyncConnection, campaign: Any, before: Marker | None = None, *, now: datetime) -> Marker:
    """The marker as of now. Costs 0.3 ms."""
    found = await look(connection, campaign.id, before.watermark if before else None)
    open_hits = (await connection.execute(text(OPEN_HITS), {"campaign": campaign.id, "now": now})).scalar_one()
    looks = (before.looks if before else 0) + (found.first is not None)
    gone = await crowd_is_gone(connection, campaign)
    return Marker(campaign.status, found.watermark.revision, open_hits, looks, gone, found.watermark)


async def newest_state(
    connection: AsyncConnection, cache: PosteriorCache, followers: Followers, campaign: Any, *, now: datetime
) -> State:
    """The state as of now of a campaign that was launched, by the criterion by which it is read. Drawing 100,000 items
    takes 14 ms, so a thread does it.
    """
    return await asyncio.to_thread(draw, await newest_facts(connection, cache, followers, campaign, now=now))


def draw(facts: Facts) -> State:
    """Everything that is shown, made of what was read."""
    campaign, law, design = facts.campaign, law_of(facts.campaign), design_of(facts.campaign)
    family = law.family
    picture = None if family.counts_classes else heatmap(facts.score, facts.variance, campaign.gamma)
    figures = {
        "status": campaign.status,
        "answered": facts.hits > 0,
        "crowd_gone": facts.crowd_gone,
        "done": facts.wanted - facts.left,
        "wanted": facts.wanted,
        "done_at": done_at(facts),
        "words": summary(facts) | pace_words(facts),
        "pace": pace_figures(facts),
        "histogram": histogram_figures(facts),
        "uncertainty": uncertainty_figures(facts),
        "replaying": max(0, facts.hits - facts.course.answers),
        "unit": design.unit_of(law).drawn,
        "unit_of_means": design.unit.drawn,
        "classes": classes.figures(design.classes, family, facts.course),
        "heatmap": picture and heatmap_figures(picture, facts.names),
    }
    read = min(past.answers for past in (facts.course, facts.implied, facts.halo) if past is not None)
    behind = max(facts.behind, facts.hits - read)
    return State(figures, picture, facts.precision.intervals, facts.course, behind)


def heatmap_figures(picture: Heatmap, names: Sequence[str]) -> dict[str, Any]:
    return {
        "labels": row_labels(picture, names),
        "grouped": picture.grouped,
        "top": picture.top,
        "cells": base64.b64encode(picture.cells.tobytes()).decode(),
    }


def summary(facts: Facts) -> dict[str, str]:
    """Is it going well, and how sure are we: the line at the top of the page."""
    halo = halos.words(facts.halo, names_of(facts.campaign)) if facts.halo else HaloWords()
    return {
        "judgments": f"{facts.drawn.sum():,} of {facts.wanted:,}",
        "wanted": plural(facts.wanted, "judgment").partition(" ")[2],
        "hits": plural(facts.hits, "HIT"),
        "open": open_words(facts),
        "annotators": plural(facts.counts.annotators, "annotator"),
        "precision": sureness(facts),
        "held": held_words(*held(facts)),
        "made_up": made_up_words(facts),
        "implied": implied.words(facts.implied.tally) if facts.implied else "",
        "halo": halo.known,
        "halo_warning": halo.warning,
        "goal": goal_words(facts),
    }


def goal_words(facts: Facts) -> str:
    """How far the campaign is from its goal; of many items that is looked at in the background alone."""
    campaign = facts.campaign
    if campaign.goal == NONE:
        return ""
    found = near(facts)
    words = [
        f"{goal_head(campaign, found)}: {words_of_goal(campaign)}.",
        f"Now it is {figure(campaign, found)}. {measured_words(campaign, found)}".strip() if found else "",
        too_few_people(facts) if found and not found.reached else "",
        released_words(int(facts.settled.sum())),
    ]
    return " ".join(filter(None, words))


def goal_head(campaign: Any, found: Progress | None) -> str:
    """Whether the goal is reached, or can be no more."""
    if campaign.goal_reached == words_of_goal(campaign):
        return "Goal reached"
    return "Goal not reached" if campaign.status == "finished" and found and not found.reached else "Goal"


def near(facts: Facts) -> Progress | None:
    """How near it is, if that can be told by the way."""
    campaign, evidence = facts.campaign, facts.precision.evidence
    if len(facts.score) > MOST_BY_THE_WAY or facts.behind or evidence.to_fit > MOST_FITTED:
        return None
    items = counting(campaign, ~facts.gone)
    known, by = evidence.measured(campaign, facts.precision.intervals)
    return progress(campaign, known.of(items), facts.score[items], by)


def measured_words(campaign: Any, found: Progress) -> str:
    """By what it is measured, where the campaign's law could measure it."""
    law = law_of(campaign)
    if not law.fit:
        return ""
    by_law = found.by == law.name
    return f"Measured by the scores of {law.short_title}." if by_law else "Measured by plain means of answers."


def too_few_people(facts: Facts) -> str:
    """Where most judgments are by somebody who had judged the item before, which says little of the others."""
    tally = facts.precision.evidence.tally
    if 2 * tally.annotators.sum() >= tally.judgments.sum():
        return ""
    return "Most judgments are by people who had judged the same item before: more annotators would bring it nearer."


def released_words(count: int) -> str:
    """How many items are settled and released."""
    if count == 0:
        return ""
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return f"{plural(count, 'item')} {are} settled, and nobody is asked about {them} any more."


def open_words(facts: Facts) -> str:
    """How many people are at it; of a finished campaign no more than that they were."""
    if facts.campaign.status == "finished":
        return "took part"
    return f"{plural(facts.counts.open_hits, 'HIT')} open now" if facts.counts.open_hits else "no HIT open now"


def sureness(facts: Facts) -> str:
    """How well the median item is known: its typical interval, or without an order the share of its likeliest label."""
    design = design_of(facts.campaign)
    if design.ordered:
        return design.unit.give_or_take(typical(facts.precision.intervals))
    return f"{100 * np.median(facts.score):.0f} %" if facts.judgments.any() else "unknown yet"


def held(facts: Facts) -> tuple[float, float]:
    """How many posterior intervals hold the mean of all annotators, as a share, and how many times as wide as the
    calibrated one the median of them is; NaN while that is not known, and where they are in other units. Of points,
    also where the law reads their order alone: its scores are meant to be on the same scale, and this says how far off
    they are.

    Of some items spread over all: quantiles of a Beta for a million would take seconds.
    """
    law, design = law_of(facts.campaign), design_of(facts.campaign)
    family = law.family
    comparable = design.means_beside(law) or design.yields == "points"
    if not comparable or facts.behind or facts.course.answers < facts.hits:
        return np.nan, np.nan
    some = np.unique(np.linspace(0, len(facts.score) - 1, LOOKED_AT).astype(np.intp))
    low, high = family.interval(*facts.course.state[:, some])
    return facts.precision.intervals.of(some).beside(low, high)


def held_words(share: float, times: float) -> str:
    """How far off the posterior intervals are."""
    if not np.isfinite(share):
        return ""
    wide = f"{times:.1f} times as wide" if f"{times:.1f}" != "1.0" else "about as wide"
    return f"Of the posterior intervals, which are {wide}, about {100 * share:.0f} in 100 hold it."


def made_up_words(facts: Facts) -> str:
    """The warning about answers of `easel simulate`; none where there are none."""
    if not facts.made_up_hits or facts.campaign.rehearsal_of:  # whose head says so
        return ""
    hits = plural(facts.hits, "HIT")
    return f"easel simulate answered {facts.made_up_hits:,} of {hits}: made up, not by people."


def pace_words(facts: Facts) -> dict[str, str]:
    """The rate, and when it will be done; a campaign that takes no answers, or had none yet, has neither."""
    if facts.counts.first_at is None:
        left, note = "no answer yet", "Bars appear with the first answer."
        if facts.hits:
            left, note = "no answer here yet", f"Imported answers have no pace. {note}"
        running = facts.campaign.status == "running"
        return {"rate": "no pace yet", "left": left if running else facts.campaign.status, "pace_note": note}
    if facts.campaign.status != "running":
        return {"rate": "", "left": facts.campaign.status, "pace_note": ""}
    recent = facts.recent_rate
    rate = f"{recent[1]:,.0f} HITs/h" if recent else "HITs/h: too early to say"
    return {
        "rate": (f"{rate} before that" if recent and recent[0] else "") if silence_of(facts) else rate,
        "left": left_words(facts),
        "pace_note": "Last 24 h. The last bar, drawn pale, is still filling.",
    }


def left_words(facts: Facts) -> str:
    """The time left of a campaign that runs, or that nobody answers."""
    hours = hours_left(facts)
    return silence_of(facts) or (f"about {pace.duration(hours)} left" if hours else "no estimate yet")


def silence_of(facts: Facts) -> str | None:
    """Return how long nobody has answered, in words; None while answers come in."""
    return pace.silence(facts.minutes, minute_of(facts.until))


def hours_left(facts: Facts) -> float | None:
    """Until all that is wanted is answered, at the recent rate; None when there is too little to say."""
    if facts.counts.first_at is None or facts.campaign.status != "running":
        return None
    span = facts.until - facts.counts.first_at
    return pace.forecast(facts.left, drawn_in_hit(facts.campaign), facts.recent_rate, span)


def drawn_in_hit(campaign: Any) -> int:
    """How many items of a HIT get one of the judgments that are wanted."""
    return int(campaign.items_per_hit) - len(campaign.always_shown)


def done_at(facts: Facts) -> int | None:
    """When that is, in seconds since 1970, to the minute; None too while nobody answers."""
    hours = hours_left(facts)
    if hours is None or silence_of(facts):
        return None
    return minute_of(facts.until + timedelta(hours=hours)) * 60


def pace_figures(facts: Facts) -> dict[str, Any]:
    bars = pace.pace(facts.minutes, *facts.first_and_now)
    return {"start": bars.start_minute * 60, "minutes": bars.bar_minutes, "bars": bars.hits_per_hour}


def histogram_figures(facts: Facts) -> dict[str, Any]:
    low, high = domain(law_of(facts.campaign).family, facts.score, facts.variance)
    counts, _ = np.histogram(np.clip(facts.score, low, high), bins=BINS, range=(low, high))
    return {"low": low * POINTS, "high": high * POINTS, "counts": counts.tolist()}


def uncertainty_figures(facts: Facts) -> dict[str, Any]:
    """The typical interval as answers came in; `behind` says how many of them are not read yet."""
    return {
        "points": spreads(facts),
        "changes": [line.answers for line in facts.changed if line.answers is not None],
        "behind": facts.behind,
        "note": f"Reading the answers; {plural(facts.behind, 'HIT')} to go." if facts.behind else PLAIN_UNCERTAINTY,
    }


def spreads(facts: Facts) -> list[list[float]]:
    """The typical interval after so many responses, in the unit of means; what it cannot say is left out."""
    unit = design_of(facts.campaign).unit
    known = ((answers, unit.spread(places)) for answers, places in facts.precision.points())
    return [[answers, round(value, 2)] for answers, value in known if value is not None]


def domain(family: Family, score: Array, variance: Array) -> tuple[float, float]:
    """The scale of the figures: where scores can lie; on an unbounded scale 0 to 1, widened to what intervals need."""
    lowest, highest = family.support
    if np.isfinite(lowest) and np.isfinite(highest):
        return lowest, highest
    reach = Z95 * np.sqrt(variance)
    return (
        min(0.0, float(np.floor((score - reach).min() * 10) / 10)),
        max(1.0, float(np.ceil((score + reach).max() * 10) / 10)),
    )
