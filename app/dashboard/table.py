"""The table of items: sorted, searched and paged by PostgreSQL, so that 100,000 items cost some tens of ms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, StringConstraints, field_validator
from sqlalchemy import ColumnElement, Row, Select, Text, and_, cast, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis import calibrated_intervals
from app.dashboard.classes import labels_of_leading_classes
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.scale import MAX_POINTS
from app.http.paging import AddressQuery, Page, PageNumber, SearchWords
from app.inference.ground.arrays import Array
from app.inference.ratings.moderated_means import ModeratedMeans
from app.inference.ratings.shrunken_means import ItemShrinkage

DASHBOARD_ITEMS_PER_PAGE = 20
MAX_OWN_COLUMNS_SHOWN = 6

ScoreColumn = Literal["interval", "posterior", "mean", "shrunken", "sd", "variance", "none"]
NO_EXTRA_COLUMNS: ScoreColumn = "none"  # in an address without any of the others; no column at all is the default
ChartName = Literal["match", "distribution", "uncertainty", "pace", "course"]
OwnColumnName = Annotated[str, StringConstraints(max_length=200)]

ItemSort = Literal["score", "variance", "judgments", "name"]
ITEM_SORT_COLUMNS: dict[ItemSort, ColumnElement[Any]] = {
    "score": posteriors.c.score,
    "variance": posteriors.c.variance,
    "judgments": posteriors.c.judgments,
    "name": items.c.shown,
}
SORTS_OF_JUDGED_ITEMS: tuple[ItemSort, ...] = ("score", "variance")  # the prior of the others is no result
JOIN_ITEM_TO_POSTERIOR = (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number)


class ItemsView(AddressQuery):
    """The rows and columns of the table, the criterion (the first if empty), the item and the chart to show.

    All fields are in the page's address. `own` are columns of the uploaded items; with `by`, only items whose value in
    this column is `value` are shown.
    """

    sort: ItemSort = "score"
    order: Literal["up", "down"] = "down"
    search: SearchWords = ""
    page: PageNumber = 1
    columns: tuple[ScoreColumn, ...] = ("interval",)
    own: Annotated[tuple[OwnColumnName, ...], Field(max_length=MAX_OWN_COLUMNS_SHOWN)] = ()
    by: OwnColumnName = ""
    value: str = Field(default="", max_length=1000)
    chart: ChartName = "match"
    item: str = Field(default="", max_length=1000)
    criterion: str = Field(default="", max_length=200)

    @field_validator("columns")
    @classmethod
    def drop_repeated_columns(cls, columns: tuple[ScoreColumn, ...]) -> tuple[ScoreColumn, ...]:
        chosen = tuple(dict.fromkeys(column for column in columns if column != NO_EXTRA_COLUMNS))
        return chosen or (NO_EXTRA_COLUMNS,)

    def without_own_columns(self) -> "ItemsView":
        """Return the view for users who may not see the columns of the uploaded items."""
        return self.model_copy(update={"own": (), "by": "", "value": ""})

    @property
    def is_filtered(self) -> bool:
        """True if the view leaves out items."""
        return bool(self.search or self.is_filtered_by_column)

    @property
    def is_filtered_by_column(self) -> bool:
        return bool(self.by and self.value)

    @property
    def is_ascending(self) -> bool:
        return self.order == "up"

    def query_after_click_on_column(self, sort: str) -> str:
        """Return the query string after a click on a column's head: sort by it, or reverse the order."""
        ascending = not self.is_ascending if sort == self.sort else sort == "name"
        return self.query(sort=sort, order="up" if ascending else "down", page=1)


@dataclass(frozen=True)
class ItemRow:
    """One row of the table, in places of units, 0 to 100.

    Attributes:
        place: Rank of the row in the view, from 1; items without judgments have no score to rank, and come last.
        item: The item and its posterior.
        score: Score, in the unit of scores.
        low: Lower end of the posterior's 95 % interval, in the unit of scores.
        high: Upper end of the posterior's 95 % interval, in the unit of scores.
        mean: Mean of the judgments, in the unit of means.
        calibrated_low: Lower end of the calibrated 95 % interval, in the unit of means; NaN where there is none.
        calibrated_high: Upper end of the calibrated 95 % interval, in the unit of means; NaN where there is none.
        shrunken_score: Mean shrunk towards those of all items, in the unit of means; NaN where there is none, and
            unless the campaign asks by scores.
        shrunken_low: Lower end of the 95 % interval of `shrunken_score`.
        shrunken_high: Upper end of that interval.
        label: Likeliest label, where classes are counted.

    """

    place: int
    item: Row[Any]
    score: float
    low: float
    high: float
    mean: float
    calibrated_low: float
    calibrated_high: float
    shrunken_score: float
    shrunken_low: float
    shrunken_high: float
    label: str = ""

    @property
    def calibrated(self) -> bool:
        """True if there is a calibrated interval."""
        return self.calibrated_low <= self.calibrated_high

    @property
    def displayed_interval_or_none(self) -> tuple[float, float] | None:
        """The shrunken interval if there is one, else the calibrated one, else None."""
        if self.shrunken_low <= self.shrunken_high:
            return self.shrunken_low, self.shrunken_high
        return (self.calibrated_low, self.calibrated_high) if self.calibrated else None

    @property
    def is_score_outside_interval(self) -> bool:
        """True if the score lies outside its interval, as the mode of a skewed Beta can."""
        return not self.low <= self.score <= self.high


