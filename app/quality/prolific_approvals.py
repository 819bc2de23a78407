"""Submissions on Prolific that can be approved."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

PROLIFIC = "prolific"

LIST_APPROVABLE_SUBMISSIONS = text("""
    SELECT s.external_id FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE s.campaign_id = :campaign AND a.platform = :platform AND s.completed_at IS NOT NULL AND a.barred IS NULL
    ORDER BY s.id
""")

HAS_PLATFORM = text("SELECT EXISTS (SELECT FROM annotators WHERE campaign_id = :campaign AND platform = :platform)")


async def list_approvable_submissions(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """Return the ids of completed submissions whose annotators are neither held nor excluded, in order of arrival."""
    parameters = {"campaign": campaign_id, "platform": PROLIFIC}
    return [*(await connection.execute(LIST_APPROVABLE_SUBMISSIONS, parameters)).scalars()]


async def has_prolific_annotators(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether anyone came from Prolific."""
    return bool(await connection.scalar(HAS_PLATFORM, {"campaign": campaign_id, "platform": PROLIFIC}))
