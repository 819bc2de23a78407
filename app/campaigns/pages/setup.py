"""Researchers' pages that set a campaign up step by step, each step a form that is saved by itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from app.accounts.guards import researcher_router
from app.campaigns import (
    empty_campaigns,
    form,
    form_input,
    form_sections,
    form_values,
    lifecycle,
    settings_edits,
    setup_rail,
    step_input,
    step_report,
)
from app.campaigns.comparisons import ComparisonUnit, ask_for_comparisons, replace_comparisons
from app.campaigns.form_sections import NEED_FIELD, STEP_BY_SETTING, STEP_TITLES, StepName, step_of_field
from app.campaigns.need_cards import NeedForm
from app.campaigns.needs import NEED_BY_NAME, need_of_settings, settings_of_chosen_need
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.campaigns.pay import HourlyPay, minimums_by_platform
from app.campaigns.settings import SETTINGS_EDITABLE_AFTER_LAUNCH, CampaignSettings
from app.campaigns.settings_edits import SavedStep
from app.campaigns.starter_questions import load_starter_question
from app.designs.number_parsing import parse_nonnegative_int
from app.designs.registry import DESIGNS
from app.errors import Conflict, Invalid, NotFound, Refusal
from app.http.dependencies import Database, FormFields, Now, Transaction, render_page
from app.record.campaign import CampaignOnPage, load_campaign_for_page

router = researcher_router("/admin")

FIXED_SETTINGS = CampaignSettings.model_fields.keys() - SETTINGS_EDITABLE_AFTER_LAUNCH.keys()
NEW_CAMPAIGN_STEP = setup_rail.FIRST_STEP
MAX_STEP_VERSION = 1_000_000_000
TemplateQuery = Annotated[str | None, Query(alias="template", description="A question that comes with Easel.")]


@dataclass(frozen=True)
class EnteredStep:
    """The entries of a form that was not saved, and the reason."""

    values: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None


def settings_of_new_campaign(template_name: str | None) -> CampaignSettings:
    """Return the settings that a new campaign begins with; a placeholder stands for its question."""
    if template_name:
        return load_starter_question(template_name).settings
    return CampaignSettings.model_validate(form_input.PLACEHOLDER_VALUES)


@router.get("/campaigns/new")
async def new_campaign_page(request: Request, template_name: TemplateQuery = None) -> HTMLResponse:
    return render_step_page(request, None, NEW_CAMPAIGN_STEP, template_name=template_name)


@router.post("/campaigns/new")
async def create_campaign_from_form(
    request: Request, values: FormFields, connection: Transaction, now: Now, template_name: TemplateQuery = None
) -> Response:
    """Create a draft from its question, and show the next step."""
    base = settings_of_new_campaign(template_name)
    own_values = {name: value for name, value in values.items() if step_of_field(name)}
    merged = step_input.follow_design(
        base, step_input.kept_values(base, NEW_CAMPAIGN_STEP, launched=False) | own_values
    )
    if not template_name:
        merged = dict.fromkeys(form_input.PLACEHOLDER_VALUES, "") | {
            name: value for name, value in merged.items() if name in values or name not in form_input.PLACEHOLDER_VALUES
        }
    try:
        settings = form_input.parse_settings_form(merged)
    except ValidationError as error:
        entered = EnteredStep(values, form_input.form_field_errors(error, merged))
        return render_step_page(request, None, NEW_CAMPAIGN_STEP, entered, template_name=template_name)
    campaign = await lifecycle.create_draft_campaign(connection, settings, now=now)
    return redirect_to(campaign_page_url(campaign.slug, "/settings/visit", notice="created"))


@router.get(CAMPAIGN_PATH + "/settings")
async def find_setting(
    slug: str,
    setting: Annotated[str, Query(description="The setting to change.", max_length=200)] = "",
) -> Response:
    """Redirect to the step that has a setting, by default to the first step."""
    step = step_of_field(setting)
    return redirect_to(setup_rail.step_url(slug, step or NEW_CAMPAIGN_STEP) + (f"#{setting}" if step else ""))


@router.get(CAMPAIGN_PATH + "/edit")
async def redirect_edit_to_settings(slug: str) -> Response:
    """Redirect from the address that the settings had before they were in steps; the script follows its fragment."""
    return redirect_to(f"{setup_rail.step_url(slug, NEW_CAMPAIGN_STEP)}?moved=1")


def parse_step_name(step: str) -> StepName:
    """Return the step of an address. Raises `NotFound`."""
    for name in STEP_TITLES:
        if name == step:
            return name
    raise NotFound("There is no such page.")


@router.get(CAMPAIGN_PATH + "/settings/{step}")
async def step_page(request: Request, connection: Transaction, slug: str, step: str) -> Response:
    """Show the settings of one step; after the launch, those that are fixed are read-only."""
    name = parse_step_name(step)
    campaign = await load_campaign_for_page(connection, slug)
    if name == "review":
        return redirect_to(setup_rail.step_url(slug, name))
    has_no_answers = campaign.status != "draft" and not await empty_campaigns.has_any_answer(connection, campaign.id)
    return render_step_page(request, campaign, name, has_no_answers=has_no_answers)


@router.post(CAMPAIGN_PATH + "/settings/{step}")
async def save_step(request: Request, values: FormFields, database: Database, slug: str, step: str) -> Response:
    """Save one step, and show the next one on request. What cannot be saved is kept in the form with the reason."""
    name = parse_step_name(step)
    if name == "review":
        raise NotFound("There is no such page.")
    if entered := await store_step_or_return_reason(database, slug, name, values):
        async with database.begin() as connection:
            campaign = await load_campaign_for_page(connection, slug)
        return render_step_page(request, campaign, name, entered)
    next_step = setup_rail.neighbouring_step(name, 1) if values.get("go") == "next" else None
    return redirect_to(f"{setup_rail.step_url(slug, next_step or name)}?done=saved")


async def store_step_or_return_reason(
    database: Database, slug: str, step: StepName, values: Mapping[str, str]
) -> EnteredStep | None:
    """Store a step, or return what was entered with the reason; a refusal rolls its transaction back."""
    saved_step = SavedStep(step, parse_nonnegative_int(values.get("version"), maximum=MAX_STEP_VERSION))
    merged: dict[str, str] = {}
    chosen_need: str | None = None
    entered = values

    def change(before: CampaignSettings) -> CampaignSettings:
        nonlocal chosen_need
        chosen_need = None if is_launched else values.get(NEED_FIELD, need_of_settings(before))
        merged.update(step_input.merge_step_values(before, step, entered, launched=is_launched))
        return form_input.parse_settings_form(merged)

    try:
        async with database.begin() as connection:
            await lifecycle.lock_campaign(connection, slug)
            campaign = await load_campaign_for_page(connection, slug)
            is_launched = campaign.status != "draft"
            entered = replace_comparisons(values, campaign, ComparisonUnit.of_campaign(campaign, campaign.item_count))
            await settings_edits.edit_settings(connection, slug, change, saved_step)
    except ValidationError as error:
        return EnteredStep(values, step_input.step_errors(error, step, merged, chosen_need))
    except (Conflict, Invalid) as refusal:
        if field_errors := form_input.error_of_refused_setting(refusal):
            return EnteredStep(values, field_errors, refusal)
        if refusal.code not in ("step_changed", "not_a_draft"):
            raise
        return EnteredStep(values, refusal=refusal)
    return None


def render_step_page(
    request: Request,
    campaign: CampaignOnPage | None,
    step: StepName,
    entered: EnteredStep | None = None,
    *,
    template_name: str | None = None,
    has_no_answers: bool = False,
) -> HTMLResponse:
    """Show one step with its stored values, or with what was entered and could not be saved.

    `template_name` is the question that a new campaign began with.
    """
    settings = lifecycle.settings_of_campaign(campaign) if campaign else settings_of_new_campaign(template_name)
    launched = campaign is not None and campaign.status != "draft"
    stored = form_values.form_values_of_settings(settings)
    if campaign is None and not template_name:
        stored = {name: value for name, value in stored.items() if name not in form_input.PLACEHOLDER_VALUES}
    values, errors = stored, dict[str, str]()
    if entered:
        values = step_input.kept_values(settings, step, launched=launched) | dict(entered.values)
        errors = dict(entered.errors)
    if launched:
        values = dict(values) | {name: stored.get(name, "") for name in FIXED_SETTINGS}
    minimums = form.setting_minimums_after_launch(campaign) if campaign and launched else {}
    all_sections = form.build_form_sections(values, errors, minimums)
    design_name = values.get("design", settings.design)
    unit = ComparisonUnit.of_campaign(campaign, campaign.item_count) if campaign else None
    if unit and not launched:
        all_sections = ask_for_comparisons(all_sections, unit, values, errors)
    sections = form.sections_of_step(all_sections, step, design_name)
    context: dict[str, Any] = {
        "campaign": campaign,
        "step": step,
        "step_title": STEP_TITLES[step],
        "rail": setup_rail.build_setup_rail(campaign),
        "back_step": setup_rail.neighbouring_step(step, -1),
        "next_step": setup_rail.neighbouring_step(step, 1),
        "sections": sections,
        "errors": errors,
        "problems": step_report.list_problems(all_sections, step, errors),
        "version": campaign.step_versions.get(step, 0) if campaign else 0,
        "designs": DESIGNS,
        "chosen_design": design_name,
        "chosen_law": settings.update_law,
        "open_after_launch": SETTINGS_EDITABLE_AFTER_LAUNCH,
        "has_no_answers": has_no_answers,
        "few_comparisons": unit.warning(campaign.judgments_per_item) if unit and campaign else "",
        "pay_section": form_sections.PAY_SECTION,
        "hourly_pay": HourlyPay.from_campaign(campaign) if campaign else None,
        "hourly_minimums": minimums_by_platform(),
        "max_preview_length": form.MAX_PREVIEW_VALUE_CHARACTERS,
        "starter_question": load_starter_question(template_name) if template_name else None,
        "preview_query": form.annotator_preview_query(
            sections, design_name, {"step": step, "template": template_name or ""}
        ),
    }
    refusal = entered.refusal if entered and not errors else None
    if entered and refusal:
        final_values = dict(values) | dict(entered.values) | settings_of_chosen_need(settings, entered.values)
        context["differences"] = step_report.list_differences(all_sections, step, stored, final_values)
    if step == STEP_BY_SETTING["goal"] and not launched:
        has_plain_items = bool(campaign and campaign.item_count and not campaign.segment_count)
        context["need_cards"] = NeedForm(settings, values, errors, has_plain_items).build_cards()
    if step == STEP_BY_SETTING["rule"]:
        need = NEED_BY_NAME.get(need_of_settings(settings))
        context["chosen_need"] = need.title if need else None
    return render_page(request, "admin/settings.html", context, refusal=refusal, status=422 if errors else 200)
