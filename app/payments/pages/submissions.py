"""Researchers' page of submissions: what the platform has and what Easel has, with approvals and rejections."""

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import CurrentAccess, researcher_router
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.service import MIN_REJECTION_CHARACTERS
from app.errors import Refusal
from app.http.dependencies import Database, FormFields, Now, Transaction, get_now, render_page, request_base_url
from app.payments import review
from app.payments.connections import (
    has_token,
    load_account_or_none,
    platform_service_of_account,
    service_platform_name,
    study_ids_of_account,
)
from app.payments.decisions import (
    MIN_RETURN_REASON_CHARACTERS,
    SubmissionDecision,
    carry_out_submission_decision_or_refuse,
)
from app.payments.dependencies import REFUSE_ON_CLUSTER, Connector
from app.payments.notice_subscription import end_notices_or_refuse, notice_address, subscribe_to_notices_or_refuse
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse

router = researcher_router("/admin/campaigns/{slug}", REFUSE_ON_CLUSTER)


@router.get("/submissions")
async def show_submissions(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return await render_submissions_page(request, connection, slug)


async def render_submissions_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    refusal: Refusal | None = None,
    entered: dict[str, str] | None = None,
) -> HTMLResponse:
    """Show submissions, with a refused form as it was entered."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    account = await load_account_or_none(connection, campaign.id)
    context = {
        "campaign": campaign,
        "account": account,
        "is_connected": account is not None and has_token(account),
        "platform": PLATFORMS[service_platform_name()],
        "submissions": await review.list_submissions(connection, campaign.id),
        "studies": study_ids_of_account(account) if account else [],
        "unread_studies": await review.list_unread_studies(connection, account) if account else [],
        "sentences": review.FINDING_SENTENCES,
        "categories": platform_service_of_account(account).rejection_categories if account else (),
        "fewest_characters": MIN_REJECTION_CHARACTERS,
        "fewest_return_characters": MIN_RETURN_REASON_CHARACTERS,
        "hook_address": account and notice_address(request_base_url(request), account),
        "rows_shown": review.SUBMISSIONS_SHOWN,
        "entered": entered or {},
    }
    return render_page(request, "admin/submissions.html", context, refusal=refusal, status=200)


@router.post("/submissions/settings")
async def submit_review_settings(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str, *, now: Now
) -> Response:
    try:
        async with database.begin() as connection:
            await review.store_review_settings_or_refuse(
                connection,
                connector,
                await load_campaign_by_slug_or_refuse(connection, slug),
                study=form.get("study", "").strip(),
                approves="approves" in form,
                hook_secret=form.get("hook_secret", "").strip(),
                forgets_waiting="forgets_waiting" in form,
                now=now,
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_submissions_page(request, connection, slug, refusal=refusal, entered=form)
    return RedirectResponse(f"/admin/campaigns/{slug}/submissions?done=submissions-settings", status_code=303)


@router.post("/submissions")
async def submit_decision_on_submission(
    request: Request, form: FormFields, database: Database, connector: Connector, access: CurrentAccess, *, slug: str
) -> Response:
    """Approve or reject a submission, or ask for its return. Its id is in the body, so no log of addresses has it."""
    try:
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        names = ("submission", "decision", "category", "message")
        decided = SubmissionDecision(**{name: form.get(name, "") for name in names})
        await carry_out_submission_decision_or_refuse(
            database, connector, campaign, decided, clock=get_now, access=access
        )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_submissions_page(request, connection, slug, refusal=refusal, entered=form)
    return RedirectResponse(f"/admin/campaigns/{slug}/submissions?done=submission-decided", status_code=303)


@router.post("/submissions/notices")
async def submit_subscription_to_notices(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str
) -> Response:
    """Begin or end the notices of the platform."""
    try:
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if "end" in form:
            await end_notices_or_refuse(database, connector, campaign)
        else:
            await subscribe_to_notices_or_refuse(database, connector, campaign, request_base_url(request))
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_submissions_page(request, connection, slug, refusal=refusal)
    return RedirectResponse(f"/admin/campaigns/{slug}/submissions", status_code=303)
