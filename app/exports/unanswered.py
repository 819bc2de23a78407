"""The export of HITs that were shown and not answered: one row per item."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.exports.responses import (
    HIT_SEGMENT_COLUMNS,
    SEGMENT_USE_COLUMNS,
    SHOWN_ITEM_IDS_COLUMN,
    segment_and_output_id_cells,
)
from app.text.table_formats import EXPORT_ROWS_PER_BATCH, RowCells, TableStream

UNANSWERED_EXPORT_COLUMNS = (
    *("annotator", "name", "platform", "hit", "state", "iteration", "position", "item", "leader"),
    *("issued_at", "expires_at", "closed_at", "entered", "drawn_because", "leader_probability"),
)


def unanswered_hits_with_state_statement(segment_columns: str) -> TextClause:
    """Return SQL for the HITs of a campaign without a response, and their state.

    An imported HIT in which every item was marked N/A was answered.
    """
    return text(f"""
    SELECT a.pseudonym, a.name, annotators.platform, h.id AS hit_id, h.iteration, h.leader, h.items AS shown,
           h.issued_at, h.expires_at, h.closed_at, h.draft IS NOT NULL AS entered, h.drawn_because,
           h.leader_probability,
           CASE WHEN h.closed_at IS NOT NULL THEN 'given_up'
                WHEN h.expires_at > statement_timestamp() THEN 'open' ELSE 'expired' END AS state,
           {SHOWN_ITEM_IDS_COLUMN},{segment_columns}
    FROM hits h
    JOIN annotators ON annotators.campaign_id = h.campaign_id AND annotators.id = h.annotator_id
    JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = h.annotator_id
    WHERE h.campaign_id = :campaign AND h.not_applicable IS NULL
      AND NOT EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = h.id)
    ORDER BY h.id
""")


# The first is for campaigns of items, the second for campaigns of systems.
FIND_UNANSWERED_HITS = [
    unanswered_hits_with_state_statement(segment) for segment in (" NULL AS segment", HIT_SEGMENT_COLUMNS)
]


async def open_items_in_unanswered_hits_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per item of each HIT that was shown and not answered, in the order in which HITs were handed out.

    `state` is `open` while its annotator can still answer, `expired` once the lease has ended (`expires_at`), and
    `given_up` if the annotator, or a newer HIT, closed it. `entered` says whether something was entered and not sent.
    Campaigns of systems also have the segment, and the system under which a shared output was shown.
    """
    has_systems = campaign.segment_count > 0

    async def chunks() -> AsyncIterator[list[RowCells]]:
        result = await connection.stream(FIND_UNANSWERED_HITS[has_systems], {"campaign": campaign.id})
        async for rows in result.partitions(EXPORT_ROWS_PER_BATCH):
            yield [cells for row in rows for cells in iterate_unanswered_hit_rows(row, has_systems=has_systems)]

    return TableStream((*UNANSWERED_EXPORT_COLUMNS, *(SEGMENT_USE_COLUMNS if has_systems else ())), chunks())


def iterate_unanswered_hit_rows(row: Row[Any], *, has_systems: bool) -> Iterator[RowCells]:
    """Yield an unanswered HIT as `UNANSWERED_COLUMNS`, one tuple per item."""
    ids = dict(zip(row.shown, row.ids, strict=True))
    for position, (number, item) in enumerate(zip(row.shown, row.ids, strict=True), start=1):
        yield (
            *(row.pseudonym, row.name, row.platform, row.hit_id, row.state, row.iteration, position, item),
            *(None if row.leader is None else number == row.leader, row.issued_at, row.expires_at, row.closed_at),
            *(row.entered, row.drawn_because, row.leader_probability),
            *(segment_and_output_id_cells(row, ids, position - 1) if has_systems else ()),
        )
