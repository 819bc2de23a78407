"""The parts of the analysis page, in the order in which they stand: two methods side by side, then the tables."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis import score_part, table_part
from app.analysis.contracts import Expected, TableMethod, TableSection
from app.analysis.fits import Fits
from app.analysis.offer import EVERYTHING, Offer
from app.analysis.scatter import Scatter
from app.analysis.view import AnalysisView

Content = Callable[[Fits, AsyncEngine, str, AnalysisView], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class PagePart:
    """reads: what of the address it is made from, besides what is of one table. content: what its template needs.

    room: about how many rows its tables will have; the page keeps room for them until they are there.
    picture: one that belongs to no table.
    """

    title: str
    reads: tuple[str, ...]
    template: str
    content: Content
    room: Callable[[Expected], int]
    picture: Callable[[Fits, AsyncEngine, str, AnalysisView], Awaitable[Scatter | None]] | None = None


SCORES = PagePart(
    "Scores",
    ("one", "other"),
    "admin/_analysis_scores.html",
    score_part.content,
    lambda expected: expected.items,
    score_part.picture,
)


def parts(offer: Offer = EVERYTHING) -> dict[str, PagePart]:
    """Those that a campaign reaches; without an offer, all that there are."""
    scores = {"scores": SCORES} if offer.scores else {}
    return scores | {section.name: of_tables(section, tables) for section, tables in offer.sections.items()}


def of_tables(section: TableSection, tables: Mapping[str, TableMethod]) -> PagePart:
    reads = tuple({name: None for table in tables.values() for name in table.options})
    content = partial(table_part.content, section=section, tables=tables)
    return PagePart(
        section.title,
        reads,
        "admin/_analysis_tables.html",
        content,
        lambda expected: sum(table.room(expected) for table in tables.values()),
    )


async def picture_of(fits: Fits, engine: AsyncEngine, slug: str, name: str, view: AnalysisView) -> Scatter | None:
    """That of a part or of a table. Raises `NotFound` (`table_not_found`)."""
    part = parts().get(name)
    if part is not None and part.picture is not None:
        return await part.picture(fits, engine, slug, view)
    return (await table_part.table_part(fits, engine, slug, name, view)).picture
