"""Part of the analysis page that shows two score methods side by side."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.chart_axes import (
    Axis,
    DrawnArray,
    axis_around_intervals,
    finite_interval_ends_or_values,
    percents_of_interval_ends_or_none,
)
from app.analysis.fit_cache import FitCache, registered_method_or_refuse
from app.analysis.item_noun import noun_of_answers, text_with_noun
from app.analysis.method_types import ScoreMethod
from app.analysis.methods import SCORE_METHODS
from app.analysis.result_types import Answers, Column, Comparison, Scores, natural_sort_key
from app.analysis.scatter import (
    MAX_SCATTER_DOTS,
    Dot,
    Scatter,
    squares_shaded_by_dot_count,
    to_percent_from_top,
)
from app.analysis.view import AnalysisView, build_table_page_in_order, decimals_for_values, format_interval
from app.errors import Conflict, pluralize
from app.http.paging import Page
from app.text.numbers import format_with_places

MEAN_METHOD_NAME = "mean"
SCORE_PAGE_COLUMNS = {
    "item": Column("item", "Item", "text"),
    "one": Column("one", "First method"),
    "other": Column("other", "Second method"),
    "shift": Column("shift", "Shift"),
}


def names_of_two_methods_to_show_or_refuse(
    view: AnalysisView, law_name: str, methods: Mapping[str, ScoreMethod], default_method: str = ""
) -> tuple[str, str]:
    """Return the two methods to show.

    These are the methods of the address. By default they are the plain mean and the campaign's own law. Where there is
    no mean, or the design names a method, they are the law and that method, or else one that uses order alone; all only
    if the campaign supports them.

    Raises:
        NotFound: `method_not_found`.

    """
    default_names = [name for name, method in methods.items() if method.is_default]
    named = [default_method] if default_method in methods else []
    law = [law_name] if law_name in methods else []
    if MEAN_METHOD_NAME in methods and not named:
        own = [MEAN_METHOD_NAME, *law, *(name for name in methods if methods[name].reads != "order")]
        others = own
    else:
        own, others = [*law, *default_names, *methods], [*named, *reversed(default_names), *methods]
    one = view.one or next((name for name in own if name != view.other), own[0])
    other = view.other or next((name for name in others if name != one), one)
    for name in (one, other):
        registered_method_or_refuse(SCORE_METHODS, name, "method_not_found")
    return one, other


@dataclass(frozen=True)
class MethodSide:
    """One of the two methods. `scores` is None if there are none, and `refusal` says why; rank 1 is the highest.

    `assumes` is what the method takes for granted, in the words for these answers.
    """

    name: str
    method: ScoreMethod
    scores: Scores
    refusal: str
    axis: Axis
    decimals: int
    ranks: DrawnArray
    assumes: str


@dataclass(frozen=True)
class ScoreMark:
    """A score as text, and the positions of its interval's ends and itself on its axis, in per cent."""

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
    """Context of the part; `basis` says in words what the scores are made from."""

    view: AnalysisView
    basis: str
    sides: tuple[MethodSide, MethodSide]
    comparison: Comparison | None
    picture: Scatter | None
    page: Page[Any]


async def load_scores_template_context(
    fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView
) -> dict[str, Any]:
    methods = (await fits.load_available_methods(engine, slug, criterion=view.criterion)).scores or SCORE_METHODS
    return {"part": await load_scores_part(fits, engine, slug, view), "methods": methods, "columns": SCORE_PAGE_COLUMNS}


async def load_scores_picture_or_none(
    fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView
) -> Scatter | None:
    """Return the picture for a file."""
    return (await load_scores_part(fits, engine, slug, view)).picture


async def load_scores_part(fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView) -> ScoresPart:
    """Return two methods side by side; if one has no scores, the other is shown alone."""
    answers = await fits.load_answers(engine, slug, **view.answer_filter_query_fields)
    offer = await fits.load_available_methods(engine, slug, criterion=view.criterion)
    names = names_of_two_methods_to_show_or_refuse(
        view, answers.law, offer.scores or SCORE_METHODS, offer.default_method
    )
    results = [await fit_scores_or_return_refusal(fits, engine, slug, view, name) for name in names]
    comparison = None
    if not any(isinstance(result, Conflict) for result in results):
        answers, comparison = await fits.compare_methods(engine, slug, *names, **view.answer_filter_query_fields)
        results = [comparison.one, comparison.other]
    return await asyncio.to_thread(
        build_scores_part, view.view_of_table_or_its_start("scores"), answers, names, results, comparison
    )


