"""Preview HITs in the frames of researchers' pages, and the consent text that is being written."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from app.accounts.guards import require_researcher_without_csrf, researcher_router
from app.annotation.onboarding.settings import MAX_CONSENT_CHARACTERS
from app.campaigns import form_input, lifecycle, preview_hit, step_input
from app.campaigns.form_sections import STEP_BY_SETTING
from app.campaigns.pages.setup import NEW_CAMPAIGN_STEP, initial_settings_of_new_campaign, step_name_or_refuse
from app.campaigns.settings import CampaignSettings
from app.campaigns.visit_preview import preview_platform_or_first
from app.designs.answer import Form
from app.designs.item_names import item_number_of_media_report_or_refuse
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.errors import Invalid
from app.http.dependencies import (
    AppSettings,
    FormFields,
    Transaction,
    allow_https_media_if_campaign_does,
    is_script_request,
    render_page,
    set_request_language,
)
from app.http.templating import markdown_texts_to_safe_html
from app.privacy.consent_text import StudyFacts, draft_consent_text
from app.record.campaign import CampaignOnPage, load_campaign_by_slug_or_refuse

router = researcher_router("/admin")
preview_router = APIRouter(
    prefix="/admin", dependencies=[Depends(require_researcher_without_csrf)], include_in_schema=False
)
PREVIEW_CAMPAIGN_PATH = "/campaigns/{slug}"
MAX_PREVIEW_HITS = 1_000_000
STEP_PARAMETER = "step"  # names the step whose form the query has


PreviewNumber = Annotated[int, Query(ge=0, le=MAX_PREVIEW_HITS)]


@router.get(PREVIEW_CAMPAIGN_PATH + "/try")
async def redirect_to_visit_preview(slug: str) -> RedirectResponse:
    """Lead from the former page of preview HITs to those of the preview as participant."""
    return RedirectResponse(f"/admin/campaigns/{slug}/preview?at=hit-1", status_code=303)


async def load_settings_merged_with_query_or_none(
    request: Request, connection: Transaction, slug: str
) -> CampaignSettings | None:
    """Return the stored settings with those in the query, from a step's form that is being filled in; None if the
    query has none.
    """
    values = request.query_params
    if STEP_PARAMETER not in values and slug != preview_hit.NEW_CAMPAIGN_SLUG:
        return None
    step = step_name_or_refuse(values.get(STEP_PARAMETER, NEW_CAMPAIGN_STEP))
    base = (
        initial_settings_of_new_campaign(values.get("template"))
        if slug == preview_hit.NEW_CAMPAIGN_SLUG
        else lifecycle.unchecked_settings_with_deliverable_emails(
            await load_campaign_by_slug_or_refuse(connection, slug)
        )
    )
    return form_input.settings_of_form_with_defaults_for_errors(
        step_input.form_values_with_entered_step(base, step, values)
    )


UnsavedSettings = Annotated[CampaignSettings | None, Depends(load_settings_merged_with_query_or_none)]


@preview_router.get(PREVIEW_CAMPAIGN_PATH + "/try/hit")
async def show_preview_hit(
    request: Request, connection: Transaction, slug: str, unsaved: UnsavedSettings, number: PreviewNumber = 0
) -> HTMLResponse:
    """Show one HIT in a frame of the preview page or of the settings form."""
    campaign = await preview_hit.load_preview_campaign_or_refuse(connection, slug, unsaved)
    set_request_language(request, campaign)
    return await render_preview_hit(
        request, campaign, await preview_hit.load_preview_hit_of_random_items(connection, campaign, number)
    )


@preview_router.post(PREVIEW_CAMPAIGN_PATH + "/try/hit")
async def submit_preview_answer_and_show_next(
    request: Request, form_values: FormFields, connection: Transaction, *, slug: str, unsaved: UnsavedSettings
) -> Response:
    """Check an answer like an annotator's, and show the next HIT, or the same one with the refusal.

    A browser without scripts sends the settings form here; it is redirected to a HIT with these settings.
    """
    if STEP_PARAMETER in form_values:
        settings_query = {name: value for name, value in form_values.items() if value and name != "csrf"}
        return RedirectResponse(f"{request.url.path}?{urlencode(settings_query)}", status_code=303)
    campaign = await preview_hit.load_preview_campaign_or_refuse(connection, slug, unsaved)
    set_request_language(request, campaign)
    number = min(parse_nonnegative_int_or_none(form_values.get("hit")) or 0, MAX_PREVIEW_HITS - 1)
    hit = await preview_hit.load_preview_hit_of_random_items(connection, campaign, number)
    try:
        if "broken" in form_values:
            item_number_of_media_report_or_refuse(form_values, hit.items)
            return await render_preview_hit(request, campaign, hit, {"reported": True, "form": form_values})
        preview_hit.parse_preview_answers_or_refuse(campaign, hit, Form(form_values, "form"))
    except Invalid as refusal:
        if is_script_request(request):
            raise
        return await render_preview_hit(request, campaign, hit, {"notice": refusal, "form": form_values})
    return await render_preview_hit(
        request, campaign, await preview_hit.load_preview_hit_of_random_items(connection, campaign, number + 1)
    )


@router.post(PREVIEW_CAMPAIGN_PATH + "/try/consent")
async def show_preview_consent(form_values: FormFields) -> HTMLResponse:
    """Show a consent text that is being written, in HTML as annotators see it. Nothing is stored."""
    (consent,) = await markdown_texts_to_safe_html(
        form_values.get("consent", "")[:MAX_CONSENT_CHARACTERS], mark_formulas=False
    )
    return HTMLResponse(consent)


@router.post(PREVIEW_CAMPAIGN_PATH + "/try/consent-text", response_class=PlainTextResponse)
async def consent_markdown_drafted_from_form(
    form_values: FormFields, connection: Transaction, settings: AppSettings, slug: str
) -> str:
    """Return a consent text in Markdown, made from a step that is being filled in. Nothing is stored."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    stored = lifecycle.unchecked_settings_with_deliverable_emails(campaign)
    values = step_input.form_values_with_entered_step(stored, STEP_BY_SETTING["consent"], form_values)
    return draft_consent_text(StudyFacts.from_study_form(values, campaign.segment_count), settings.retention_days)


@preview_router.put(PREVIEW_CAMPAIGN_PATH + "/try/hit", status_code=204)
async def discard_preview_draft() -> None:
    """Accept a draft and discard it."""


async def render_preview_hit(
    request: Request, campaign: CampaignOnPage, hit: preview_hit.PreviewHit, page_state: Mapping[str, Any] | None = None
) -> HTMLResponse:
    allow_https_media_if_campaign_does(request, campaign)
    served_campaign = preview_hit.campaign_for_preview_page(campaign, hit)
    (instructions,) = await markdown_texts_to_safe_html(campaign.instructions, mark_formulas=campaign.latex)
    context = {
        "campaign": served_campaign,
        "criterion_forms": served_campaign.shuffled_criteria_for_annotator(hit.id),
        "design": campaign.design,
        "platform": preview_platform_or_first(campaign, ""),
        "next_hit": {"hit": hit},
        "rendered": hit.drawn,
        "shown": {"form": {}, "replaces": None, **(page_state or {})},
        "token": "",
        "instructions": instructions,
        "last": False,
    }
    return render_page(request, "_work.html" if is_script_request(request) else "work.html", context)
