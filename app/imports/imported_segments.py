"""Segments of HITs that were answered elsewhere, in campaigns whose items are systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.result_format import ResultRow
from app.database.campaign import number_of_items_sql
from app.database.content_tables import segments
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.errors import shorten_echo
from app.record.outputs import load_segment_index
from app.selection.segments import SegmentIndex
from app.uploads import raise_upload_refusal_at_line


@dataclass(frozen=True)
class ImportedSegments:
    """The segments of a campaign by the researcher's ids, and their outputs; both empty if items are no systems."""

    number_by_id: Mapping[str, int]
    outputs: SegmentIndex | None

    def segment_and_first_equal_items_of_hit(
        self, result_row: ResultRow, item_numbers: Sequence[int]
    ) -> tuple[int | None, tuple[int, ...] | None]:
        """Return the segment of a HIT, and for each item the first item with the same output.

        Equal outputs with the same score were shown once. The second value is None if each output was shown by itself.

        Raises `Invalid`: `segment_missing`, `segment_unknown`, `output_unknown`.
        """
        if self.outputs is None:
            if result_row.segment:
                raise_upload_refusal_at_line(
                    "segment_unknown",
                    result_row.line,
                    "the items of this campaign are not systems and have no segments.",
                )
            return None, None
        segment = self.segment_number(result_row)
        systems_without_output = self.outputs.systems_without_output(segment)
        for position, item in enumerate(item_numbers):
            if item in systems_without_output:
                message = (
                    f"“{shorten_echo(result_row.items[position])}” has no output for the segment "
                    f"“{shorten_echo(result_row.segment)}”."
                )
                raise_upload_refusal_at_line("output_unknown", result_row.line_number_of_item_at(position), message)
        return segment, shown_as_or_none_if_scores_differ(
            self.outputs.first_equal_system_of_each_or_none(segment, item_numbers), item_numbers, result_row
        )

    def segment_number(self, result_row: ResultRow) -> int:
        if not result_row.segment:
            raise_upload_refusal_at_line(
                "segment_missing",
                result_row.line,
                "the items of this campaign are systems, so a task needs its segment.",
            )
        if result_row.segment not in self.number_by_id:
            segment_name = shorten_echo(result_row.segment)
            raise_upload_refusal_at_line(
                "segment_unknown",
                result_row.line,
                f"the campaign has no segment “{segment_name}”.",
                segment=segment_name,
            )
        return self.number_by_id[result_row.segment]


def shown_as_or_none_if_scores_differ(
    shown_as: Sequence[int] | None, item_numbers: Sequence[int], result_row: ResultRow
) -> tuple[int, ...] | None:
    """Return `shown_as`; None if equal outputs have different scores, since they were shown apart then."""
    score_by_item = dict(zip(item_numbers, map(repr, result_row.scores), strict=True))  # as text, NaN equals itself
    if shown_as is None or any(
        score_by_item[item] != score_by_item[first] for item, first in zip(item_numbers, shown_as, strict=True)
    ):
        return None
    return tuple(shown_as)


async def load_imported_segments(connection: AsyncConnection, campaign: Campaign) -> ImportedSegments:
    if not campaign.segment_count:
        return ImportedSegments({}, None)
    rows = await connection.execute(
        select(segments.c.external_id, segments.c.number).where(segments.c.campaign_id == campaign.id)
    )
    system_count = await connection.scalar(select(number_of_items_sql(campaign.id))) or 0
    outputs = await load_segment_index(await driver_of(connection), campaign.id, campaign.segment_count, system_count)
    return ImportedSegments({row.external_id: row.number for row in rows}, outputs)
