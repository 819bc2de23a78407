"""Two methods of scores side by side: what the analysis page shows of them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.contracts import ScoreMethod
from app.analysis.findings import Answers, Column, Comparison, Scores
from app.analysis.fits import Fits, known
from app.analysis.methods import SCORES
from app.analysis.naming import in_order
from app.analysis.scatter import MOST_DOTS, Dot, Scatter, squares, upside_down
from app.analysis.view import AnalysisView, ShownRows, between, cut, decimals
from app.drawing import Array, Axis, around, interval, known_ends, written
from app.errors import Conflict, plural

COLUMNS = {
    "item": Column("item", "Item", "text"),
    "one": Column("one", "First method"),
    "other": Column("other", "Second method"),
    "shift": Column("shift", "Shift"),
}


def chosen(view: AnalysisView, law: str, methods: Mapping[str, ScoreMethod], beside: str = "") -> tuple[str, str]:
    """The two methods to show: those of the address, else of those that the campaign reaches its own law, beside the
    one that its design names, or else one that rests on order alone.

    Raises `NotFound` (`method_not_found`).
    """
    usual = [name for name, method in methods.items() if method.usual]
    one = view.one or (law if law in methods else [*usual, *methods][0])
    first = [beside] if beside in methods else []
    other = view.other or next((name for name in (*first, *reversed(usual), *methods) if name != one), one)
    for name in (one, other):
        known(SCORES, name, "method_not_found")
    return one, other


@dataclass(frozen=True)
class Side:
    """One of the two methods. scores: None if there are none, and `refusal` says why; places: 1 is the highest."""

    name: str
    method: ScoreMethod
    scores: Scores
    refusal: str
    axis: Axis
    decimals: int
    places: Array


@dataclass(frozen=True)
class ScoreMark:
    """A score as words, and where it stands on its axis: its interval's ends and itself, in per cent."""

    value: str
    between: str
    place: str
    at: float | None
    ends: tuple[float, float] | None


@dataclass(frozen=True)
class ScoreRow:
    id: str
    shown: str
    marks: tuple[ScoreMark, ScoreMark]
    shift: str


@dataclass(frozen=True)
class ScoresPart:
    """basis: what the scores are made from, in words."""

    view: AnalysisView
    basis: str
    sides: tuple[Side, Side]
    comparison: Comparison | None
    picture: Scatter | None
    page: ShownRows


async def content(fits: Fits, engine: AsyncEngine, slug: str, view: AnalysisView) -> dict[str, Any]:
    """What the template needs."""
    methods = (await fits.offer(engine, slug, criterion=view.criterion)).scores or SCORES
    return {"part": await scores_part(fits, engine, slug, view), "methods": methods, "columns": COLUMNS}


async def picture(fits: Fits, engine: AsyncEngine, slug: str, view: AnalysisView) -> Scatter | None:
    """What a file of the picture shows."""
    return (await scores_part(fits, engine, slug, view)).picture


async def scores_part(fits: Fits, engine: AsyncEngine, slug: str, view: AnalysisView) -> ScoresPart:
    """Two methods side by side; where one has no scores, the other is shown alone."""
    answers = await fits.answers(engine, slug, **view.reads)
    offer = await fits.offer(engine, slug, criterion=view.criterion)
    names = chosen(view, answers.law, offer.scores or SCORES, offer.usual)
    found = [await scores_or_reason(fits, engine, slug, view, name) for name in names]
    comparison = None
    if not any(isinstance(one, Conflict) for one in found):
        answers, comparison = await fits.compare(engine, slug, *names, **view.reads)
        found = [comparison.one, comparison.other]
    return await asyncio.to_thread(composed, view.of("scores"), answers, names, found, comparison)


async def scores_or_reason(
    fits: Fits, engine: AsyncEngine, slug: str, view: AnalysisView, name: str
) -> Scores | Conflict:
    try:
        return (await fits.scores(engine, slug, name, **view.reads))[1]
    except Conflict as reason:
        return reason


def composed(
    view: AnalysisView,
    answers: Answers,
    names: tuple[str, str],
    found: list[Scores | Conflict],
    comparison: Comparison | None,
) -> ScoresPart:
    nothing = np.full(answers.n_items, np.nan)
    scores = [Scores(nothing, answers.judged) if isinstance(one, Conflict) else one for one in found]
    refusals = ["" if isinstance(one, Scores) else str(one) for one in found]
    one, other = (
        Side(
            *(name, SCORES[name], mine, refusal, axis, decimals(largest(mine.values))),
            places_of(mine.values),
        )
        for name, mine, refusal, axis in zip(names, scores, refusals, axes(names, scores), strict=True)
    )
    picture = None if comparison is None or not comparison.n else scatter(answers, one, other)
    return ScoresPart(view, basis(answers), (one, other), comparison, picture, score_page(view, answers, one, other))


def places_of(values: Array) -> Array:
    """1 for the highest; equal values share the better place, and NaN has none."""
    seen = np.isfinite(values)
    return np.where(seen, np.searchsorted(np.sort(-values[seen]), -values) + 1.0, np.nan)


