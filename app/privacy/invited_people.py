"""People on the list of personal links who have not opened theirs. They are no annotators: only the list names them.

Their name is L3 for the third link. An erasure makes an annotator of the person first. So it has a receipt, and a
restored backup, in which the list still names them, erases them again.
"""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.designs.campaign import Campaign

LINK_NAME_PATTERN = re.compile(r"L[1-9][0-9]{0,8}")

FIND_INVITED_PEOPLE = text("""
    SELECT 'L' || p.number AS name, p.added_at FROM personal_links p
    WHERE p.campaign_id = :campaign
    AND (lower(p.name) = lower(CAST(:term AS text)) OR p.number = CAST(:number AS bigint))
    AND NOT EXISTS (
        SELECT FROM annotators a WHERE a.campaign_id = p.campaign_id AND a.platform = :platform
        AND a.worker_id = CAST(p.number AS text))
    ORDER BY p.number LIMIT :limit
""")

MAKE_ANNOTATOR_OF_LINK = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT p.campaign_id, :platform, CAST(p.number AS text), :pseudonym, :now FROM personal_links p
    WHERE p.campaign_id = :campaign AND p.number = :number
    ON CONFLICT (campaign_id, platform, worker_id) DO UPDATE SET worker_id = excluded.worker_id RETURNING id
""")

MAKE_ANNOTATOR_OF_HASH = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT p.campaign_id, :platform, CAST(p.number AS text), :pseudonym, :now
    FROM personal_links p JOIN campaigns c ON c.id = p.campaign_id
    WHERE p.campaign_id = :campaign
    AND sha256(convert_to(concat(c.link_key, E'\\n', CAST(:platform AS text), E'\\n', p.number), 'UTF8')) = ANY(:hashes)
    AND NOT EXISTS (SELECT FROM erasures e WHERE e.receipt = :receipt)  -- else the number is another person's by now
    ON CONFLICT (campaign_id, platform, worker_id) DO NOTHING
""")


async def find_invited_people(
    connection: AsyncConnection, campaign: Campaign, *, term: str | None = None, number: int | None = None, limit: int
) -> Sequence[Row[Any]]:
    """Return `name` and `added_at` of the people whom a name or mail address on the list, or a link's number, names."""
    parameters = {
        "campaign": campaign.id,
        "term": term,
        "number": number,
        "platform": PERSONAL_PLATFORM.name,
        "limit": limit,
    }
    return (await connection.execute(FIND_INVITED_PEOPLE, parameters)).all()


async def find_or_create_annotator_id_of_link_or_none(
    connection: AsyncConnection, campaign: Campaign, number: int, *, now: datetime
) -> int | None:
    """Return the id of the annotator of a link, who need not have opened it; None if there is no such link."""
    parameters = {"campaign": campaign.id, "number": number, **parameters_of_new_annotator(now)}
    annotator_id: int | None = (await connection.execute(MAKE_ANNOTATOR_OF_LINK, parameters)).scalar_one_or_none()
    return annotator_id


async def create_annotator_of_hashed_link_unless_erased(
    connection: AsyncConnection, campaign_id: int, hashes: Sequence[bytes], *, receipt: str, now: datetime
) -> None:
    """Make an annotator of the person on the list whose former id has one of these hashes, if there is one and their
    erasure with this receipt is not in the database.
    """
    parameters = {"campaign": campaign_id, "hashes": [*hashes], "receipt": receipt, **parameters_of_new_annotator(now)}
    await connection.execute(MAKE_ANNOTATOR_OF_HASH, parameters)


def parameters_of_new_annotator(now: datetime) -> dict[str, Any]:
    return {"platform": PERSONAL_PLATFORM.name, "pseudonym": secrets.token_hex(5), "now": now}
