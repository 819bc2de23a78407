"""SQL that recognises a person in another campaign.

A person is the same if the platform and the id on it are the same. A person with a personal link has the same name in
other campaigns, where the number of the link differs, or a name that is their id on a platform.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.mturk.platform import PLATFORM as MTURK_PLATFORM
from app.annotation.platforms.panel import PLATFORM as PANEL_PLATFORM
from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.annotation.platforms.prolific.platform import PLATFORM as PROLIFIC_PLATFORM

# Parameters of `IS_SAME_PERSON`: the platforms that give people ids of their own.
SAME_PERSON_PARAMETERS: dict[str, Any] = {
    "personal_platform": PERSONAL_PLATFORM.name,
    "id_platforms": [platform.name for platform in (PROLIFIC_PLATFORM, MTURK_PLATFORM, PANEL_PLATFORM)],
}

# SQL: whether annotator o of :campaign is a person of another campaign, who is listed there as `person_id`.
IS_SAME_PERSON = """(
    o.platform = {platform} AND o.worker_id = CASE WHEN {platform} <> :personal_platform THEN {person_id} ELSE (
        SELECT CAST(p.number AS text) FROM personal_links p
        WHERE p.campaign_id = :campaign AND p.name = {person_id}) END
    OR {platform} = :personal_platform AND o.platform = ANY(CAST(:id_platforms AS text[]))
        AND o.worker_id = {person_id})"""

FIND_NAMES_OF_PARTICIPANTS = text(f"""
    SELECT listed.name FROM unnest(CAST(:names AS text[])) AS listed(name)
    WHERE EXISTS (
        SELECT FROM annotators o WHERE o.campaign_id = :campaign
          AND {IS_SAME_PERSON.format(platform="CAST(:personal_platform AS text)", person_id="listed.name")}
          AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = o.id OFFSET 0))
""")

LIST_NAMES_WITH_LINK = text("SELECT name FROM personal_links WHERE campaign_id = :campaign")
FIND_CAMPAIGN_IDS = text("SELECT id FROM campaigns WHERE slug = ANY(CAST(:slugs AS text[])) AND id <> :campaign")


async def count_invited_people_who_took_part_in_none(
    connection: AsyncConnection, campaign_id: int, slugs: Sequence[str]
) -> tuple[int, int]:
    """Return how many people with a personal link answered in none of these campaigns, and how many have a link."""
    names = {*(await connection.scalars(LIST_NAMES_WITH_LINK, {"campaign": campaign_id})).all()}
    unknown = set(names)
    for other in await connection.scalars(FIND_CAMPAIGN_IDS, {"slugs": [*slugs], "campaign": campaign_id}):
        parameters = {**SAME_PERSON_PARAMETERS, "names": [*unknown], "campaign": other}
        unknown -= {*(await connection.scalars(FIND_NAMES_OF_PARTICIPANTS, parameters)).all()}
    return len(unknown), len(names)
