"""The export of segments: one row per output, with its number of judgments and their mean."""

from collections.abc import AsyncIterator, Sequence

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.unit import Unit
from app.exports.responses import CRITERION_COLUMN
from app.record.outputs import OutputMean, load_output_mean_by_segment_and_system
from app.text.table_formats import RowCells, TableStream

SEGMENTS_PER_BATCH = 200
SEGMENT_EXPORT_COLUMNS = ("segment", "system", "output", "source", "reference", "judgments")
MEAN_STEPS_OF_SCALE = 100  # steps of the scale in which means are stored
UNJUDGED_OUTPUT_MEAN = OutputMean(0, None)

FIND_OUTPUTS_TO_EXPORT = text("""
    SELECT o.segment, o.item, s.external_id AS named, i.external_id AS system, o.shown, s.source, s.reference
    FROM outputs o
    JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign AND o.segment = ANY(CAST(:segments AS int[])) ORDER BY o.segment, o.item
""")


async def open_segment_outputs_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per output, with the mean in the unit of the design.

    If values have no order, there is no mean. With several criteria, there is a row for each.
    """
    design = campaign.design

    async def chunks() -> AsyncIterator[list[RowCells]]:
        for start in range(0, campaign.segment_count, SEGMENTS_PER_BATCH):
            segments = [*range(start, min(start + SEGMENTS_PER_BATCH, campaign.segment_count))]
            rows = (
                await connection.execute(FIND_OUTPUTS_TO_EXPORT, {"campaign": campaign.id, "segments": segments})
            ).all()
            for criterion in campaign.criteria:
                means_by_output = await load_output_mean_by_segment_and_system(connection, criterion, segments)
                output_means = [means_by_output.get((row.segment, row.item), UNJUDGED_OUTPUT_MEAN) for row in rows]
                mean_cells = (
                    [[number] for number in output_means_in_unit_or_none(design.unit, output_means)]
                    if design.is_ordered
                    else [[]] * len(rows)
                )
                name_cells = [criterion.name] if criterion.name else []
                yield [
                    (*row[2:], *name_cells, it.judgments, *more)
                    for row, it, more in zip(rows, output_means, mean_cells, strict=True)
                ]

    before, counted = SEGMENT_EXPORT_COLUMNS[:-1], SEGMENT_EXPORT_COLUMNS[-1:]
    criterion_column = [CRITERION_COLUMN] if campaign.has_criteria else []
    mean_column = [design.unit.mean_column] if design.is_ordered else []
    return TableStream((*before, *criterion_column, *counted, *mean_column), chunks())


def output_means_in_unit_or_none(unit: Unit, output_means: Sequence[OutputMean]) -> list[float | None]:
    """Return output means in the unit of exported files; None for an output without a mean."""
    shares = np.array([np.nan if output.mean is None else output.mean / MEAN_STEPS_OF_SCALE for output in output_means])
    return [None if np.isnan(number) else number for number in unit.shares_to_unit_values(shares).tolist()]
