"""The export of assignments, for payment: each arrival of an annotator and its result."""

from collections.abc import AsyncIterator

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import RowCells, TableStream

ASSIGNMENT_ROWS_PER_BATCH = 2_000
ASSIGNMENT_EXPORT_COLUMNS = (
    *("annotator", "name", "platform", "assignment", "arrived_at", "hits_answered", "last_answer_at", "completed_at"),
    *("hits_counted", "barred"),
)

FIND_ASSIGNMENTS_TO_EXPORT = text(f"""
    SELECT a.pseudonym, named.name, a.platform, s.external_id, s.arrived_at, s.completed_at,
           a.barred, count(r.seq) FILTER (WHERE r.counts) AS hits_counted,
           count(r.seq) FILTER (WHERE r.replaces IS NULL) AS hits_answered, max(r.received_at) AS last_answer_at
    FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id
    LEFT JOIN (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign) AS r
    ON r.campaign_id = h.campaign_id AND r.hit_id = h.id
    WHERE s.campaign_id = :campaign GROUP BY s.campaign_id, s.id, a.campaign_id, a.id, named.name ORDER BY s.id
""")


async def export_assignments(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per arrival of an annotator.

    `completed_at` is when the annotator was told that they are done. `hits_counted` omits HITs that a decision
    excludes. `barred` says whether the annotator is held or excluded.
    """

    async def chunks() -> AsyncIterator[list[RowCells]]:
        result = await connection.stream(FIND_ASSIGNMENTS_TO_EXPORT, {"campaign": campaign.id})
        async for rows in result.partitions(ASSIGNMENT_ROWS_PER_BATCH):
            yield [
                (
                    *(row.pseudonym, row.name, row.platform, guard_against_formula(row.external_id), row.arrived_at),
                    *(row.hits_answered, row.last_answer_at, row.completed_at),
                    *(row.hits_counted, row.barred),
                )
                for row in rows
            ]

    return TableStream(ASSIGNMENT_EXPORT_COLUMNS, chunks())