async def fit_scores_or_return_refusal(
    fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView, name: str
) -> Scores | Conflict:
    try:
        return (await fits.load_answers_and_fit_scores(engine, slug, name, **view.answer_filter_query_fields))[1]
    except Conflict as reason:
        return reason


def build_scores_part(
    view: AnalysisView,
    answers: Answers,
    names: tuple[str, str],
    results: list[Scores | Conflict],
    comparison: Comparison | None,
) -> ScoresPart:
    missing = np.full(answers.n_items, np.nan)
    scores = [Scores(missing, answers.has_judgments) if isinstance(result, Conflict) else result for result in results]
    refusals = ["" if isinstance(result, Scores) else str(result) for result in results]
    one, other = (
        MethodSide(
            *(
                name,
                SCORE_METHODS[name],
                mine,
                refusal,
                axis,
                decimals_for_values(largest_magnitude_or_empty_list(mine.values)),
            ),
            descending_ranks(mine.values),
            text_with_noun(SCORE_METHODS[name].assumes, answers),
        )
        for name, mine, refusal, axis in zip(
            names, scores, refusals, score_axis_of_each_method(names, scores), strict=True
        )
    )
    picture = None if comparison is None or not comparison.n else build_scatter_of_two_methods(answers, one, other)
    return ScoresPart(
        view,
        describe_judgment_counts(answers),
        (one, other),
        comparison,
        picture,
        build_score_table_page(view, answers, one, other),
    )


def descending_ranks(values: DrawnArray) -> DrawnArray:
    """Return ranks, 1 for the highest; equal values share the better rank, and NaN has none."""
    seen = np.isfinite(values)
    return np.where(seen, np.searchsorted(np.sort(-values[seen]), -values) + 1.0, np.nan)


def largest_magnitude_or_empty_list(values: DrawnArray) -> list[float]:
    """Return the largest absolute value as a float, or nothing if there is none."""
    sizes = np.abs(values[np.isfinite(values)])
    return [float(np.nextafter(sizes.max(), np.inf))] if len(sizes) else []


def describe_judgment_counts(answers: Answers) -> str:
    counts = (len(answers.item), "judgment"), (answers.n_hits, "task"), (answers.n_annotators, "annotator")
    judgments, hits, annotators = (pluralize(*count) for count in counts)
    seen, items = int(answers.has_judgments.sum()), pluralize(answers.n_items, noun_of_answers(answers))
    return f"From {judgments} in {hits} by {annotators}; {seen:,} of {items} judged."


def score_axis_of_each_method(names: tuple[str, str], scores: list[Scores]) -> list[Axis]:
    """Return the axes; both methods share one scale if they have the same unit."""
    parts = [
        tuple(finite_interval_ends_or_values(mine.values, ends) for ends in (mine.values, mine.low, mine.high))
        for mine in scores
    ]
    if have_methods_same_unit(*names):
        parts = [tuple(np.concatenate(column) for column in zip(*parts, strict=True))] * 2
    titles = [f"{SCORE_METHODS[name].title}: {SCORE_METHODS[name].unit}" for name in names]
    return [axis_around_intervals(title, *part) for title, part in zip(titles, parts, strict=True)]


def have_methods_same_unit(method_name: str, other_method_name: str) -> bool:
    return SCORE_METHODS[method_name].unit == SCORE_METHODS[other_method_name].unit


def build_scatter_of_two_methods(answers: Answers, first_method: MethodSide, second_method: MethodSide) -> Scatter:
    """Draw every item with both scores: as a dot with its intervals, or counted in squares if there are many."""
    title, level = (
        f"{first_method.method.title} and {second_method.method.title}",
        have_methods_same_unit(first_method.name, second_method.name),
    )
    scored_items = np.flatnonzero(np.isfinite(first_method.scores.values) & np.isfinite(second_method.scores.values))
    if len(scored_items) <= MAX_SCATTER_DOTS:
        dots = [
            item_score_dot(
                answers.shown[i],
                item_score_mark(first_method, i),
                item_score_mark(second_method, i),
                first_method,
                second_method,
            )
            for i in scored_items.tolist()
        ]
        return scatter_with_sentence_on_dots_and_lines(
            Scatter(title, first_method.axis, second_method.axis, dots, has_diagonal=level),
            "a system" if answers.items_are_systems else "an item",
        )
    square_counts = squares_shaded_by_dot_count(
        first_method.axis,
        second_method.axis,
        first_method.scores.values[scored_items],
        second_method.scores.values[scored_items],
    )
    noun = noun_of_answers(answers)
    readout = f"{pluralize(len(scored_items), noun)}. Darker squares contain more {noun}s."
    return Scatter(
        title, first_method.axis, second_method.axis, squares=square_counts, has_diagonal=level, readout=readout
    )


