"""Researchers' downloads for the platforms that annotators come from."""

from fastapi import Response

from app.accounts.guards import researcher_router
from app.annotation.platforms import approvals
from app.annotation.platforms.registry import PLATFORMS
from app.errors import NotFound, shorten_echo
from app.http.dependencies import Now, Transaction, content_disposition_headers
from app.record.campaign import load_campaign_for_page_or_refuse
from app.text.spreadsheets import guard_against_formula

router = researcher_router("/admin/campaigns/{slug}")


@router.get("/approvals/{platform}.csv")
async def download_approvable_submission_ids(connection: Transaction, slug: str, platform: str, now: Now) -> Response:
    """Download the ids of submissions to approve, one per line, as the platform's bulk approval takes them."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    if platform not in PLATFORMS or not PLATFORMS[platform].approves_by_list:
        raise NotFound(f"“{shorten_echo(platform)}” takes no list of submissions.", code="no_approval_list")
    submissions = await approvals.list_ids_of_approvable_submissions(connection, campaign.id, PLATFORMS[platform])
    lines = "".join(f"{guard_against_formula(submission)}\n" for submission in submissions)
    headers = content_disposition_headers(slug, f"{platform}-approvals", "csv", now=now) | {"Cache-Control": "no-store"}
    return Response(lines, media_type="text/csv; charset=utf-8", headers=headers)
