"""Researchers' page of submissions: what the platform has and what Easel has, with approvals and rejections."""

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.service import MIN_REJECTION_CHARACTERS
from app.errors import Refusal
from app.http.dependencies import Database, FormFields, Now, Transaction, render_page, request_base_url
from app.payments import review
from app.payments.connections import (
    has_token,
    load_account_or_none,
    service_of_account,
    service_platform_name,
    studies_of_account,
)
from app.payments.dependencies import Connector
from app.record.campaign import load_campaign_by_slug, load_campaign_for_page

router = researcher_router("/admin/campaigns/{slug}")


@router.get("/submissions")
async def show_submissions(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return await render_submissions(request, connection, slug)


async def render_submissions(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    refusal: Refusal | None = None,
    entered: dict[str, str] | None = None,
) -> HTMLResponse:
    """Show submissions, with a refused form as it was entered."""
    campaign = await load_campaign_for_page(connection, slug)
    account = await load_account_or_none(connection, campaign.id)
    context = {
        "campaign": campaign,
        "account": account,
        "is_connected": account is not None and has_token(account),
        "platform": PLATFORMS[service_platform_name()],
        "submissions": await review.list_submissions(connection, campaign.id),
        "studies": studies_of_account(account) if account else [],
        "unread_studies": await review.list_unread_studies(connection, account) if account else [],
        "sentences": review.FINDING_SENTENCES,
        "categories": service_of_account(account).rejection_categories if account else (),
        "fewest_characters": MIN_REJECTION_CHARACTERS,
        "hook_address": account
        and f"{request_base_url(request)}{PLATFORMS[account.platform].entry_path('hook')}/{account.hook_key}",
        "rows_shown": review.SUBMISSIONS_SHOWN,
        "entered": entered or {},
    }
    return render_page(request, "admin/submissions.html", context, refusal=refusal, status=200)


@router.post("/submissions/settings")
async def post_review_settings(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str, *, now: Now
) -> Response:
    try:
        async with database.begin() as connection:
            await review.store_review_settings(
                connection,
                connector,
                await load_campaign_by_slug(connection, slug),
                study=form.get("study", "").strip(),
                approves="approves" in form,
                hook_secret=form.get("hook_secret", "").strip(),
                now=now,
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_submissions(request, connection, slug, refusal=refusal)
    return RedirectResponse(f"/admin/campaigns/{slug}/submissions?done=submissions-settings", status_code=303)


@router.post("/submissions")
async def post_submission_decision(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str, *, now: Now
) -> Response:
    """Approve or reject a submission. Its id is in the body, so that no log of addresses has it."""
    try:
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug(connection, slug)
        await review.decide_on_submission(
            database,
            connector,
            campaign,
            form.get("submission", ""),
            form.get("decision", ""),
            category=form.get("category", ""),
            message=form.get("message", ""),
            now=now,
        )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_submissions(request, connection, slug, refusal=refusal, entered=form)
    return RedirectResponse(f"/admin/campaigns/{slug}/submissions?done=submission-decided", status_code=303)