def largest(values: Array) -> list[float]:
    """The largest size, if there is any, as a number that is not whole."""
    sizes = np.abs(values[np.isfinite(values)])
    return [float(np.nextafter(sizes.max(), np.inf))] if len(sizes) else []


def basis(answers: Answers) -> str:
    counts = (len(answers.item), "judgment"), (answers.n_hits, "HIT"), (answers.n_annotators, "annotator")
    judgments, hits, annotators = (plural(*count) for count in counts)
    seen, items = int(answers.judged.sum()), plural(answers.n_items, "item")
    return f"From {judgments} in {hits} by {annotators}; {seen:,} of {items} judged."


def axes(names: tuple[str, str], scores: list[Scores]) -> list[Axis]:
    """One scale for both if they have the same unit."""
    parts = [tuple(known_ends(mine.values, ends) for ends in (mine.values, mine.low, mine.high)) for mine in scores]
    if same_unit(*names):
        parts = [tuple(np.concatenate(column) for column in zip(*parts, strict=True))] * 2
    titles = [f"{SCORES[name].title}: {SCORES[name].unit}" for name in names]
    return [around(title, *part) for title, part in zip(titles, parts, strict=True)]


def same_unit(one: str, other: str) -> bool:
    return SCORES[one].unit == SCORES[other].unit


def scatter(answers: Answers, one: Side, other: Side) -> Scatter:
    """Every item that both have a score for: as a dot with its intervals, or counted in squares if there are many."""
    title, level = f"{one.method.title} and {other.method.title}", same_unit(one.name, other.name)
    both = np.flatnonzero(np.isfinite(one.scores.values) & np.isfinite(other.scores.values))
    if len(both) <= MOST_DOTS:
        dots = [dot(answers.shown[i], mark(one, i), mark(other, i), one, other) for i in both.tolist()]
        return told(Scatter(title, one.axis, other.axis, dots, level=level))
    counted = squares(one.axis, other.axis, one.scores.values[both], other.scores.values[both])
    readout = f"{plural(len(both), 'item')}, counted in small fields: the darker, the more."
    return Scatter(title, one.axis, other.axis, squares=counted, level=level, readout=readout)


def told(picture: Scatter) -> Scatter:
    """With words on what its dots and lines are."""
    lines = "; thin lines are 95 % intervals, and go on beyond the frame where they reach it" * picture.intervals
    level = "; on the dotted line both scores are the same" * picture.level
    return replace(picture, readout=f"Each dot is an item{lines}{level}.")


def dot(shown: str, across: ScoreMark, upright: ScoreMark, one: Side, other: Side) -> Dot:
    words = [f"{side.method.title} {at.value} ({at.between})" for side, at in ((one, across), (other, upright))]
    ends = None if upright.ends is None else (upside_down(upright.ends[0]), upside_down(upright.ends[1]))
    x, y = across.at or 0.0, upside_down(upright.at or 0.0)
    return Dot(x, y, f"{shortened(shown)}: {'; '.join(words)}", across.ends, ends)


LONGEST = 60  # letters of an item's text beside a dot


def shortened(words: str) -> str:
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def mark(side: Side, i: int) -> ScoreMark:
    """An item's score by one method."""
    value = float(side.scores.values[i])
    low, high = (None if ends is None else float(ends[i]) for ends in (side.scores.low, side.scores.high))
    seen = bool(np.isfinite(value))
    return ScoreMark(
        written(value, side.decimals),
        between(low, high, side.decimals),
        f"{side.places[i]:,.0f}" if seen else written(None, 0),
        side.axis.at(value) if seen else None,
        interval(side.axis, low, high) if seen else None,
    )


def score_page(view: AnalysisView, answers: Answers, one: Side, other: Side) -> ShownRows:
    """The rows of the table of items, by the first method unless the view says otherwise."""
    shift = one.places - other.places

    def row(i: int) -> ScoreRow:
        moved = "+" * bool(shift[i] > 0) + written(float(shift[i]), 0)
        return ScoreRow(answers.ids[i], answers.shown[i], (mark(one, i), mark(other, i)), moved)

    columns = {"one": one.scores.values, "other": other.scores.values, "shift": abs(shift)}
    return cut(view, order_of(view, answers, columns), row)


def order_of(view: AnalysisView, answers: Answers, columns: dict[str, Array]) -> Any:
    """The items that are searched for, in the view's order; those without a figure come last."""
    if view.sort == "item":
        order = np.array(sorted(range(answers.n_items), key=lambda i: in_order(answers.shown[i])), np.intp)
        order = order if view.order == "up" else order[::-1]
    else:
        values = columns.get(view.sort, columns["one"])
        order = np.argsort(values if view.order == "up" else -values, kind="stable")
    if not view.search:
        return order
    words = view.search.casefold()
    return [i for i in order.tolist() if words in answers.shown[i].casefold() or words in answers.ids[i].casefold()]
