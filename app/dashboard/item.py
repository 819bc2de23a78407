"""One item: its posterior as a curve, now and after its first judgments, and the answers about it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.calibrated_intervals import shrunken_scores_and_interval_ends
from app.dashboard.classes import LabelCount, label_counts_of_item, labels_of_leading_classes
from app.dashboard.history import PosteriorHistory
from app.dashboard.judgment_dots import JudgmentDot, judgment_dots
from app.dashboard.table import JOIN_ITEM_TO_POSTERIOR
from app.database.session import driver_of
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.content import RenderedItems
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.designs.scale import MAX_POINTS
from app.designs.unjudged import UNJUDGED_KEY
from app.errors import NotFound, shorten_echo
from app.http.paging import Page
from app.inference.ground.arrays import Array
from app.inference.online.law import PosteriorFamily
from app.inference.ratings.moderated_means import ModeratedMeans
from app.inference.ratings.shrunken_means import ItemShrinkage
from app.media.render_items import render_campaign_items
from app.record import remarks
from app.record.law_runner import LawRunner
from app.record.law_storage import Revision
from app.record.responses import COUNTING_RESPONSES_CONDITION, Response

CURVE_STEPS = 200
MAX_REMARKS_ON_ITEM = 5  # the page of remarks has all

# No index holds the items of a response: it would cost every answer more than this query costs (30 ms in 200,000).
LIST_ANSWERS_ABOUT_ITEM = text(f"""
    SELECT a.name AS annotator, r.annotator_id, r.seq, r.hit_id, r.items, r.values, r.received_at, r.counts,
           r.extra -> '{UNJUDGED_KEY}' ->> CAST(:number AS text) AS reason,
           ARRAY(SELECT i.external_id FROM unnest(r.items) WITH ORDINALITY AS shown (number, place)
                 JOIN items i ON i.campaign_id = :campaign AND i.number = shown.number
                 WHERE shown.number <> :number ORDER BY place) AS ids
    FROM (
        SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts
        FROM responses WHERE campaign_id = :campaign AND :number = ANY(items)
    ) AS r
    JOIN named_annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    ORDER BY r.seq DESC
