"""What a campaign's systems got, segment by segment: a page of them at a time, and one with its outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.content_tables import segments
from app.database.session import driver_of
from app.designs.content import Above, Beside
from app.media.shown import drawn
from app.record.outputs import OutputMean, means, outputs_for

SEGMENTS_PER_PAGE = 20

REPORTS = text("""
    SELECT segment, item, count(*) AS annotators FROM media_reports
    WHERE campaign_id = :campaign AND segment = ANY(CAST(:segments AS int[])) GROUP BY segment, item
""")
SYSTEMS = text("SELECT external_id FROM items WHERE campaign_id = :campaign ORDER BY number")


@dataclass(frozen=True)
class SegmentRow:
    """A segment, and what each system got there; None where it has no output that was judged. reports: how many people
    could not open an output, by the number of its system.
    """

    segment: Row[Any]
    cells: Sequence[OutputMean | None]
    reports: Mapping[int, int]


@dataclass(frozen=True)
class SegmentsPage:
    """campaign: by the criterion by which outputs were judged. systems: by name, in the order of the cells. chosen: the
    segment that is looked at, with the outputs of systems by number and what stands above them, as annotators see them.
    """

    campaign: Any
    systems: Sequence[str]
    rows: Sequence[SegmentRow]
    number: int
    pages: int
    chosen: SegmentRow | None
    outputs: Mapping[int, str]
    above: Sequence[Beside]


async def segments_page(connection: AsyncConnection, campaign: Any, number: int, chosen: str) -> SegmentsPage:
    """The page of this number, or the last; chosen: what its researcher calls a segment."""
    pages = max(1, -(-campaign.segment_count // SEGMENTS_PER_PAGE))
    number = min(number, pages)
    mine = segments.select().where(segments.c.campaign_id == campaign.id)
    first = (number - 1) * SEGMENTS_PER_PAGE
    here = mine.where(segments.c.number.between(first, first + SEGMENTS_PER_PAGE - 1)).order_by(segments.c.number)
    found = (await connection.execute(here)).all()
    one = (await connection.execute(mine.where(segments.c.external_id == chosen))).one_or_none() if chosen else None
    names = list(await connection.scalars(SYSTEMS, {"campaign": campaign.id}))
    rows = await rows_of(connection, campaign, [*found, *([one] if one else [])], len(names))
    outputs = await outputs_for(connection, campaign.id, one.number) if one else {}
    above = Above(one.source, one.reference) if one else Above()
    shown = await drawn(await driver_of(connection), campaign, [*outputs], [*outputs.values()], above)
    outputs = dict(zip(outputs, shown.items, strict=True))
    chosen_row = rows[-1] if one else None
    return SegmentsPage(campaign, names, rows[: len(found)], number, pages, chosen_row, outputs, shown.common)


async def rows_of(
    connection: AsyncConnection, campaign: Any, found: Sequence[Row[Any]], systems: int
) -> list[SegmentRow]:
    """What each system got in these segments."""
    numbers = [row.number for row in found]
    judged = await means(connection, campaign, numbers)
    reports: dict[int, dict[int, int]] = {number: {} for number in numbers}
    for report in await connection.execute(REPORTS, {"campaign": campaign.id, "segments": numbers}):
        reports[report.segment][report.item] = report.annotators
    return [
        SegmentRow(row, [judged.get((row.number, system)) for system in range(systems)], reports[row.number])
        for row in found
    ]
