"""Queries for the outputs of a campaign's systems: which exist, which are identical, and how they were judged."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import fetch_array_by_column_on_driver
from app.database.session import Driver
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.record.responses import (
    COUNTING_RESPONSES_CONDITION,
    LAST_DECISION_SQL,
    criterion_values_sql,
    responses_that_count_condition_sql,
)
from app.selection.segments import SegmentIndex

# For each output, the first system with an identical output for the segment.
FIND_SAME_OUTPUTS = """
    SELECT segment, item, min(item) OVER (PARTITION BY segment, coalesce(digest, shown)) FROM outputs
    WHERE campaign_id = $1 AND segment < $2 AND item < $3
"""

COUNT_USES_OF_OUTPUTS = f"""
    SELECT segment, item, CAST(count(*) AS int) FROM responses, unnest(items) AS item
    WHERE campaign_id = $1 AND segment < $2 AND item < $3
    AND {responses_that_count_condition_sql("$1", LAST_DECISION_SQL.format(campaign="$1"))} GROUP BY segment, item
"""

# Found by the index of segments, so the cost depends only on the answers about these segments.
FIND_SEGMENT_JUDGMENTS = text(f"""
    SELECT r.segment, r.items, {criterion_values_sql("CAST(:criterion AS int)", "r")} AS values FROM responses r
    WHERE r.campaign_id = :campaign AND r.segment = ANY(CAST(:segments AS int[])) AND {COUNTING_RESPONSES_CONDITION}
    ORDER BY r.seq
""")


FIND_OUTPUTS_OF_SEGMENT = text(
    "SELECT item, shown FROM outputs WHERE campaign_id = :campaign AND segment = :segment ORDER BY item"
)


class OutputMean(NamedTuple):
    """Number of judgments of an output, and their mean in points (0 to 100); None if values have no order."""

    judgments: int
    mean: float | None


async def load_segment_index(
    connection: Driver, campaign_id: int, segment_count: int, system_count: int
) -> SegmentIndex:
    """Return the outputs of the campaign's first `system_count` systems for its first `segment_count` segments."""
    column_types = {"segment": "i4", "system": "i4", "same_as": "i4"}
    segments = SegmentIndex(
        segment_count,
        system_count,
        **await fetch_array_by_column_on_driver(
            connection, FIND_SAME_OUTPUTS, (campaign_id, segment_count, system_count), **column_types
        ),
    )
    uses = await fetch_array_by_column_on_driver(
        connection,
        COUNT_USES_OF_OUTPUTS,
        (campaign_id, segment_count, system_count),
        segment="i4",
        system="i4",
        uses="i4",
    )
    segments.uses[uses["segment"], uses["system"]] = uses["uses"]
    return segments


async def load_output_text_by_system(connection: AsyncConnection, campaign_id: int, segment: int) -> dict[int, str]:
    """Return the outputs for a segment, by the numbers of their systems."""
    rows = await connection.execute(FIND_OUTPUTS_OF_SEGMENT, {"campaign": campaign_id, "segment": segment})
    return {row.item: row.shown for row in rows}


async def load_output_mean_by_segment_and_system(
    connection: AsyncConnection, criterion: Criterion[Campaign], segments: Sequence[int]
) -> dict[tuple[int, int], OutputMean]:
    """Return the mean judgments of the outputs for these segments, by (segment, system), without unjudged outputs.

    The judgments are those by the criterion.
    """
    parameters = {"campaign": criterion.campaign.id, "segments": segments, "criterion": criterion.number}
    answers = (await connection.execute(FIND_SEGMENT_JUDGMENTS, parameters)).all()
    return output_mean_by_segment_and_item(criterion.design, answers) if answers else {}


def output_mean_by_segment_and_item(design: Design, answers: Sequence[Row[Any]]) -> dict[tuple[int, int], OutputMean]:
    """Return the means of at least one answer, by (segment, item). Each answer has a segment, items and values."""
    sizes = [len(row.items) for row in answers]
    values = np.concatenate([row.values for row in answers])
    is_judged = ~np.isnan(values)  # NaN: the annotator did not judge the output
    segment = np.repeat([row.segment for row in answers], sizes)[is_judged]
    item = np.concatenate([row.items for row in answers])[is_judged]
    points = design.values_to_points(values[is_judged], np.repeat(np.arange(len(answers)), sizes)[is_judged])
    outputs, output_index = np.unique(np.stack([segment, item]), axis=1, return_inverse=True)
    counts = np.bincount(output_index)
    mean = (np.bincount(output_index, points) / counts).tolist() if design.is_ordered else [None] * len(counts)
    output_means = map(OutputMean, counts.tolist(), mean)
    return dict(zip(zip(*outputs.tolist(), strict=True), output_means, strict=True))
