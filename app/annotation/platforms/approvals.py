"""Submissions that a researcher can approve on the platform that the annotators came from."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import PLATFORMS, platform_with_title
from app.designs.campaign import Campaign

LIST_APPROVABLE_SUBMISSIONS = text("""
    SELECT s.external_id FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE s.campaign_id = :campaign AND a.platform = :platform AND s.completed_at IS NOT NULL
    AND (a.barred IS NULL OR a.barred = 'erased') AND NOT starts_with(s.external_id, 'erased:')
    ORDER BY s.id
""")

LIST_PLATFORMS_OF_ANNOTATORS = text("SELECT DISTINCT platform FROM annotators WHERE campaign_id = :campaign ORDER BY 1")


async def list_ids_of_approvable_submissions(
    connection: AsyncConnection, campaign_id: int, platform: Platform
) -> list[str]:
    """Return the ids of completed submissions whose annotators are neither held nor excluded, in order of arrival.

    Those who withdrew have worked, and can be paid until their ids are erased.
    """
    parameters = {"campaign": campaign_id, "platform": platform.name}
    return [*(await connection.execute(LIST_APPROVABLE_SUBMISSIONS, parameters)).scalars()]


async def list_arrival_platforms_that_take_approvals(connection: AsyncConnection, campaign: Campaign) -> list[Platform]:
    """Return the platforms that annotators came from and that take a list of submissions to approve."""
    names = (await connection.execute(LIST_PLATFORMS_OF_ANNOTATORS, {"campaign": campaign.id})).scalars()
    platforms = [platform_with_title(name, campaign.panel_title) for name in names if name in PLATFORMS]
    return [platform for platform in platforms if platform.approves_by_list]
