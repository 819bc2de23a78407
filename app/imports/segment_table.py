"""Results of a campaign's systems segment by segment: a page of segments, and one segment with its outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.content_tables import segments
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.content import RenderedContext, SourceAndReference
from app.designs.criteria import Criterion
from app.http.paging import Page
from app.media.render_items import render_campaign_items
from app.record.outputs import OutputMean, load_output_mean_by_segment_and_system, load_output_text_by_system

SEGMENTS_PER_PAGE = 20

COUNT_MEDIA_REPORTS_OF_OUTPUTS = text("""
    SELECT segment, item, count(*) AS annotators FROM media_reports
    WHERE campaign_id = :campaign AND segment = ANY(CAST(:segments AS int[])) GROUP BY segment, item
""")
LIST_CHECKS_OF_SEGMENT = text("""
    SELECT i.external_id, i.kind, i.shown, i.expected, (
        SELECT count(*) FROM check_answers a WHERE a.campaign_id = :campaign AND a.check_number = i.number
    ) AS answers
    FROM check_items i WHERE i.campaign_id = :campaign AND i.segment = :segment ORDER BY i.number
""")
LIST_SYSTEM_NAMES = text("SELECT external_id FROM items WHERE campaign_id = :campaign ORDER BY number")


@dataclass(frozen=True)
class SegmentResults:
    """A segment and the mean score of each system there, None where it has no judged output.

    `report_count_by_system`: how many annotators could not open the output, by the number of its system.
    """

    segment: Row[Any]
    output_means: Sequence[OutputMean | None]
    report_count_by_system: Mapping[int, int]


@dataclass(frozen=True)
class SegmentsPage:
    """A page of segments with their results.

    Attributes:
        criterion: The criterion by which the outputs were judged.
        systems: Names of the systems, in the order of the cells.
        chosen: The segment that is shown with its outputs.
        outputs: Its outputs by system number, as annotators see them.
        checks: Its gold and attention items, each with the output as annotators see it.
        above: Source and reference above the outputs, as annotators see them.

    """

    criterion: Criterion[Campaign]
    systems: Sequence[str]
    page: Page[SegmentResults]
    chosen: SegmentResults | None
    outputs: Mapping[int, str]
    checks: Sequence[tuple[Row[Any], str]]
    above: Sequence[RenderedContext]


async def load_segments_page_with_chosen(
    connection: AsyncConnection, criterion: Criterion[Campaign], page_number: int, chosen_id: str
) -> SegmentsPage:
    """Load the page of this number, or the last one, with the segment that the researcher calls `chosen_id`."""
    page: Page[SegmentResults] = Page(page_number, SEGMENTS_PER_PAGE, criterion.campaign.segment_count)
    campaign_segments = segments.select().where(segments.c.campaign_id == criterion.campaign.id)
    page_segments = campaign_segments.where(segments.c.number.between(page.offset, page.last_place - 1)).order_by(
        segments.c.number
    )
    segment_rows = (await connection.execute(page_segments)).all()
    chosen_segment = (
        (await connection.execute(campaign_segments.where(segments.c.external_id == chosen_id))).one_or_none()
        if chosen_id
        else None
    )
    names = list(await connection.scalars(LIST_SYSTEM_NAMES, {"campaign": criterion.campaign.id}))
    rows = await load_segment_results(
        connection, criterion, [*segment_rows, *([chosen_segment] if chosen_segment else [])], len(names)
    )
    outputs = (
        await load_output_text_by_system(connection, criterion.campaign.id, chosen_segment.number)
        if chosen_segment
        else {}
    )
    parameters = {"campaign": criterion.campaign.id, "segment": chosen_segment.number if chosen_segment else None}
    checks = (await connection.execute(LIST_CHECKS_OF_SEGMENT, parameters)).all() if chosen_segment else []
    source_and_reference = (
        SourceAndReference(chosen_segment.source, chosen_segment.reference) if chosen_segment else SourceAndReference()
    )
    drawn_outputs = await render_campaign_items(
        await driver_of(connection),
        criterion.campaign,
        [*outputs, *(-1 for _ in checks)],
        [*outputs.values(), *(check.shown for check in checks)],
        source_and_reference,
    )
    drawn_checks = drawn_outputs.items[len(outputs) :]
    outputs = dict(zip(outputs, drawn_outputs.items[: len(outputs)], strict=True))
    chosen_row = rows[-1] if chosen_segment else None
    return SegmentsPage(
        criterion,
        names,
        replace(page, rows=rows[: len(segment_rows)]),
        chosen_row,
        outputs,
        [*zip(checks, drawn_checks, strict=True)],
        drawn_outputs.shared_context,
    )


async def load_segment_results(
    connection: AsyncConnection, criterion: Criterion[Campaign], segment_rows: Sequence[Row[Any]], system_count: int
) -> list[SegmentResults]:
    """Return the mean scores of each system in these segments."""
    numbers = [row.number for row in segment_rows]
    mean_by_output = await load_output_mean_by_segment_and_system(connection, criterion, numbers)
    reports: dict[int, dict[int, int]] = {number: {} for number in numbers}
    for report in await connection.execute(
        COUNT_MEDIA_REPORTS_OF_OUTPUTS, {"campaign": criterion.campaign.id, "segments": numbers}
    ):
        reports[report.segment][report.item] = report.annotators
    return [
        SegmentResults(
            row, [mean_by_output.get((row.number, system)) for system in range(system_count)], reports[row.number]
        )
        for row in segment_rows
    ]
