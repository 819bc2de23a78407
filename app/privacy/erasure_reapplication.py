"""Erase people again in a restored backup that is older than their erasure."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.errors import NotFound, StartupProblem
from app.privacy.erasure_list import ListedErasure
from app.privacy.erasure_work import finish_open_erasures
from app.privacy.erasures import erase_identifiers, store_erasure
from app.record.campaign import load_campaign_by_slug

# Annotators with one of the hashes, unless the erasure is in the database.
FIND_ANNOTATORS_BY_HASH = text("""
    SELECT a.id FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
    WHERE a.campaign_id = :campaign AND NOT EXISTS (SELECT FROM erasures e WHERE e.receipt = :receipt)
    AND sha256(convert_to(concat(c.link_key, E'\\n', a.platform, E'\\n', a.worker_id), 'UTF8'))
        = ANY(CAST(:hashes AS bytea[]))
    ORDER BY a.id LIMIT 1
""")


async def read_erasure_list(path: Path) -> Sequence[ListedErasure]:
    """Return the erasures in a file. Raises `StartupProblem` (`erasures_unreadable`) with the line."""
    number, erasures = 1, {}
    try:
        for number, line in enumerate((await asyncio.to_thread(path.read_text, "utf-8")).splitlines(), start=1):
            erasures[number] = ListedErasure.model_validate_json(line)
    except (OSError, ValueError) as problem:
        raise StartupProblem(
            f"{path} is not a list of erasures: line {number} cannot be read. No one was erased again.",
            code="erasures_unreadable",
        ) from problem
    return [*erasures.values()]


async def reapply_erasures(engine: AsyncEngine, erasures: Sequence[ListedErasure], *, now: datetime) -> int:
    """Erase everyone on the list who is not erased in this database, and return how many that were.

    A campaign that the database does not have is passed over.
    """
    erased_count = 0
    for listed in erasures:
        async with engine.begin() as connection:
            try:
                campaign = await load_campaign_by_slug(connection, listed.campaign)
            except NotFound:
                continue
            parameters = {
                "campaign": campaign.id,
                "receipt": listed.receipt,
                "hashes": [bytes.fromhex(part) for part in listed.person_hashes],
            }
            annotator_id = (await connection.execute(FIND_ANNOTATORS_BY_HASH, parameters)).scalar_one_or_none()
            if annotator_id is None:
                continue
            erasure = await store_erasure(
                connection,
                campaign,
                annotator_id,
                listed.rule,
                requested_by=listed.requested_by,
                now=listed.requested_at,
                due_at=listed.requested_at,
                receipt=listed.receipt,
            )
            await erase_identifiers(connection, campaign, erasure, now=now)
            erased_count += 1
    await finish_open_erasures(engine, now=now)
    return erased_count
