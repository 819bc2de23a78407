"""Which segment a HIT that was answered elsewhere was about, where a campaign's items are systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.crowd.answered import ResultRow
from app.database.campaign import item_count
from app.database.content_tables import segments
from app.database.session import driver_of
from app.errors import shortened
from app.record.outputs import segments_of
from app.selection.segments import Segments
from app.upload import refuse


@dataclass(frozen=True)
class AskedSegments:
    """The segments of a campaign by the researcher's ids, and their outputs; none where items are shown as they are."""

    numbers: Mapping[str, int]
    outputs: Segments | None

    def of(self, row: ResultRow, shown: Sequence[int]) -> tuple[int | None, tuple[int, ...] | None]:
        """The segment of a HIT of these items, and of each item the one under which its output was shown: where outputs
        are the same and have one value; None where each was shown by itself.

        Raises `Invalid`: `segment_missing`, `segment_unknown`, `output_unknown`.
        """
        if self.outputs is None:
            if row.segment:
                refuse("segment_unknown", row.line, "the items of this campaign are no systems, and have no segments.")
            return None, None
        segment = self.number(row)
        absent = self.outputs.absent(segment)
        for place, item in enumerate(shown):
            if item in absent:
                said = f"“{shortened(row.items[place])}” has no output for the segment “{shortened(row.segment)}”."
                refuse("output_unknown", row.line_of_item(place), said)
        return segment, once(self.outputs.shown_as(segment, shown), shown, row)

    def number(self, row: ResultRow) -> int:
        if not row.segment:
            refuse("segment_missing", row.line, "the items of this campaign are systems, so a HIT needs its segment.")
        if row.segment not in self.numbers:
            said = shortened(row.segment)
            refuse("segment_unknown", row.line, f"the campaign has no segment “{said}”.", segment=said)
        return self.numbers[row.segment]


def once(shown_as: Sequence[int] | None, shown: Sequence[int], row: ResultRow) -> tuple[int, ...] | None:
    """None if outputs that are the same have several values: then they were shown apart."""
    marks = dict(zip(shown, map(repr, row.scores), strict=True))  # so that NaN is equal to itself
    if shown_as is None or any(marks[item] != marks[first] for item, first in zip(shown, shown_as, strict=True)):
        return None
    return tuple(shown_as)


async def asked_segments(connection: AsyncConnection, campaign: Row[Any]) -> AskedSegments:
    """Those of a campaign."""
    if not campaign.segment_count:
        return AskedSegments({}, None)
    rows = await connection.execute(
        select(segments.c.external_id, segments.c.number).where(segments.c.campaign_id == campaign.id)
    )
    systems = await connection.scalar(select(item_count(campaign.id))) or 0
    outputs = await segments_of(await driver_of(connection), campaign.id, campaign.segment_count, systems)
    return AskedSegments({row.external_id: row.number for row in rows}, outputs)
