"""The table of items: sorted, searched and cut into pages by PostgreSQL, so that 100,000 items cost some tens of ms."""

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np
from sqlalchemy import ColumnElement, Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import items, posteriors
from app.inference.online import ONLINE

ROWS = 20

Sort = Literal["score", "variance", "judgments", "name"]
SORTS: dict[Sort, ColumnElement[Any]] = {
    "score": posteriors.c.score,
    "variance": posteriors.c.variance,
    "judgments": posteriors.c.judgments,
    "name": items.c.shown,
}


@dataclass(frozen=True)
class View:
    """Which rows someone looks at; all of it stands in the page's address."""

    sort: Sort = "score"
    ascending: bool = False
    search: str = ""
    page: int = 1
    item: str = ""

    def query(self, **changes: Any) -> str:
        """The address of this view with some parts changed; what is as usual is left out."""
        parts: dict[str, Any] = {"sort": self.sort, "order": "up" if self.ascending else "down"}
        parts |= {"search": self.search, "page": self.page, "item": self.item} | changes
        usual = {"sort": "score", "order": "down", "search": "", "page": 1, "item": ""}
        return "?" + urlencode({name: value for name, value in parts.items() if value != usual[name]})

    def sorted_by(self, sort: str) -> str:
        """The address after a press on a column's head: sort by it, or turn the order around."""
        ascending = not self.ascending if sort == self.sort else sort == "name"
        return self.query(sort=sort, order="up" if ascending else "down", page=1)


@dataclass(frozen=True)
class Line:
    """One item's row: score and the ends of its 95 % interval on the scale of the law."""

    place: int
    item: Row[Any]
    low: float
    high: float


@dataclass(frozen=True)
class Page:
    view: View
    lines: list[Line]
    found: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.found // ROWS))


async def page_of(connection: AsyncConnection, campaign: Row[Any], view: View) -> Page:
    """The rows of a view; a page beyond the last one is the last."""
    found = await connection.scalar(select(func.count()).select_from(chosen(campaign.id, view).subquery())) or 0
    number = min(view.page, max(1, -(-found // ROWS)))
    offset = (number - 1) * ROWS
    order = SORTS[view.sort].asc() if view.ascending else SORTS[view.sort].desc()
    # The rows are found first and read afterwards: joining 100,000 texts to show 20 of them takes seven times as long.
    here = chosen(campaign.id, view).order_by(order, posteriors.c.number).limit(ROWS).offset(offset).subquery()
    statement = (
        select(posteriors, items.c.external_id, items.c.shown)
        .join(items, (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number))
        .where(posteriors.c.campaign_id == campaign.id, posteriors.c.number.in_(select(here.c.number)))
        .order_by(order, posteriors.c.number)
    )
    rows = (await connection.execute(statement)).all()
    low, high = ONLINE[campaign.update_law].interval(
        np.array([row.a for row in rows]), np.array([row.b for row in rows])
    )
    lines = [
        Line(place, *line) for place, line in enumerate(zip(rows, low.tolist(), high.tolist(), strict=True), offset + 1)
    ]
    return Page(View(view.sort, view.ascending, view.search, number, view.item), lines, found)


def chosen(campaign_id: int, view: View) -> Select[Any]:
    """The numbers of all items of a view; the texts are looked at only where they matter."""
    statement = select(posteriors.c.number).where(posteriors.c.campaign_id == campaign_id)
    if view.search or view.sort == "name":
        statement = statement.join(
            items, (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number)
        )
    if view.search:
        words = [column.icontains(view.search, autoescape=True) for column in (items.c.shown, items.c.external_id)]
        statement = statement.where(words[0] | words[1])
    return statement


async def item_count(connection: AsyncConnection, campaign_id: int) -> int:
    """How many items a campaign has, launched or not."""
    statement = select(func.count()).select_from(items).where(items.c.campaign_id == campaign_id)
    return int(await connection.scalar(statement) or 0)
