"""The charts of a campaign's page: which of them say something about so many items, and the course of the best items.

Pure: from the figures of a state, and from posteriors.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.dashboard.history import EARLY_JUDGMENTS
from app.dashboard.snapshot import CampaignSnapshot
from app.designs.scale import MAX_POINTS
from app.inference.ground.arrays import Array

MIN_ITEMS_FOR_DISTRIBUTION = 10  # fewer are seen better in the table
MAX_ITEMS_AS_MATRIX = 8  # whose match qualities are numbers in a table instead of a picture
MAX_COURSE_ITEMS = 10
COURSE_LABEL_HEIGHT = 18  # in SVG units, as high as a line of text
COURSE_AXIS_STEP = 10  # its ends are multiples of so many places
COURSE_TOP, COURSE_BOTTOM = 16, 216


def offered_chart_title_by_name(figures: Mapping[str, Any], item_count: int, *, is_ordered: bool) -> dict[str, str]:
    """Return the titles of the charts that the page offers, by name, in order; the first one is shown at first."""
    is_offered = {
        "match": figures["heatmap"] is not None,
        "distribution": item_count >= MIN_ITEMS_FOR_DISTRIBUTION or figures["classes"] is not None,
        "uncertainty": is_ordered,
        "pace": True,
        "course": bool(figures["course"]),
    }
    titles = {
        "match": "Match quality",
        "distribution": "Distribution",
        "uncertainty": "Uncertainty",
        "pace": "Pace",
        "course": "Trend",
    }
    return {name: title for name, title in titles.items() if is_offered[name]}


def score_history_of_highest_items(snapshot: CampaignSnapshot) -> list[dict[str, Any]]:
    """Return the scores of the highest items after their first judgments and now, as places 0 to 100.

    Empty for campaigns of many items, which have no names here, and while no item has an earlier posterior.
    """
    family, history = snapshot.criterion.law.family, snapshot.history
    judged = np.flatnonzero(snapshot.judgments > 0)
    if family.counts_classes or not snapshot.item_names or not len(judged):
        return []
    highest = judged[np.argsort(-snapshot.score[judged], kind="stable")][:MAX_COURSE_ITEMS]
    lines = []
    for number in highest.tolist():
        earlier = dict(history.early_judgment_counts_and_states_of_item(number))
        places = [
            round(float(family.score(*earlier[count])) * MAX_POINTS, 2) if count in earlier else None
            for count in EARLY_JUDGMENTS
        ]
        places.append(round(float(snapshot.score[number]) * MAX_POINTS, 2))
        lines.append({"name": snapshot.item_names[number], "places": places})
    return lines if any(place is not None for line in lines for place in line["places"][:-1]) else []


def label_heights_without_overlap(heights: Array) -> Array:
    """Return these label heights, (n,), ascending, moved apart to at least one line of text."""
    steps = np.arange(len(heights)) * COURSE_LABEL_HEIGHT
    spread: Array = np.maximum.accumulate(heights - steps) + steps
    overflow = max(0.0, float(spread[-1]) - COURSE_BOTTOM) if len(spread) else 0.0
    return np.minimum(spread, COURSE_BOTTOM - steps[::-1]) if overflow else spread


@dataclass(frozen=True)
class CourseLine:
    """A line of the course chart in SVG units: (moment, height) of each score, and the height of its label."""

    name: str
    points: list[tuple[int, float]]
    label_y: float


@dataclass(frozen=True)
class CourseDrawing:
    """The course chart, the highest item first; `low` and `high` are the places at the ends of its axis."""

    low: float
    high: float
    lines: list[CourseLine]


def score_history_drawing(score_history: Sequence[Mapping[str, Any]]) -> CourseDrawing:
    """Return the chart of the lines of `score_history_of_highest_items`; at least one line is needed."""
    places: list[float] = [place for line in score_history for place in line["places"] if place is not None]
    low = math.floor(min(places) / COURSE_AXIS_STEP) * COURSE_AXIS_STEP
    high = max(math.ceil(max(places) / COURSE_AXIS_STEP) * COURSE_AXIS_STEP, low + COURSE_AXIS_STEP)

    def height_at(place: float) -> float:
        share = (place - low) / (high - low)
        return round(COURSE_BOTTOM - share * (COURSE_BOTTOM - COURSE_TOP), 1)

    lines = sorted(score_history, key=lambda line: -line["places"][-1])
    labels = label_heights_without_overlap(np.array([height_at(line["places"][-1]) for line in lines])).tolist()
    drawn = [
        CourseLine(
            line["name"],
            [(moment, height_at(place)) for moment, place in enumerate(line["places"]) if place is not None],
            round(label, 1),
        )
        for line, label in zip(lines, labels, strict=True)
    ]
    return CourseDrawing(low, high, drawn)
