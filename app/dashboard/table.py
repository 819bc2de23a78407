"""The table of items: sorted, searched and cut into pages by PostgreSQL, so that 100,000 items cost some tens of ms."""

from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np
from sqlalchemy import ColumnElement, Row, Select, and_, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.classes import leading
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.criteria import number_of
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.inference.ratings.moderated import Moderated
from app.record.law import law_of

ROWS = 20

Sort = Literal["score", "variance", "judgments", "name"]
SORTS: dict[Sort, ColumnElement[Any]] = {
    "score": posteriors.c.score,
    "variance": posteriors.c.variance,
    "judgments": posteriors.c.judgments,
    "name": items.c.shown,
}
SAME_ITEM = (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number)


@dataclass(frozen=True)
class ItemsView:
    """Which rows someone looks at, and by which criterion, the first if it is empty; all of it stands in the page's
    address.
    """

    sort: Sort = "score"
    ascending: bool = False
    search: str = ""
    page: int = 1
    item: str = ""
    criterion: str = ""

    def query(self, **changes: Any) -> str:
        """The address of this view with some parts changed; what is as usual is left out."""
        return "?" + urlencode(self.parts(**changes))

    def kept(self, **changes: Any) -> list[tuple[str, Any]]:
        """The hidden fields of a form that asks for a page."""
        return self.parts(page=1, **changes)

    def parts(self, **changes: Any) -> list[tuple[str, Any]]:
        parts: dict[str, Any] = {"sort": self.sort, "order": "up" if self.ascending else "down"}
        parts |= {"search": self.search, "page": self.page, "item": self.item, "criterion": self.criterion} | changes
        usual = {"sort": "score", "order": "down", "search": "", "page": 1, "item": "", "criterion": ""}
        return [(name, value) for name, value in parts.items() if value != usual[name]]

    def sorted_by(self, sort: str) -> str:
        """The address after a press on a column's head: sort by it, or turn the order around."""
        ascending = not self.ascending if sort == self.sort else sort == "name"
        return self.query(sort=sort, order="up" if ascending else "down", page=1)


@dataclass(frozen=True)
class ItemRow:
    """One item's row, as places of units, 0 to 100: score and the ends of its posterior's 95 % interval in that of
    scores; mean of the judgments and the ends of its calibrated 95 % interval, NaN where there is none, in that of
    means. label: the likeliest one, where classes are counted.
    """

    place: int
    item: Row[Any]
    score: float
    low: float
    high: float
    mean: float
    calibrated_low: float
    calibrated_high: float
    label: str = ""

    @property
    def calibrated(self) -> bool:
        """Whether annotators' disagreement tells an interval."""
        return self.calibrated_low <= self.calibrated_high

    @property
    def outside(self) -> bool:
        """Whether the score lies beside its interval, as the mode of a skewed Beta can."""
        return not self.low <= self.score <= self.high


@dataclass(frozen=True)
class ItemsPage:
    view: ItemsView
    lines: list[ItemRow]
    found: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.found // ROWS))


async def page_of(connection: AsyncConnection, campaign: Any, view: ItemsView, intervals: Moderated) -> ItemsPage:
    """The rows of a view, with these calibrated intervals; a page beyond the last one is the first."""
    offset = (view.page - 1) * ROWS
    rows = (await connection.execute(rows_of(campaign, view, offset))).all()
    if not rows and view.page > 1:
        return await page_of(connection, campaign, replace(view, page=1), intervals)
    family = law_of(campaign).family
    state = family.columns([row.state for row in rows])
    score = np.array([row.score for row in rows])
    mine = intervals.of([row.number for row in rows])
    values = score, *family.interval(*state), mine.mean, *mine.interval()
    numbers = zip(*((column * POINTS).tolist() for column in values), strict=True)
    lines = [ItemRow(place, row, *six) for place, (row, six) in enumerate(zip(rows, numbers, strict=True), offset + 1)]
    if family.counts_classes:
        labels = leading(design_of(campaign).classes, family.likeliest(state))
        lines = [labelled(line, label) for line, label in zip(lines, labels, strict=True)]
    return ItemsPage(view, lines, rows[0].found if rows else 0)


def labelled(line: ItemRow, label: str) -> ItemRow:
    """With its label, and without what is of points, which are no shares."""
    return replace(line, label=label, mean=np.nan, calibrated_low=np.nan, calibrated_high=np.nan)


def rows_of(campaign: Any, view: ItemsView, offset: int) -> Select[Any]:
    """Posteriors and texts of a page's items, each with the number of all that were found."""
    order = SORTS[view.sort].asc() if view.ascending else SORTS[view.sort].desc()
    everything = select(func.count()).select_from(chosen(campaign, view).subquery()).scalar_subquery()
    # A search looks into every text, so it must not look twice; without one, counting apart is faster.
    found = func.count().over() if view.search else everything
    # The rows are found first and read afterwards: joining 100,000 texts to show 20 of them takes seven times as long.
    # As a literal the limit is known to a generic plan, which then looks up 20 rows instead of joining all.
    here = chosen(campaign, view).add_columns(found.label("found")).order_by(order, posteriors.c.number)
    rows = here.limit(literal_column(str(ROWS))).offset(offset).subquery()
    return (
        select(posteriors, items.c.external_id, items.c.shown, rows.c.found)
        .join(rows, rows.c.number == posteriors.c.number)
        .join(items, SAME_ITEM)
        .where(of(campaign))
        .order_by(order, posteriors.c.number)
    )


def of(campaign: Any) -> ColumnElement[bool]:
    """The posteriors of a campaign, by the criterion by which it is read."""
    return and_(posteriors.c.campaign_id == campaign.id, posteriors.c.criterion == number_of(campaign))


def chosen(campaign: Any, view: ItemsView) -> Select[Any]:
    """The numbers of all items of a view; the texts are looked at only where they matter."""
    statement = select(posteriors.c.number).where(of(campaign))
    if view.search or view.sort == "name":
        statement = statement.join(items, SAME_ITEM)
    if view.search:
        words = [column.icontains(view.search, autoescape=True) for column in (items.c.shown, items.c.external_id)]
        statement = statement.where(words[0] | words[1])
    return statement
