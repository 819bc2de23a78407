"""Researchers' page of a study: what it will cost, its draft, and its state on the platform."""

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.service import TestStudy
from app.campaigns.proposed_budget import proposed_budget_text_or_empty
from app.errors import Refusal
from app.http.dependencies import Database, FormFields, Now, render_page, request_base_url
from app.payments.connections import service_platform_name
from app.payments.dependencies import Connector
from app.payments.money import hundredths_text
from app.record.campaign import load_campaign_for_page_or_refuse
from app.recruiting.studies import (
    change_study_state_or_places_or_refuse,
    draft_study_and_return_id_or_refuse,
    load_study_view_or_refuse,
    total_rewards_of_study,
)
from app.recruiting.study_trial import create_test_study_of_campaign_or_refuse

router = researcher_router("/admin/campaigns/{slug}")


@router.get("/study")
async def show_study_page(request: Request, database: Database, connector: Connector, slug: str) -> HTMLResponse:
    return await render_study_page(request, database, connector, slug)


async def render_study_page(
    request: Request,
    database: Database,
    connector: Connector,
    slug: str,
    *,
    refusal: Refusal | None = None,
    test_study: TestStudy | None = None,
    email: str = "",
) -> HTMLResponse:
    """Show the study; if it cannot be shown, the reason, which says what to do first."""
    async with database.begin() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, slug)
    view = None
    try:
        view = await load_study_view_or_refuse(database, connector, slug, request_base_url(request))
    except Refusal as problem:
        refusal = refusal or problem
    context = {
        "campaign": campaign,
        "platform": PLATFORMS[service_platform_name()],
        "view": view,
        "total": view and view.state and total_rewards_of_study(view.state),
        "hundredths_text": hundredths_text,
        "test_study": test_study,
        "email": email,
        "proposed_budget": proposed_budget_text_or_empty(campaign),
    }
    return render_page(request, "admin/study.html", context, refusal=refusal, status=200)


@router.post("/study/draft")
async def submit_study_draft(
    request: Request, database: Database, connector: Connector, slug: str, now: Now
) -> Response:
    """Make the draft at the platform."""
    try:
        await draft_study_and_return_id_or_refuse(database, connector, slug, request_base_url(request), now=now)
    except Refusal as refusal:
        return await render_study_page(request, database, connector, slug, refusal=refusal)
    return RedirectResponse(f"/admin/campaigns/{slug}/study?done=study-drafted", status_code=303)


@router.post("/study")
async def submit_study_action(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str
) -> Response:
    """Publish, pause or resume the study, or give it more places."""
    try:
        await change_study_state_or_places_or_refuse(
            database,
            connector,
            slug,
            form.get("action", ""),
            total=form.get("total", ""),
            places=form.get("places", "").strip(),
        )
    except Refusal as refusal:
        return await render_study_page(request, database, connector, slug, refusal=refusal)
    return RedirectResponse(f"/admin/campaigns/{slug}/study?done=study-changed", status_code=303)


@router.post("/study/test")
async def submit_test_study(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str
) -> HTMLResponse:
    """Make a test study of the draft, and show its link or why there is none."""
    email = form.get("email", "").strip()
    try:
        made = await create_test_study_of_campaign_or_refuse(database, connector, slug, email=email)
    except Refusal as refusal:
        return await render_study_page(request, database, connector, slug, refusal=refusal, email=email)
    return await render_study_page(request, database, connector, slug, test_study=made)