""")


@dataclass(frozen=True)
class PosteriorCurve:
    """Posterior of an item after a number of judgments, in places of its unit, 0 to 100.

    Attributes:
        judgments: Number of judgments.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        density: Density along the places of `ItemPage.x`.
        label: Likeliest label, where classes are counted.

    """

    judgments: int
    score: float
    low: float
    high: float
    density: list[float]
    label: str = ""

    @property
    def is_score_outside_interval(self) -> bool:
        """True if the score lies outside its interval, as the mode of a skewed Beta can."""
        return not self.low <= self.score <= self.high


@dataclass(frozen=True)
class ItemJudgment:
    """One judgment of the item, as it was given.

    Attributes:
        annotator: Name of the annotator.
        answer_text: The judgment in words.
        received_at: When it came.
        counts: False if a decision excludes it.
        value: The stored value.
        hit_id: Number of the HIT that it was in.
        companions: Ids of the other items of this HIT, as presented.
        by_criterion: The judgment in words by each of several criteria.
        weight: Weight, 0 to 1; None where all judgments that count weigh the same.
        corrected: Corrected score, in points; None where no judgment is corrected.

    """

    annotator: str
    answer_text: str
    received_at: datetime
    counts: bool
    value: float
    hit_id: int
    companions: Sequence[str] = ()
    by_criterion: Sequence[str] = ()
    weight: float | None = None
    corrected: float | None = None


@dataclass(frozen=True)
class UnableAnnotator:
    """Annotator who could not judge the item, and the reason."""

    annotator: str
    reason: str
    received_at: datetime
    counts: bool


@dataclass(frozen=True)
class ItemPage:
    """An item, its posterior and the answers about it.

    Attributes:
        row: Texts, state and number of judgments.
        x: Places at which densities are drawn, in the unit of scores.
        earlier: Posteriors after the first judgments.
        answers: Answers, newest first.
        calibrated: Mean of the answers and ends of its calibrated interval, in the unit of means; None if there is
            none.
        shrunken: Shrunken score and ends of its interval, in the unit of means, for a campaign that asks by scores.
        labels: How often each class was given, where values are classes.
        unable: Annotators who could not judge the item.
        drawn: The item as annotators see it.
        criteria: Posterior now by each of several criteria, by name, without densities.
        remarks: Newest remarks of annotators about the item; None if the campaign asks for none and has none.
        dots: Judgments as dots on the scale; empty where judgments are not places on one.

    """

    row: Row[Any]
    x: list[float]
    now: PosteriorCurve
    earlier: list[PosteriorCurve]
    answers: Sequence[ItemJudgment]
    calibrated: tuple[float, float, float] | None
    shrunken: tuple[float, float, float] | None
    labels: Sequence[LabelCount]
    unable: Sequence[UnableAnnotator]
    drawn: RenderedItems
    criteria: Mapping[str, PosteriorCurve]
    remarks: Page[Row[Any]] | None
    dots: Sequence[JudgmentDot]

    @property
    def displayed_interval_or_none(self) -> tuple[float, float] | None:
        """The shrunken interval if there is one, else the calibrated one, else None."""
        mean_and_interval = self.shrunken or self.calibrated
        return mean_and_interval and mean_and_interval[1:]

    @property
    def weighted_mean(self) -> float | None:
        """Weighted mean of the corrected scores; None where all judgments weigh the same."""
        counted = [answer for answer in self.answers if answer.counts]
        weight = np.array([answer.weight for answer in counted], np.float64)
        corrected = np.array([answer.corrected for answer in counted], np.float64)
        return float(weight @ corrected / weight.sum()) if len(weight) and np.isfinite(weight).all() else None

    @property
    def curves(self) -> dict[str, Any]:
        """Curves that the script of the page draws."""
        return {"x": self.x, "now": asdict(self.now), "earlier": [asdict(curve) for curve in self.earlier]}


async def load_item_page_or_refuse(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    external_id: str,
    history: PosteriorHistory,
    intervals: ModeratedMeans,
    *,
    shrinkage: ItemShrinkage | None = None,
) -> ItemPage:
    """Load an item by the id that its researcher gave it. Raises `NotFound` (`item_not_found`).

    The connection must come from `open_snapshot`. If the campaign asks by scores, `shrinkage` has the shrunken means.
    """
    statement = select(posteriors, items.c.external_id, items.c.shown, items.c.fields).join_from(
        items, posteriors, JOIN_ITEM_TO_POSTERIOR
    )
    item_statement = statement.where(items.c.campaign_id == criterion.campaign.id, items.c.external_id == external_id)
    rows = (await connection.execute(item_statement.order_by(posteriors.c.criterion))).all()
    if not rows:
        shortened_id = shorten_echo(external_id)
        raise NotFound(
            f"“{criterion.campaign.name}” has no item “{shortened_id}”.", code="item_not_found", item=shortened_id
        )
    row, law = rows[criterion.number], criterion.law
    answers, unable = await load_item_judgments_and_unable_annotators(connection, criterion, row.number)
    if weight_request := law.judgment_weights_querying_state_or_none(row.number):
        law_state = LawRunner(
            await driver_of(connection), Revision(criterion.campaign.id, row.revision, row.criterion), law, {}
        )
        answers = item_judgments_with_weights(
            answers, *await law_state.run_law_steps_answering_their_queries(weight_request)
        )
    family = law.family
    x = density_grid_points(family.support, row.score, row.variance)
    classes = criterion.design.classes
    current_curve = posterior_curve(family, row.judgments, row.state, x, classes)
    earlier_curves = [
        posterior_curve(family, *moment, x, classes)
        for moment in history.early_judgment_counts_and_states_of_item(row.number)
    ]
    labels = label_counts_of_item(classes, [answer.value for answer in answers if answer.counts], family, row.state)
    calibrated_mean = (
        None
        if family.counts_classes
        else calibrated_mean_and_interval_ends_or_none(intervals.select_items([row.number]))
    )
    shrunken = shrunken_score_with_interval_ends(row.number, shrinkage) if calibrated_mean and shrinkage else None
    shown = await render_campaign_items(await driver_of(connection), criterion.campaign, [row.number], [row.shown])
    criterion_curves = (
        posterior_curve_without_density_by_criterion(criterion.campaign, rows)
        if criterion.campaign.has_criteria
        else {}
    )
    item_remarks = await load_newest_remarks_on_item_or_none(connection, criterion.campaign, external_id)
    return ItemPage(
        row,
        (x * MAX_POINTS).tolist(),
        current_curve,
        earlier_curves,
        answers,
        calibrated_mean,
        shrunken,
        labels,
        unable,
        shown,
        criterion_curves,
        item_remarks,
        judgment_dots(criterion.design, answers),
    )


async def load_newest_remarks_on_item_or_none(
    connection: AsyncConnection, campaign: Campaign, external_id: str
) -> Page[Row[Any]] | None:
    """Load the newest comments and flags on an item; None if the campaign shows none."""
    if not await remarks.are_remarks_asked_or_stored(connection, campaign):
        return None
    return await remarks.load_remarks_page(
        connection, campaign.id, remarks.RemarksQuery(item=external_id), page_size=MAX_REMARKS_ON_ITEM
    )


def posterior_curve_without_density_by_criterion(
    campaign: Campaign, rows: Sequence[Row[Any]]
) -> dict[str, PosteriorCurve]:
    """Return an item's posterior by each criterion, without its density."""
    family, empty_grid = campaign.law.family, np.zeros(0)
    return {
        criterion.name: posterior_curve(family, row.judgments, row.state, empty_grid, criterion.design.classes)
        for criterion, row in zip(campaign.criteria, rows, strict=True)
    }


