"""Researchers' preview of a visit: the annotators' own pages, with a bar above them. Nothing is stored."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from app.accounts.guards import require_researcher_without_csrf
from app.accounts.roles import SEE_SETTINGS
from app.annotation.hits import visit_outcome
from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.next_hit import HitOnPage, NextHit
from app.annotation.hits.pages.hit_page import POLL_SECONDS
from app.annotation.hits.pages.steps import PageState
from app.annotation.hits.withdrawal_code import WithdrawalOffer
from app.annotation.onboarding.passphrase import is_same_passphrase, passphrase_wrong_error
from app.annotation.onboarding.steps import has_consent_on_start_page, place_of_step_among_pages
from app.annotation.onboarding.welcome import has_welcome_page
from app.annotation.platforms.platform import Completion, Platform, VisitOutcome
from app.annotation.platforms.registry import platforms_of_campaign
from app.annotation.platforms.settings import RETURN_SETTING_NAMES, crowd_setting_by_name_with_slug_of_campaign
from app.campaigns import preview_hit, visit_preview
from app.campaigns.visit_preview import PASSPHRASE_PAGE, VisitPage, VisitPreviewState
from app.database.session import driver_of
from app.designs.answer import Form
from app.designs.content import SourceAndReference
from app.designs.item_names import item_number_of_media_report_or_refuse, rename_form_items_to_positions
from app.errors import Conflict, Invalid
from app.http.dependencies import (
    AppSettings,
    FormFields,
    Transaction,
    allow_https_media_if_campaign_does,
    is_script_request,
    render_page,
    set_request_language,
)
from app.http.languages.catalogue import BROWSER_LANGUAGE
from app.http.templating import LANGUAGE_PARAMETER, markdown_texts_to_safe_html
from app.media.render_items import render_campaign_items
from app.record.campaign import CampaignOnPage, load_campaign_for_page_or_refuse
from app.settings import Settings

router = APIRouter(prefix="/admin", dependencies=[Depends(require_researcher_without_csrf)], include_in_schema=False)
VISIT_PREVIEW_PATH = "/campaigns/{slug}/preview"
EXAMPLE_CODE = "EXAMPLE"
EXAMPLE_PLATFORM_ID = "example"  # of the participant, their assignment and so on
FROM_PARAMETER = "from"
CAMPAIGN_SUBPAGE = re.compile(r"[a-z]+(/[a-z-]+)?")
ShortQuery = Annotated[str, Query(max_length=100)]
OpenedFromQuery = Annotated[str, Query(alias=FROM_PARAMETER, max_length=100)]


@dataclass(frozen=True)
class VisitPreview:
    """A page of a preview, and what the participant has done on it.

    Attributes:
        forms: Forms that they have sent in the open step.
        form: Fields to fill into the page.
        notice: Refusal of the form that was just sent.
        kept: JSON that Easel would store of the form that was just sent; empty if there is none.
        reported: True if they have just reported media that do not load.
        hides_codes: True if the researcher may not see the settings: completion codes are replaced by examples, and any
            passphrase is taken for the right one.
        opened_from: As in `VisitPreviewState`.

    """

    campaign: CampaignOnPage
    platform: Platform
    pages: list[VisitPage]
    page: VisitPage
    forms: list[dict[str, str]] = field(default_factory=list)
    form: Mapping[str, str] = field(default_factory=dict)
    notice: Invalid | Conflict | None = None
    kept: str = ""
    reported: bool = False
    hides_codes: bool = False
    opened_from: str = ""

    @property
    def state(self) -> VisitPreviewState:
        return VisitPreviewState(
            platform=self.platform.name, page=self.page.key, forms=self.forms, opened_from=self.opened_from
        )

    @property
    def closing_url(self) -> str:
        """The page from which the preview was opened; the campaign's own page if that is unknown."""
        campaign_url = f"/admin/campaigns/{self.campaign.slug}"
        return f"{campaign_url}/{self.opened_from}" if CAMPAIGN_SUBPAGE.fullmatch(self.opened_from) else campaign_url

    def query_fields_of_page(self, page_key: str) -> dict[str, str]:
        """Return the query of a page's address."""
        opened_from = {FROM_PARAMETER: self.opened_from} if self.opened_from else {}
        return {"at": page_key, "platform": self.platform.name} | opened_from

    def at_page(self, page: VisitPage | None, kept_answer_json: str = "") -> "VisitPreview":
        """Return another page as it opens; the same one where there is none."""
        return replace(self, page=page or self.page, forms=[], form={}, notice=None, kept=kept_answer_json)

    def neighbour_page_or_none(self, offset: int) -> VisitPage | None:
        return visit_preview.neighbouring_page_or_none(self.pages, self.page, offset)


