"""People on the allow list, the block list or in a group who never came. They are no annotators: only lists name them.

Their name is P7, after the number of their first row. An erasure makes an annotator of the person first, as it does of
people who have not opened their personal link.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.annotation.platforms.programs import API_PLATFORM
from app.annotation.platforms.registry import PLATFORMS
from app.designs.campaign import Campaign
from app.privacy.invited_people import parameters_of_new_annotator

LISTED_NAME_PATTERN = re.compile(r"P[1-9][0-9]{0,17}")

# People with a personal link are found by it, whether they opened it or not.
ONLY_LISTS_NAME_PERSON = """
    NOT EXISTS (
        SELECT FROM annotators a WHERE a.campaign_id = l.campaign_id AND a.platform <> :personal_platform
        AND a.worker_id = l.worker_id)
    AND NOT EXISTS (SELECT FROM personal_links p WHERE p.campaign_id = l.campaign_id AND p.name = l.worker_id)
"""

FIND_LISTED_PEOPLE = text(f"""
    SELECT 'P' || min(l.number) AS name, min(l.added_at) AS added_at FROM participant_lists l
    WHERE l.campaign_id = :campaign AND l.worker_id IN (
        SELECT worker_id FROM participant_lists
        WHERE campaign_id = :campaign
        AND (lower(worker_id) = lower(CAST(:term AS text)) OR number = CAST(:number AS bigint)))
    AND {ONLY_LISTS_NAME_PERSON}
    GROUP BY l.worker_id ORDER BY min(l.number) LIMIT :limit
""")

MAKE_ANNOTATOR_OF_LISTED_PERSON = text(f"""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT l.campaign_id, CAST(:platform AS text), l.worker_id, CAST(:pseudonym AS text), CAST(:now AS timestamptz)
    FROM participant_lists l
    WHERE l.campaign_id = :campaign AND l.number = :number AND l.worker_id IS NOT NULL AND {ONLY_LISTS_NAME_PERSON}
    ON CONFLICT (campaign_id, platform, worker_id) DO UPDATE SET worker_id = excluded.worker_id RETURNING id
""")

# Before the backup the person may have been on a list only, and have come from any platform since.
MAKE_ANNOTATOR_OF_LISTED_HASH = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT l.campaign_id, platform, l.worker_id, CAST(:pseudonym AS text), CAST(:now AS timestamptz)
    FROM participant_lists l JOIN campaigns c ON c.id = l.campaign_id
    CROSS JOIN unnest(CAST(:platforms AS text[])) AS platform
    WHERE l.campaign_id = :campaign AND l.worker_id IS NOT NULL
    AND sha256(convert_to(concat(c.link_key, E'\\n', platform, E'\\n', l.worker_id), 'UTF8')) = ANY(:hashes)
    AND NOT EXISTS (SELECT FROM erasures e WHERE e.receipt = :receipt)  -- else they are on the list again since
    LIMIT 1
    ON CONFLICT (campaign_id, platform, worker_id) DO NOTHING
""")


async def find_listed_people(
    connection: AsyncConnection, campaign: Campaign, *, term: str | None = None, number: int | None = None, limit: int
) -> Sequence[Row[Any]]:
    """Return `name` and `added_at` of the people whom an id on a list, or the number of a row, names."""
    parameters = {
        "campaign": campaign.id,
        "term": term,
        "number": number,
        "personal_platform": PERSONAL_PLATFORM.name,
        "limit": limit,
    }
    return (await connection.execute(FIND_LISTED_PEOPLE, parameters)).all()


async def create_annotator_of_listed_person_or_none(
    connection: AsyncConnection, campaign: Campaign, number: int, *, now: datetime
) -> int | None:
    """Return the id of an annotator made of the person of a row; None if not only lists name them."""
    parameters = parameters_of_new_annotator(now) | {
        "campaign": campaign.id,
        "number": number,
        "platform": API_PLATFORM.name,
        "personal_platform": PERSONAL_PLATFORM.name,
    }
    annotator_id: int | None = (
        await connection.execute(MAKE_ANNOTATOR_OF_LISTED_PERSON, parameters)
    ).scalar_one_or_none()
    return annotator_id


async def create_annotator_of_listed_hash_unless_erased(
    connection: AsyncConnection, campaign_id: int, hashes: Sequence[bytes], *, receipt: str, now: datetime
) -> None:
    """Make an annotator of the listed person whose id has one of these hashes, if there is one and their erasure with
    this receipt is not in the database.
    """
    new_annotator = parameters_of_new_annotator(now)
    parameters = {
        "campaign": campaign_id,
        "hashes": [*hashes],
        "receipt": receipt,
        "platforms": [*PLATFORMS],
        "pseudonym": new_annotator["pseudonym"],
        "now": now,
    }
    await connection.execute(MAKE_ANNOTATOR_OF_LISTED_HASH, parameters)
