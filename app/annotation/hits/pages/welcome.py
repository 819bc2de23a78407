"""Page with the Start button, which makes a visitor an annotator: the task, the consent text and an example.

It is the first page of the open link. People from a platform see it as a preview, without the button.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.annotation.hits import completion
from app.annotation.hits.landing import LinkedCampaign, load_campaign_by_link_or_refuse, load_rendered_sample_items
from app.annotation.hits.pages.steps import PageState, worker_tokens_of_server
from app.annotation.hits.served_campaign import ServedCampaign
from app.annotation.onboarding import passphrase, start_form, visit_progress
from app.annotation.onboarding.consent import CONSENT_STEP, step_result_of_consent_form_or_refuse
from app.annotation.onboarding.step import VisitHistory
from app.annotation.onboarding.steps import has_consent_on_start_page, place_of_step_among_pages
from app.annotation.onboarding.visit_progress import VisitedCampaign
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.visit_limit import VisitLimiter, Visitor
from app.database.session import Driver
from app.errors import Forbidden, Invalid, Refusal
from app.http.dependencies import (
    STATUSES_OF_STORED_STATE,
    allow_campaign_sources_and_frames,
    client_network_or_empty,
    render_page,
    require_database_is_current_primary,
    retry_after_headers,
    set_request_language,
)
from app.http.templating import LANGUAGE_PARAMETER, markdown_texts_to_safe_html


def visitor_of_request(request: Request) -> Visitor:
    visit_limiter: VisitLimiter = request.app.state.visit_limiter
    return visit_limiter.visitor_of_ip_address(client_network_or_empty(request))


async def check_passphrase_and_show_welcome(
    request: Request,
    platform: Platform,
    link_key: str,
    connection: Driver,
    passphrase_text: str | None = None,
    *,
    now: datetime,
    notice: Refusal | None = None,
) -> HTMLResponse:
    """Show the welcome page to a new visitor, or the refusal of their passphrase."""
    visited = await visit_progress.load_visited_campaign_or_refuse(connection, link_key)
    try:
        await passphrase.check_passphrase_and_charge_guess_or_refuse(
            connection, visited, passphrase_text, visitor_of_request(request), now=now
        )
    except Refusal as refusal:
        campaign_of_link = await load_campaign_by_link_or_refuse(connection, link_key)
        return await render_passphrase_refusal_page(
            request, platform, campaign_of_link, connection, refusal, passphrase_text=passphrase_text
        )
    campaign = await load_campaign_by_link_or_refuse(connection, link_key)
    return await render_welcome(
        request, platform, campaign, connection, visited=visited, passphrase_text=passphrase_text, notice=notice
    )


async def render_passphrase_refusal_page(
    request: Request,
    platform: Platform,
    campaign: ServedCampaign,
    connection: Driver,
    refusal: Refusal,
    *,
    passphrase_text: str | None = None,
) -> HTMLResponse:
    """Return the page that asks for the passphrase or says that the link is closed. It lets earlier visitors resume."""
    if refusal.status in STATUSES_OF_STORED_STATE:
        await require_database_is_current_primary(request, connection)
    set_request_language(request, campaign)
    context = {"campaign": campaign, "platform": platform, "refusal": refusal}
    context |= {"token_hours": request.app.state.settings.worker_token_hours}
    context |= {"entered_passphrase": passphrase_text or ""}
    status = 200 if refusal.code == "passphrase_missing" else refusal.status
    return render_page(request, "door.html", context, status=status, headers=retry_after_headers(refusal))


async def render_may_not_take_part_page(
    request: Request,
    platform: Platform,
    campaign: LinkedCampaign,
    connection: Driver,
    refusal: Forbidden,
    *,
    arrival_details: Mapping[str, str],
) -> HTMLResponse:
    """Return the page for a person who may not take part, with the way back of people who are screened out.

    Nothing is stored about them, so the platform's server is not told.
    """
    await require_database_is_current_primary(request, connection)
    allow_campaign_sources_and_frames(request, campaign)
    set_request_language(request, campaign)
    way_back = completion.build_completion_of_campaign(
        platform, arrival_details, campaign.crowd_settings, campaign.slug, "screened_out"
    )
    context = {"campaign": campaign, "platform": platform, "completion": replace(way_back, is_reported=False)}
    context |= {"ended_because": refusal.code}
    return render_page(request, "may_not_take_part.html", context, status=refusal.status)


async def render_welcome(
    request: Request,
    platform: Platform,
    campaign: ServedCampaign,
    connection: Driver,
    *,
    visited: VisitedCampaign | None = None,
    passphrase_text: str | None = None,
    notice: Refusal | None = None,
) -> HTMLResponse:
    """Return the welcome page for a new visitor; on a platform, this is the preview, without onboarding settings."""
    items = await load_rendered_sample_items(connection, campaign)
    allow_campaign_sources_and_frames(request, campaign)
    set_request_language(request, campaign)
    asks_consent = visited is not None and has_consent_on_start_page(visited.settings, platform)
    instructions, consent = await markdown_texts_to_safe_html(
        campaign.instructions, visited.settings.consent if visited else "", mark_formulas=campaign.latex
    )
    context = {
        "campaign": campaign,
        "design": campaign.design,
        "criterion_forms": campaign.shuffled_criteria_for_annotator(0),
        "platform": platform,
        "rendered": items,
        "token_hours": request.app.state.settings.worker_token_hours,
        "instructions": instructions,
        "start_token": start_form.new_token(),
        "asks_consent": asks_consent,
        "consent": consent,
        "version": visited.visit_version if visited else 0,
        "place": place_of_step_among_pages(visited.settings, platform, None) if visited else None,
        "passphrase": passphrase_text,
        "shown": PageState(notice=notice),
    }
    return render_page(request, "welcome.html", context)


async def start_visit_and_redirect(
    request: Request, platform: Platform, link_key: str, connection: Driver, form: Mapping[str, str], *, now: datetime
) -> Response:
    """Make a visitor an annotator and redirect to their own address, which survives a reload and a bookmark.

    A visitor who has only entered the passphrase sees the welcome page first, as does one whose page showed an earlier
    consent text. The answer to the consent text is stored with the new annotator.
    """
    passphrase_text = form.get("passphrase")
    if "enter" in form:
        return await check_passphrase_and_show_welcome(
            request, platform, link_key, connection, passphrase_text, now=now
        )
    campaign = await visit_progress.load_visited_campaign_or_refuse(connection, link_key)
    try:
        await passphrase.check_passphrase_and_charge_guess_or_refuse(
            connection, campaign, passphrase_text, visitor_of_request(request), now=now
        )
    except Refusal as refusal:
        campaign_of_link = await load_campaign_by_link_or_refuse(connection, link_key)
        return await render_passphrase_refusal_page(
            request, platform, campaign_of_link, connection, refusal, passphrase_text=passphrase_text
        )
    answers_consent = "answer" in form and has_consent_on_start_page(campaign.settings, platform)
    if answers_consent:
        try:
            step_result_of_consent_form_or_refuse(form, campaign.settings, VisitHistory(campaign.visit_version))
        except Invalid as refusal:
            return await check_passphrase_and_show_welcome(
                request, platform, link_key, connection, passphrase_text, now=now, notice=refusal
            )
    token, admitted = (
        form.get(start_form.FIELD),
        visit_progress.visit_version_to_admit_on_arrival_or_zero(campaign, platform),
    )
    try:
        assignment = await start_form.find_or_create_assignment_of_start_press(
            connection,
            campaign.id,
            platform.name,
            token,
            now=now,
            visitor=visitor_of_request(request),
            admitted_visit_version=admitted,
        )
    except Forbidden as refusal:
        linked_campaign = await load_campaign_by_link_or_refuse(connection, link_key)
        return await render_may_not_take_part_page(
            request, platform, linked_campaign, connection, refusal, arrival_details={}
        )
    if answers_consent:
        visit = await visit_progress.load_visit_or_refuse(connection, assignment)
        await visit_progress.store_result_of_open_step(connection, visit, CONSENT_STEP, form, now=now)
    query = {"t": worker_tokens_of_server(request).issue_or_reuse_token(platform.name, link_key, assignment)}
    if language := request.query_params.get(LANGUAGE_PARAMETER):
        query[LANGUAGE_PARAMETER] = language
    return RedirectResponse(f"{platform.entry_path(link_key)}?{urlencode(query)}", status_code=303)
