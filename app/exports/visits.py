"""The export of visits: steps of annotators before the work, with each consent and its time."""

import json
from collections.abc import AsyncIterator

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import RowCells, TableStream

VISIT_ROWS_PER_BATCH = 2_000
VISIT_EXPORT_COLUMNS = ("annotator", "name", "platform", "step", "version", "outcome", "said", "sha256", "taken_at")

FIND_VISITS_TO_EXPORT = text("""
    SELECT a.pseudonym, named.name, a.platform, v.step, v.version, v.outcome, v.said, v.taken_at,
           CASE WHEN v.step = 'consent' THEN t.sha256 END AS sha256
    FROM visits v JOIN annotators a ON a.campaign_id = v.campaign_id AND a.id = v.annotator_id
    JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    LEFT JOIN consent_texts t ON t.campaign_id = v.campaign_id AND t.version = v.version
    WHERE v.campaign_id = :campaign ORDER BY v.annotator_id, v.taken_at, v.step, v.version
""")


async def export_visits(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per annotator and step; a consent has the hash of its text, and the campaign keeps all texts."""

    async def chunks() -> AsyncIterator[list[RowCells]]:
        result = await connection.stream(FIND_VISITS_TO_EXPORT, {"campaign": campaign.id})
        async for rows in result.partitions(VISIT_ROWS_PER_BATCH):
            yield [
                (
                    *(row.pseudonym, row.name, row.platform, row.step, row.version, row.outcome),
                    *(
                        guard_against_formula(json.dumps(row.said, ensure_ascii=False)) if row.said else None,
                        row.sha256,
                    ),
                    row.taken_at,
                )
                for row in rows
            ]

    return TableStream(VISIT_EXPORT_COLUMNS, chunks())