def scatter_with_sentence_on_dots_and_lines(picture: Scatter, noun_phrase: str) -> Scatter:
    """Add a sentence on what dots and lines are; a dot is a `noun_phrase`, such as `an item`."""
    lines = "; thin lines are 95 % intervals, some beyond the frame" * picture.has_intervals
    level = "; on the dotted line both scores are the same" * picture.has_diagonal
    return replace(picture, readout=f"Each dot is {noun_phrase}{lines}{level}.")


def item_score_dot(
    item_text: str, mark: ScoreMark, other_mark: ScoreMark, first_method: MethodSide, second_method: MethodSide
) -> Dot:
    words = [
        f"{side.method.title} {at.value} ({at.between})"
        for side, at in ((first_method, mark), (second_method, other_mark))
    ]
    ends = (
        None
        if other_mark.ends is None
        else (
            to_percent_from_top(other_mark.ends[0]),
            to_percent_from_top(other_mark.ends[1]),
        )
    )
    x, y = mark.at or 0.0, to_percent_from_top(other_mark.at or 0.0)
    return Dot(x, y, f"{shorten_dot_text(item_text)}: {'; '.join(words)}", mark.ends, ends)


MAX_DOT_TEXT_CHARACTERS = 60  # letters of an item's text next to a dot


def shorten_dot_text(full_text: str) -> str:
    return full_text if len(full_text) <= MAX_DOT_TEXT_CHARACTERS else full_text[: MAX_DOT_TEXT_CHARACTERS - 1] + "…"


def item_score_mark(side: MethodSide, item_number: int) -> ScoreMark:
    value = float(side.scores.values[item_number])
    low, high = (None if ends is None else float(ends[item_number]) for ends in (side.scores.low, side.scores.high))
    is_scored = bool(np.isfinite(value))
    return ScoreMark(
        format_with_places(value, side.decimals),
        format_interval(low, high, side.decimals),
        f"{side.ranks[item_number]:,.0f}" if is_scored else format_with_places(None, 0),
        side.axis.percent_of(value) if is_scored else None,
        percents_of_interval_ends_or_none(side.axis, low, high) if is_scored else None,
    )


def build_score_table_page(
    view: AnalysisView, answers: Answers, first_method: MethodSide, second_method: MethodSide
) -> Page[Any]:
    """Return the rows of the table of items, sorted by the first method unless the view says otherwise."""
    shift = first_method.ranks - second_method.ranks

    def row(i: int) -> ScoreRow:
        moved = "+" * bool(shift[i] > 0) + format_with_places(float(shift[i]), 0)
        return ScoreRow(
            answers.ids[i],
            answers.shown[i],
            (item_score_mark(first_method, i), item_score_mark(second_method, i)),
            moved,
        )

    columns = {"one": first_method.scores.values, "other": second_method.scores.values, "shift": abs(shift)}
    return build_table_page_in_order(view, matching_item_numbers_in_order(view, answers, columns), row)


def matching_item_numbers_in_order(view: AnalysisView, answers: Answers, columns: dict[str, DrawnArray]) -> Any:
    """Return the items that match the search, in the view's order; those without a figure come last."""
    if view.sort == "item":
        order = np.array(sorted(range(answers.n_items), key=lambda i: natural_sort_key(answers.shown[i])), np.intp)
        order = order if view.order == "up" else order[::-1]
    else:
        values = columns.get(view.sort, columns["one"])
        order = np.argsort(values if view.order == "up" else -values, kind="stable")
    if not view.search:
        return order
    words = view.search.casefold()
    return [i for i in order.tolist() if words in answers.shown[i].casefold() or words in answers.ids[i].casefold()]