async def load_item_judgments_and_unable_annotators(
    connection: AsyncConnection, criterion: Criterion[Campaign], item_number: int
) -> tuple[list[ItemJudgment], list[UnableAnnotator]]:
    """Load the answers about an item and the annotators who could not judge it, newest first."""
    designs = [part.design for part in criterion.campaign.criteria]
    rows = (
        await connection.execute(LIST_ANSWERS_ABOUT_ITEM, {"campaign": criterion.campaign.id, "number": item_number})
    ).all()
    unable = [
        UnableAnnotator(row.annotator, row.reason, row.received_at, row.counts)
        for row in rows
        if row.reason is not None
    ]
    rows_with_responses = [(row, split_row_into_criterion_responses(row, len(designs))) for row in rows]
    judgments = [
        build_item_judgment(criterion.number, designs, row, responses, item_number)
        for row, responses in rows_with_responses
        if item_number in responses[0].items
    ]
    return judgments, unable


def split_row_into_criterion_responses(row: Row[Any], criterion_count: int) -> list[Response]:
    size = len(row.items)
    parts = [row.values[k * size : (k + 1) * size] for k in range(criterion_count)]
    return [Response.from_stored(row.seq, row.annotator_id, row.items, part) for part in parts]


def build_item_judgment(
    criterion: int,
    designs: Sequence[Design],
    row: Row[Any],
    responses: Sequence[Response],
    item_number: int,
) -> ItemJudgment:
    places = [response.items.index(item_number) for response in responses]
    answer_texts = [
        design.format_value_at_position(response.values, place)
        for design, response, place in zip(designs, responses, places, strict=True)
    ]
    value = responses[criterion].values[places[criterion]]
    texts_by_criterion = answer_texts if len(answer_texts) > 1 else ()
    return ItemJudgment(
        row.annotator,
        answer_texts[criterion],
        row.received_at,
        row.counts,
        value,
        row.hit_id,
        row.ids,
        texts_by_criterion,
    )


def item_judgments_with_weights(
    answers: Sequence[ItemJudgment], weights: Sequence[float], corrected_scores: Sequence[float]
) -> list[ItemJudgment]:
    """Add weights and corrected scores, which are given first to last, to the answers that count."""
    remaining, weighted_answers = list(zip(weights, corrected_scores, strict=True)), []
    for answer in answers:
        if answer.counts:
            weight, score = remaining.pop()
            weighted_answers.append(replace(answer, weight=weight, corrected=MAX_POINTS * score))
        else:
            weighted_answers.append(answer)
    return weighted_answers


def calibrated_mean_and_interval_ends_or_none(estimates: ModeratedMeans) -> tuple[float, float, float] | None:
    """Mean, low and high of one item, as places of their unit; None where there is no interval."""
    mean, low, high = (MAX_POINTS * float(value[0]) for value in (estimates.mean, *estimates.interval()))
    return (mean, low, high) if low <= high else None


def shrunken_score_with_interval_ends(item_number: int, shrinkage: ItemShrinkage) -> tuple[float, float, float]:
    """Shrunken score, low and high of one item with an interval, as places of their unit."""
    columns = shrunken_scores_and_interval_ends(shrinkage.shrink_items([item_number]))
    score, low, high = (MAX_POINTS * float(value[0]) for value in columns)
    return score, low, high


def posterior_curve(
    family: PosteriorFamily,
    judgment_count: int,
    parameters: Sequence[float],
    grid_points: Array,
    classes: Sequence[str],
) -> PosteriorCurve:
    """Evaluate a posterior at `grid_points`, on the scale of the law.

    Args:
        family: Family of the posterior.
        judgment_count: Number of judgments behind it.
        parameters: Its parameters.
        grid_points: Where the density is evaluated, (n,), on the scale of the law.
        classes: Names of the classes, if there are any.

    """
    score, low, high = (
        float(value) * MAX_POINTS for value in (family.score(*parameters), *family.interval(*parameters))
    )
    label = (
        labels_of_leading_classes(
            classes, family.most_counted_class_of_each_item(family.columns_of_item_states([parameters]))
        )[0]
        if family.counts_classes
        else ""
    )
    return PosteriorCurve(
        judgment_count, score, low, high, (family.density(*parameters, grid_points) / MAX_POINTS).tolist(), label
    )


def density_grid_points(support: tuple[float, float], score: float, variance: float) -> Array:
    """Return where the curve is drawn: the middles of equal steps, since a density may be infinite at the very ends."""
    low, high = support
    if not np.isfinite(low) or not np.isfinite(high):
        half_width = 4 * variance**0.5
        low, high = min(0.0, score - half_width), max(1.0, score + half_width)
    middles: Array = low + (np.arange(CURVE_STEPS) + 0.5) / CURVE_STEPS * (high - low)
    return middles