async def load_items_page(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    view: ItemsView,
    intervals: ModeratedMeans,
    shrinkage: ItemShrinkage | None = None,
) -> Page[ItemRow]:
    """Load the rows of a view, with these calibrated intervals; a page beyond the last one is the first.

    If the campaign asks by scores, `shrinkage` has the shrunken means.
    """
    offset = (view.page - 1) * DASHBOARD_ITEMS_PER_PAGE
    rows = (await connection.execute(select_page_of_item_rows_statement(criterion, view, offset))).all()
    if not rows and view.page > 1:
        first_page = view.model_copy(update={"page": 1})
        return await load_items_page(connection, criterion, first_page, intervals, shrinkage)
    family = criterion.law.family
    state = family.columns_of_item_states([row.state for row in rows])
    score = np.array([row.score for row in rows])
    item_intervals = intervals.select_items([row.number for row in rows])
    shrunken = shrunken_scores_and_interval_ends_or_nan([row.number for row in rows], shrinkage)
    values = score, *family.interval(*state), item_intervals.mean, *item_intervals.interval(), *shrunken
    place_rows = zip(*((column * MAX_POINTS).tolist() for column in values), strict=True)
    lines = [
        ItemRow(rank, row, *places) for rank, (row, places) in enumerate(zip(rows, place_rows, strict=True), offset + 1)
    ]
    if family.counts_classes:
        labels = labels_of_leading_classes(criterion.design.classes, family.most_counted_class_of_each_item(state))
        lines = [row_with_label_without_point_values(line, label) for line, label in zip(lines, labels, strict=True)]
    return Page(view.page, DASHBOARD_ITEMS_PER_PAGE, rows[0].found if rows else 0, rows=lines)


def row_with_label_without_point_values(row: ItemRow, label: str) -> ItemRow:
    """Return the row with its label and without point values, which labels do not have."""
    without_mean = replace(row, mean=np.nan, calibrated_low=np.nan, calibrated_high=np.nan)
    return replace(without_mean, label=label, shrunken_score=np.nan, shrunken_low=np.nan, shrunken_high=np.nan)


def shrunken_scores_and_interval_ends_or_nan(
    item_numbers: Sequence[int], shrinkage: ItemShrinkage | None
) -> tuple[Array, Array, Array]:
    """Return the shrunken score of each item and the ends of its interval; NaN without a shrinkage."""
    if shrinkage is None:
        missing = np.full(len(item_numbers), np.nan)
        return missing, missing, missing
    return calibrated_intervals.shrunken_scores_and_interval_ends(shrinkage.shrink_items(item_numbers))


def select_page_of_item_rows_statement(criterion: Criterion[Campaign], view: ItemsView, offset: int) -> Select[Any]:
    """Select posteriors and texts of a page's items, each with the total number of items found."""
    sorted_column = ITEM_SORT_COLUMNS[view.sort]
    order = [sorted_column.asc() if view.is_ascending else sorted_column.desc()]
    if view.sort in SORTS_OF_JUDGED_ITEMS:
        order.insert(0, (posteriors.c.judgments == 0).asc())
    total_query = (
        select(func.count())
        .select_from(select_filtered_item_numbers_statement(criterion, view).subquery())
        .scalar_subquery()
    )
    # A search reads every text, so it must not count in a second query; without a search, that is faster.
    total = func.count().over() if view.is_filtered else total_query
    # The rows are found first and read afterwards: joining 100,000 texts to show 20 of them takes seven times as long.
    # As a literal the limit is known to a generic plan, which then looks up 20 rows instead of joining all.
    page_query = (
        select_filtered_item_numbers_statement(criterion, view)
        .add_columns(total.label("found"))
        .order_by(*order, posteriors.c.number)
    )
    rows = page_query.limit(literal_column(str(DASHBOARD_ITEMS_PER_PAGE))).offset(offset).subquery()
    return (
        select(posteriors, items.c.external_id, items.c.shown, items.c.fields, items.c.retired_at, rows.c.found)
        .join(rows, rows.c.number == posteriors.c.number)
        .join(items, JOIN_ITEM_TO_POSTERIOR)
        .where(posterior_of_criterion_condition(criterion))
        .order_by(*order, posteriors.c.number)
    )


def posterior_of_criterion_condition(criterion: Criterion[Campaign]) -> ColumnElement[bool]:
    return and_(posteriors.c.campaign_id == criterion.campaign.id, posteriors.c.criterion == criterion.number)


def select_filtered_item_numbers_statement(criterion: Criterion[Campaign], view: ItemsView) -> Select[Any]:
    """Select the numbers of all items of a view; texts are joined only where they matter."""
    statement = select(posteriors.c.number).where(posterior_of_criterion_condition(criterion))
    if view.is_filtered or view.sort == "name":
        statement = statement.join(items, JOIN_ITEM_TO_POSTERIOR)
    if view.is_filtered_by_column:
        statement = statement.where(uploaded_column_text_expression(view.by) == view.value)
    if view.search:
        matches = [column.icontains(view.search, autoescape=True) for column in (items.c.shown, items.c.external_id)]
        statement = statement.where(matches[0] | matches[1])
    return statement


def uploaded_column_text_expression(column: str) -> ColumnElement[str]:
    """Return the value of a column of the uploaded items, as text."""
    return items.c.fields.op("->>")(cast(column, Text))
