"""The export of visits: what annotators did before the work, step by step; who agreed to which text, and when."""

import json
from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import Cells, TableFile
from app.spreadsheets import guarded

ROWS_AT_ONCE = 2_000
VISIT_COLUMNS = ("annotator", "name", "platform", "step", "version", "outcome", "said", "sha256", "taken_at")

VISITS = text("""
    SELECT a.pseudonym, named.name, a.platform, v.step, v.version, v.outcome, v.said, v.taken_at,
           CASE WHEN v.step = 'consent' THEN t.sha256 END AS sha256
    FROM visits v JOIN annotators a ON a.campaign_id = v.campaign_id AND a.id = v.annotator_id
    JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    LEFT JOIN consent_texts t ON t.campaign_id = v.campaign_id AND t.version = v.version
    WHERE v.campaign_id = :campaign ORDER BY v.annotator_id, v.taken_at, v.step, v.version
""")


async def visits_table(connection: AsyncConnection, campaign: Row[Any]) -> TableFile:
    """One row per annotator and step; of a consent with the hash of its text, of which the campaign keeps all."""

    async def chunks() -> AsyncIterator[list[Cells]]:
        result = await connection.stream(VISITS, {"campaign": campaign.id})
        async for rows in result.partitions(ROWS_AT_ONCE):
            yield [
                (
                    *(row.pseudonym, row.name, row.platform, row.step, row.version, row.outcome),
                    *(guarded(json.dumps(row.said, ensure_ascii=False)) if row.said else None, row.sha256),
                    row.taken_at,
                )
                for row in rows
            ]

    return TableFile(VISIT_COLUMNS, chunks())
