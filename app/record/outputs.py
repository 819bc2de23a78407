"""The outputs of a campaign's systems, out of the database: which there are, which are the same, and what they got."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import numbers_of
from app.database.session import Driver
from app.designs.criteria import number_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.record.stream import COUNTING, DECIDED, counting, values_by
from app.selection.segments import Segments

# Of each output, the first system whose output for the segment is the same.
OUTPUTS = """
    SELECT segment, item, min(item) OVER (PARTITION BY segment, coalesce(digest, shown)) FROM outputs
    WHERE campaign_id = $1 AND segment < $2 AND item < $3
"""

USES = f"""
    SELECT segment, CAST(count(*) AS int) FROM responses
    WHERE campaign_id = $1 AND segment < $2 AND {counting("$1", DECIDED.format(campaign="$1"))} GROUP BY segment
"""  # noqa: S608  (made of constants)

# By the index of segments, so that this costs what their own answers cost.
JUDGED = text(f"""
    SELECT r.segment, r.items, {values_by("CAST(:criterion AS int)", "r")} AS values FROM responses r
    WHERE r.campaign_id = :campaign AND r.segment = ANY(CAST(:segments AS int[])) AND {COUNTING} ORDER BY r.seq
""")  # noqa: S608  (made of constants)


FOR_SEGMENT = text("SELECT item, shown FROM outputs WHERE campaign_id = :campaign AND segment = :segment ORDER BY item")


class OutputMean(NamedTuple):
    """How often an output was judged, and the mean in hundredths of the scale, None where values have no order."""

    judgments: int
    mean: float | None


async def segments_of(connection: Driver, campaign_id: int, size: int, systems: int) -> Segments:
    """The outputs of so many systems for so many segments, the first of a campaign."""
    kinds = {"segment": "i4", "system": "i4", "same_as": "i4"}
    segments = Segments(size, systems, **await numbers_of(connection, OUTPUTS, (campaign_id, size, systems), **kinds))
    uses = await numbers_of(connection, USES, (campaign_id, size), segment="i4", uses="i4")
    segments.uses[uses["segment"]] = uses["uses"]
    return segments


async def outputs_for(connection: AsyncConnection, campaign_id: int, segment: int) -> dict[int, str]:
    """What systems made of a segment, by their numbers."""
    rows = await connection.execute(FOR_SEGMENT, {"campaign": campaign_id, "segment": segment})
    return {row.item: row.shown for row in rows}


async def means(
    connection: AsyncConnection, campaign: Row[Any], segments: Sequence[int]
) -> dict[tuple[int, int], OutputMean]:
    """What the outputs for these segments got by the criterion that the campaign is read by, by segment and system; of
    those that nobody has judged nothing.
    """
    parameters = {"campaign": campaign.id, "segments": segments, "criterion": number_of(campaign)}
    answers = (await connection.execute(JUDGED, parameters)).all()
    return means_in(design_of(campaign), answers) if answers else {}


def means_in(design: Design, answers: Sequence[Row[Any]]) -> dict[tuple[int, int], OutputMean]:
    """answers: one at least, each with its segment, items and values."""
    sizes = [len(row.items) for row in answers]
    values = np.concatenate([row.values for row in answers])
    said = ~np.isnan(values)  # of the others the answer says nothing
    segment = np.repeat([row.segment for row in answers], sizes)[said]
    item = np.concatenate([row.items for row in answers])[said]
    places = design.points(values[said], np.repeat(np.arange(len(answers)), sizes)[said])
    outputs, which = np.unique(np.stack([segment, item]), axis=1, return_inverse=True)
    counts = np.bincount(which)
    mean = (np.bincount(which, places) / counts).tolist() if design.ordered else [None] * len(counts)
    told = map(OutputMean, counts.tolist(), mean)
    return dict(zip(zip(*outputs.tolist(), strict=True), told, strict=True))
