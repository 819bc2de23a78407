"""What a campaign's page shows to everyone who watches it: a few counts from SQL, the rest from the posteriors in memory."""

import asyncio
import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard import pace
from app.dashboard.heatmap import CELLS, Heatmap, heatmap, row_labels
from app.database.tables import items
from app.inference.law import Array
from app.inference.online import ONLINE, Law
from app.serving.newest import Newest
from app.serving.selection import Counts

BINS = 20
POINTS = 100  # scores are in [0, 1] inside, 0 to 100 on the screen
LONGEST_NAME = 60
Z95 = 1.959964  # half of a normal distribution's central 95 % interval, in standard deviations

COUNTS = text("""
    SELECT (SELECT count(*) FROM responses WHERE campaign_id = :campaign) AS hits,
           (SELECT count(*) FROM annotators a WHERE a.campaign_id = :campaign
            AND EXISTS (SELECT 1 FROM responses r WHERE r.annotator_id = a.id)) AS annotators,
           (SELECT count(*) FROM hits
            WHERE campaign_id = :campaign AND closed_at IS NULL AND expires_at > :now) AS open_hits,
           (SELECT received_at FROM responses WHERE campaign_id = :campaign AND source <> 'import'
            ORDER BY seq LIMIT 1) AS first_at
""")

# Imported answers were not given here, so they say nothing about the pace.
PER_MINUTE = text("""
    SELECT date_bin('1 minute', received_at, 'epoch') AS minute, count(*) AS hits FROM responses
    WHERE campaign_id = :campaign AND received_at > :since AND source <> 'import' GROUP BY 1
""")

# Answers commit out of order, so the newest number alone would miss one; more than these are never under way at once.
MARKER = text("""
    SELECT c.status,
           (SELECT sum(seq) FROM (SELECT seq FROM responses WHERE campaign_id = c.id ORDER BY seq DESC LIMIT 200) last),
           (SELECT count(*) FROM hits WHERE campaign_id = c.id AND closed_at IS NULL AND expires_at > :now)
    FROM campaigns c WHERE c.id = :campaign
""")


@dataclass(frozen=True)
class State:
    """Everything that changes while one watches, ready for the page and for the browser."""

    figures: dict[str, Any]
    picture: Heatmap

    @cached_property
    def body(self) -> str:
        """The figures as JSON: equal figures give equal text."""
        return json.dumps(self.figures, separators=(",", ":"), sort_keys=True)

    @cached_property
    def version(self) -> str:
        """Short and the same in every process, so that a reconnect anywhere finds out whether it missed something."""
        return hashlib.blake2b(self.body.encode(), digest_size=8).hexdigest()


async def marker(connection: AsyncConnection, campaign_id: int, *, now: datetime) -> tuple[Any, ...]:
    """Differs when an answer came in, a HIT was leased or ran out, or the campaign's status changed. Costs 0.1 ms."""
    return tuple((await connection.execute(MARKER, {"campaign": campaign_id, "now": now})).one())


async def newest_state(connection: AsyncConnection, newest: Newest, campaign: Row[Any], *, now: datetime) -> State:
    """The state as of now; `campaign` has been launched."""
    until = min(now, campaign.finished_at or now)
    counts = (await connection.execute(COUNTS, {"campaign": campaign.id, "now": now})).one()
    minutes = await per_minute(connection, campaign.id, until)
    index = (await newest.posteriors(connection, campaign)).index
    # Copies: the originals change under other requests while a thread draws.
    score, variance, judgments = index.score.copy(), index.variance.copy(), index.judgments.copy()
    names = await names_of(connection, campaign.id) if len(score) <= CELLS else []
    return await asyncio.to_thread(assemble, campaign, score, variance, judgments, counts, minutes, names, until)


async def per_minute(connection: AsyncConnection, campaign_id: int, until: datetime) -> dict[int, int]:
    parameters = {"campaign": campaign_id, "since": until - timedelta(hours=pace.HOURS_SHOWN)}
    rows = await connection.execute(PER_MINUTE, parameters)
    return {minute_of(row.minute): row.hits for row in rows}


def minute_of(moment: datetime) -> int:
    """Whole minutes since 1970."""
    return int(moment.timestamp()) // 60


async def names_of(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """What the items of a small campaign are called, by number."""
    statement = select(items.c.shown).where(items.c.campaign_id == campaign_id).order_by(items.c.number)
    return [shortened(shown) for shown in await connection.scalars(statement)]


def shortened(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def assemble(
    campaign: Row[Any],
    score: Array,
    variance: Array,
    judgments: Counts,
    counts: Row[Any],
    minutes: dict[int, int],
    names: list[str],
    until: datetime,
) -> State:
    """Draw everything. Takes 5 ms with 150 items and 25 ms with 100,000, so it runs in a thread."""
    picture = heatmap(score, variance, campaign.gamma)
    low, high = domain(ONLINE[campaign.update_law], score, variance)
    histogram, _ = np.histogram(np.clip(score, low, high), bins=BINS, range=(low, high))
    now_minute = minute_of(until)
    first_minute = minute_of(counts.first_at) if counts.first_at else now_minute
    bars = pace.pace(minutes, first_minute, now_minute)
    taken, wanted = int(judgments.sum()), len(score) * campaign.judgments_per_item
    left = int(np.maximum(campaign.judgments_per_item - judgments, 0).sum())
    figures = {
        "status": campaign.status,
        "answered": counts.hits > 0,
        "done": wanted - left,
        "wanted": wanted,
        "words": {
            "judgments": f"{taken:,} of {wanted:,} judgments",
            "hits": plural(counts.hits, "HIT"),
            "open": f"{counts.open_hits:,} open now",
            "annotators": plural(counts.annotators, "annotator"),
            **pace_words(campaign, left, pace.recent_rate(minutes, first_minute, now_minute)),
            "precision": f"± {precision(variance):.1f} points",
        },
        "pace": {"start": bars.start_minute * 60, "minutes": bars.bar_minutes, "bars": bars.hits_per_hour},
        "histogram": {"low": low * POINTS, "high": high * POINTS, "counts": histogram.tolist()},
        "heatmap": {
            "labels": row_labels(picture, names),
            "grouped": picture.grouped,
            "cells": base64.b64encode(picture.cells.tobytes()).decode(),
        },
    }
    return State(figures, picture)


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def pace_words(campaign: Row[Any], left: int, recent: tuple[int, float]) -> dict[str, str]:
    """The rate, and how long it will take; a campaign that takes no answers has neither."""
    if campaign.status != "running":
        return {"rate": "", "left": ""}
    words = pace.forecast(left, campaign.items_per_hit, recent)
    return {"rate": f"{recent[1]:,.0f} HITs/h", "left": f"about {words} left" if words else ""}


def precision(variance: Array) -> float:
    """Half the width of the median item's 95 % interval in points, as of a normal distribution of its variance."""
    return float(Z95 * POINTS * np.sqrt(np.median(variance)))


def domain(law: Law, score: Array, variance: Array) -> tuple[float, float]:
    """The scale of the figures: where scores can lie; on an unbounded scale 0 to 1, widened to what intervals need."""
    lowest, highest = law.support
    if np.isfinite(lowest) and np.isfinite(highest):
        return lowest, highest
    reach = Z95 * np.sqrt(variance)
    return (
        min(0.0, float(np.floor((score - reach).min() * 10) / 10)),
        max(1.0, float(np.ceil((score + reach).max() * 10) / 10)),
    )
