"""The export of segments: one row per output, how often it was judged, and the mean of what it got."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import Cells, TableFile
from app.analysis.responses_export import CRITERION
from app.designs.criteria import criteria_of
from app.designs.registry import design_of
from app.designs.unit import Unit
from app.record.outputs import OutputMean, means

SEGMENTS_AT_ONCE = 200
SEGMENT_COLUMNS = ("segment", "system", "output", "source", "reference", "judgments")
STEPS = 100  # of the scale, in which means are told
NOT_JUDGED = OutputMean(0, None)

OUTPUTS = text("""
    SELECT o.segment, o.item, s.external_id AS named, i.external_id AS system, o.shown, s.source, s.reference
    FROM outputs o
    JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign AND o.segment = ANY(CAST(:segments AS int[])) ORDER BY o.segment, o.item
""")


async def segments_table(connection: AsyncConnection, campaign: Row[Any]) -> TableFile:
    """One row per output, with the mean in the unit of the design; where values have no order, there is none. Of
    several criteria, a row for each.
    """
    design = design_of(campaign)

    async def chunks() -> AsyncIterator[list[Cells]]:
        for start in range(0, campaign.segment_count, SEGMENTS_AT_ONCE):
            segments = [*range(start, min(start + SEGMENTS_AT_ONCE, campaign.segment_count))]
            rows = (await connection.execute(OUTPUTS, {"campaign": campaign.id, "segments": segments})).all()
            for one in criteria_of(campaign):
                judged = await means(connection, one, segments)
                got = [judged.get((row.segment, row.item), NOT_JUDGED) for row in rows]
                mean = [[number] for number in in_unit(design.unit, got)] if design.ordered else [[]] * len(rows)
                by = [one.criterion_name] if campaign.criteria else []
                yield [(*row[2:], *by, it.judgments, *more) for row, it, more in zip(rows, got, mean, strict=True)]

    before, counted = SEGMENT_COLUMNS[:-1], SEGMENT_COLUMNS[-1:]
    criterion = [CRITERION] if campaign.criteria else []
    mean_column = [design.unit.mean_column] if design.ordered else []
    return TableFile((*before, *criterion, *counted, *mean_column), chunks())


def in_unit(unit: Unit, got: Sequence[OutputMean]) -> list[float | None]:
    """Means as files have them."""
    shares = np.array([np.nan if one.mean is None else one.mean / STEPS for one in got])
    return [None if np.isnan(number) else number for number in unit.in_files(shares).tolist()]
