"""The parts of the analysis page in their order: findings, two methods side by side, then the tables."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis import findings_part, score_page_part, table_page_part
from app.analysis.available_methods import ALL_METHODS, AvailableMethods
from app.analysis.fit_cache import FitCache
from app.analysis.method_types import TableMethod, TableSection
from app.analysis.scatter import Scatter
from app.analysis.view import AnalysisView

ContextLoader = Callable[[FitCache, AsyncEngine, str, AnalysisView], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class PagePart:
    """A part of the analysis page.

    Attributes:
        address_fields: Fields of the address that the part depends on, besides those of a single table.
        load_picture: Returns a picture that belongs to no table.

    """

    title: str
    address_fields: tuple[str, ...]
    template: str
    load_context: ContextLoader
    load_picture: Callable[[FitCache, AsyncEngine, str, AnalysisView], Awaitable[Scatter | None]] | None = None


SCORES_PART = PagePart(
    "Scores",
    ("one", "other"),
    "admin/_analysis_scores.html",
    score_page_part.load_scores_template_context,
    score_page_part.load_scores_picture_or_none,
)


def page_parts_by_name(available: AvailableMethods = ALL_METHODS) -> dict[str, PagePart]:
    """Return the parts that a campaign supports; by default all parts."""
    findings = {"findings": build_findings_page_part(available.tables)}
    scores = {"scores": SCORES_PART} if available.scores else {}
    return (
        findings
        | scores
        | {section.name: build_tables_page_part(section, tables) for section, tables in available.sections.items()}
    )


def build_findings_page_part(tables: Mapping[str, TableMethod]) -> PagePart:
    """Return the part with what these tables and the scores show, in sentences."""
    return PagePart(
        "Findings",
        ("one", "other", "classes", "baseline"),
        "admin/_analysis_findings.html",
        partial(findings_part.load_findings_template_context, table_names=tables),
    )


def build_tables_page_part(section: TableSection, tables: Mapping[str, TableMethod]) -> PagePart:
    reads = tuple({name: None for table in tables.values() for name in table.options})
    content = partial(table_page_part.load_tables_template_context, section=section, table_names=tables)
    return PagePart(
        section.title,
        reads,
        "admin/_analysis_tables.html",
        content,
    )


async def load_analysis_picture_or_none(
    fits: FitCache, engine: AsyncEngine, slug: str, part_or_table: str, view: AnalysisView
) -> Scatter | None:
    """Return the picture of a part or of a table.

    Raises:
        NotFound: `table_not_found`.

    """
    part = page_parts_by_name().get(part_or_table)
    if part is not None and part.load_picture is not None:
        return await part.load_picture(fits, engine, slug, view)
    return (await table_page_part.load_table_part_or_refuse(fits, engine, slug, part_or_table, view)).picture