async def load_visit_preview_or_refuse(
    request: Request, connection: Transaction, slug: str, state: VisitPreviewState
) -> VisitPreview:
    """Return the page that a state names. Raises `NotFound`."""
    hides_codes = not request.state.session.can(SEE_SETTINGS)
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    platform = visit_preview.preview_platform_or_first(campaign, state.platform)
    pages = visit_preview.build_visit_pages(campaign, platform)
    return VisitPreview(
        campaign,
        platform,
        pages,
        visit_preview.visit_page_or_first(pages, state.page),
        state.forms,
        hides_codes=hides_codes,
        opened_from=state.opened_from,
    )


@router.get(VISIT_PREVIEW_PATH)
async def show_visit_preview(
    request: Request,
    connection: Transaction,
    settings: AppSettings,
    *,
    slug: str,
    at: ShortQuery = "",
    platform: ShortQuery = "",
    opened_from: OpenedFromQuery = "",
) -> HTMLResponse:
    """Show a page of the visit, by default the first one."""
    preview = await load_visit_preview_or_refuse(
        request, connection, slug, VisitPreviewState(platform=platform, page=at, opened_from=opened_from)
    )
    return await render_visit_preview(request, connection, settings, preview)


@router.get(VISIT_PREVIEW_PATH + "/phone")
async def show_visit_preview_on_phone(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    """Show the preview in a frame that is as wide as a phone."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    query = urlencode([*request.query_params.multi_items()])
    return render_page(request, "admin/visit_preview_phone.html", {"campaign": campaign, "query": query})


@router.put(VISIT_PREVIEW_PATH, status_code=204)
async def discard_visit_preview_draft() -> None:
    """Accept a draft and discard it."""


@router.post(VISIT_PREVIEW_PATH)
async def submit_previewed_visit_form_and_show_next(
    request: Request,
    form_values: FormFields,
    connection: Transaction,
    settings: AppSettings,
    *,
    slug: str,
    at: ShortQuery = "",
    platform: ShortQuery = "",
    opened_from: OpenedFromQuery = "",
) -> Response:
    """Check a form as the page's own address does, and show the next page, or the same one with the refusal."""
    if token := form_values.get("token"):
        state = visit_preview.parse_preview_token_or_refuse(token)
    else:  # of the start page, and of the form that leads back to a platform
        state = VisitPreviewState(platform=platform, page=at, opened_from=opened_from)
    preview = await load_visit_preview_or_refuse(request, connection, slug, state)
    try:
        preview = await preview_after_form_or_refuse(connection, preview, form_values)
    except (Invalid, Conflict) as refusal:
        if is_script_request(request):
            raise
        preview = replace(preview, notice=refusal, form=form_values)
    return await render_visit_preview(request, connection, settings, preview)


async def preview_after_form_or_refuse(
    connection: Transaction, preview: VisitPreview, form: Mapping[str, str]
) -> VisitPreview:
    """Return the preview after a form. Raises what refuses the form on the annotators' page."""
    page = preview.page
    if page.step is not None or page.key == visit_preview.START_PAGE:
        return (preview_after_step_form if page.step else preview_after_start_form_or_refuse)(preview, form)
    if "undo" in form:
        return preview.at_page(preview.neighbour_page_or_none(-1))
    # Somebody who may not see the passphrase must not learn it by trying: for them any is the right one.
    is_checked = page.key == PASSPHRASE_PAGE and not preview.hides_codes
    if is_checked and not is_same_passphrase(preview.campaign.passphrase, form.get("passphrase", "")):
        raise passphrase_wrong_error()
    if page.hit_number is None:
        return preview.at_page(None if page.is_outcome else preview.neighbour_page_or_none(1))
    if "finish" in form:
        return preview.at_page(visit_preview.visit_page_or_first(preview.pages, "no-hit-stopped"))
    hit = await load_previewed_hit_or_example(connection, preview)
    if "broken" in form:
        item_number_of_media_report_or_refuse(form, hit.items)
        return replace(preview, reported=True, form=form)
    return preview.at_page(
        preview.neighbour_page_or_none(1),
        visit_preview.parse_answer_as_stored_json(preview.campaign, hit, Form(form, "form")),
    )


def preview_after_start_form_or_refuse(preview: VisitPreview, form: Mapping[str, str]) -> VisitPreview:
    """Return the preview after the form of the first page, which may ask for consent. Raises `Invalid`."""
    result = visit_preview.consent_result_of_start_form_or_none(preview.campaign, preview.platform, form)
    if result is None:
        return preview.at_page(preview.neighbour_page_or_none(1))
    kept = visit_preview.stored_step_result_as_json(result)
    if result.outcome == "passed":
        return preview.at_page(preview.neighbour_page_or_none(1), kept)
    declined = next(page for page in preview.pages if page.is_outcome and page.step and page.step.name == result.step)
    return preview.at_page(declined, kept)


def preview_after_step_form(preview: VisitPreview, form: Mapping[str, str]) -> VisitPreview:
    """Return the preview after a form of an onboarding step. A form of an earlier page changes nothing."""
    step = visit_preview.previewed_step_of_page(preview.campaign, preview.page)
    history = step.visit_history_after_forms_or_refuse(preview.forms)
    result = step.step.parse_form(form, step.settings, history)
    if result is None:
        return preview
    kept = visit_preview.stored_step_result_as_json(result)
    if step.is_passed(step.history_with_step_result(history, result)):
        step_page = visit_preview.visit_page_or_first(preview.pages, step.step.name)
        return preview.at_page(visit_preview.neighbouring_page_or_none(preview.pages, step_page, 1), kept)
    return replace(preview, forms=[*preview.forms, visit_preview.form_fields_parsed_again_later(form)], kept=kept)


async def load_previewed_hit_or_example(connection: Transaction, preview: VisitPreview) -> preview_hit.PreviewHit:
    """Return the HIT of a page; on other pages, the example."""
    number = (preview.page.hit_number or 1) - 1
    return await preview_hit.load_preview_hit_of_random_items(connection, preview.campaign, number)


async def render_visit_preview(
    request: Request, connection: Transaction, settings: Settings, preview: VisitPreview
) -> HTMLResponse:
    """Return the annotators' page with the bar; for our script, the part that changes."""
    allow_https_media_if_campaign_does(request, preview.campaign)
    set_request_language(request, preview.campaign)
    context = await load_visit_page_template_context(connection, settings, preview)
    if preview.page.step is not None:
        context |= await load_onboarding_step_template_context(connection, settings, preview)
        page_template = "step.html"
    elif preview.page.hit_number is not None or preview.page.reason is not None:
        context |= hit_page_template_context(settings, preview, context["campaign"], context["rendered_hit"])
        page_template = "work.html"
    elif preview.page.way_back is not None:
        way_back = build_completion(settings, preview, preview.page.way_back)
        context |= {"way_back": way_back}
        page_template = "admin/visit_preview_way_back.html"
    elif preview.page.refusal is not None:
        context |= {"refusal": preview.notice or preview.page.refusal}
        context |= {"entered_passphrase": preview.form.get("passphrase", "")}
        page_template = "door.html"
    else:
        page_template = "welcome.html"
    context |= preview_bar_context(request, preview) | {
        "page_template": page_template,
        "page_part": f"_{page_template}",
    }
    as_part = is_script_request(request) and page_template in ("step.html", "work.html")
    return render_page(request, "admin/_visit_preview_part.html" if as_part else "admin/visit_preview.html", context)


async def load_visit_page_template_context(
    connection: Transaction, settings: Settings, preview: VisitPreview
) -> dict[str, Any]:
    """Return the template context that all annotator pages share."""
    campaign, page = preview.campaign, preview.page
    answered = visit_preview.count_hits_answered_before_page(campaign, preview.platform, page)
    shown_campaign = preview_hit.PreviewCampaign.from_columns(
        campaign.column_values_of_campaign()
        | {"status": page.status, "hits_answered": answered, "answered_here": answered > 0}
    )
    visit_settings = visit_preview.visit_and_answer_settings_of_campaign(campaign)
    instructions, consent = await markdown_texts_to_safe_html(
        campaign.instructions, campaign.consent, mark_formulas=campaign.latex
    )
    hit = await load_previewed_hit_or_example(connection, preview)
    return {
        "campaign": shown_campaign,
        "design": campaign.design,
        "criterion_forms": shown_campaign.shuffled_criteria_for_annotator(0),
        "platform": preview.platform,
        "token": preview.state.to_json_token(),
        "token_hours": settings.worker_token_hours,
        "start_token": "",
        "instructions": instructions,
        "are_instructions_new": not (
            preview.platform.has_start_button or has_welcome_page(visit_settings, preview.platform)
        ),
        "consent": consent,
        "asks_consent": has_consent_on_start_page(visit_settings, preview.platform),
        "place": place_of_step_among_pages(visit_settings, preview.platform, page.step),
        "version": visit_preview.version_of_previewed_visit(campaign),
        "rendered": hit.drawn,
        "rendered_hit": hit,
        "shown": PageState(notice=preview.notice, form=preview.form, reported=preview.reported),
    }


async def load_onboarding_step_template_context(
    connection: Transaction, settings: Settings, preview: VisitPreview
) -> dict[str, Any]:
    """Return the additional template context of an onboarding step."""
    step = visit_preview.previewed_step_of_page(preview.campaign, preview.page)
    context: dict[str, Any] = {"step": step.step.name}
    context |= step.step.page_context(step.settings, step.visit_history_after_forms_or_refuse(preview.forms))
    texts = context.get("texts")
    context["shown"] = PageState(
        notice=preview.notice, form=rename_form_items_to_positions(preview.form, range(len(texts or ())))
    )
    outcome = context.get("outcome")
    context["completion"] = build_preview_completion(settings, preview, outcome) if outcome else None
    explanations = (context.get("feedback") or {}).get("explanations", ())
    context["explained"] = await markdown_texts_to_safe_html(*explanations, mark_formulas=preview.campaign.latex)
    if texts is not None:
        driver = await driver_of(connection)
        context["rendered"] = await render_campaign_items(
            driver, preview.campaign, range(len(texts)), texts, SourceAndReference()
        )
    return context


def hit_page_template_context(
    settings: Settings,
    preview: VisitPreview,
    shown_campaign: preview_hit.PreviewCampaign,
    hit: preview_hit.PreviewHit,
) -> dict[str, Any]:
    """Return the additional template context of a HIT page, or of the page that says why there is no HIT."""
    campaign, platform, page = preview.campaign, preview.platform, preview.page
    next_hit = NextHit(
        cast("AssignmentState", shown_campaign),
        cast("HitOnPage", hit) if page.hit_number else None,
        page.reason,
        was_finished=True,
    )
    outcome = visit_outcome.outcome_of_finished_visit_or_none(next_hit)
    here = "?" + urlencode(preview.query_fields_of_page(page.key))
    has_code = next_hit.is_finished and shown_campaign.hits_answered
    return {
        "next_hit": next_hit,
        "may_leave": visit_outcome.is_leaving_early_allowed(
            platform, campaign.leave_early, campaign.hits_per_annotator
        ),
        "last": visit_preview.is_last_previewed_hit(campaign, platform, page),
        "withdrawal": (
            WithdrawalOffer(EXAMPLE_CODE, campaign.withdrawal == "self", here, campaign.study_contact)
            if has_code
            else None
        ),
        "look_again_seconds": POLL_SECONDS.get(page.reason),
        "outcome": outcome,
        "completion": build_preview_completion(settings, preview, outcome) if outcome else None,
        "shown": PageState(
            notice=preview.notice,
            form=rename_form_items_to_positions(preview.form, hit.items),
            reported=preview.reported,
        ),
    }


def build_completion(settings: Settings, preview: VisitPreview, outcome: VisitOutcome) -> Completion:
    """Return the way back to the platform for a participant with example ids."""
    identifiers = [(name, EXAMPLE_PLATFORM_ID) for name in preview.platform.identifiers.names]
    arrival = preview.platform.parse_arrival_or_none(identifiers, settings)
    crowd_settings = crowd_setting_by_name_with_slug_of_campaign(preview.campaign)
    if preview.hides_codes:
        crowd_settings |= {name: EXAMPLE_CODE for name in RETURN_SETTING_NAMES if crowd_settings[name]}
    return preview.platform.build_completion(arrival.details if arrival else {}, crowd_settings, outcome)


def build_preview_completion(settings: Settings, preview: VisitPreview, outcome: VisitOutcome) -> Completion:
    """Return the way back, with an address that leads to its description instead of to the platform."""
    way_back = build_completion(settings, preview, outcome)
    if way_back.url is None:
        return way_back
    query = preview.query_fields_of_page(f"way-back-{outcome}")
    return replace(way_back, url=f"/admin/campaigns/{preview.campaign.slug}/preview?{urlencode(query)}")


def preview_bar_context(request: Request, preview: VisitPreview) -> dict[str, Any]:
    """Return what the bar shows: where the participant is, and the links to the other pages."""
    kept_query = {
        name: request.query_params[name] for name in (LANGUAGE_PARAMETER, "width") if name in request.query_params
    }

    def page_query(page: VisitPage | None) -> str:
        return "?" + urlencode(preview.query_fields_of_page(page.key) | kept_query) if page else ""

    usual_pages = [page for page in preview.pages if not page.is_outcome]
    return {
        "bar": {
            "address": f"/admin/campaigns/{preview.campaign.slug}/preview",
            "page": preview.page,
            "closing_url": preview.closing_url,
            "opened_from": preview.opened_from,
            "number": None if preview.page.is_outcome else usual_pages.index(preview.page) + 1,
            "count": len(usual_pages),
            "usual_pages": usual_pages,
            "outcomes": [page for page in preview.pages if page.is_outcome],
            "platforms": platforms_of_campaign(crowd_setting_by_name_with_slug_of_campaign(preview.campaign)),
            "back": page_query(preview.neighbour_page_or_none(-1)),
            "next": page_query(preview.neighbour_page_or_none(1)),
            "here": page_query(preview.page),
            "on_phone": request.query_params.get("width") == "phone",
            "has_languages": preview.campaign.language == BROWSER_LANGUAGE,
            "kept": preview.kept,
        }
    }
