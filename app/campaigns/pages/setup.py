"""Researchers' pages that set a campaign up step by step, each step a form that is saved by itself."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from app.accounts.guards import researcher_router
from app.annotation.platforms.closed_links import load_notes_on_closed_links
from app.campaigns import (
    empty_campaigns,
    form_input,
    lifecycle,
    settings_edits,
    setup_rail,
    step_input,
)
from app.campaigns.comparisons import ComparisonUnit, form_values_with_judgments_for_comparisons_or_refuse
from app.campaigns.consent_writing import load_consent_context, write_consent_again
from app.campaigns.form_sections import NEED_FIELD, STEP_BY_SETTING, STEP_TITLES, StepName, step_of_field_or_none
from app.campaigns.needs import name_of_need_of_settings
from app.campaigns.open_link import close_open_link_and_keep_platform_links
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.campaigns.person_pay import refuse_reward_without_tasks
from app.campaigns.rule_fitting import (
    store_check_remedy_and_return_notice,
    turn_off_or_relax_rules_that_can_flag_no_one,
)
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SavedStep
from app.campaigns.starter_questions import load_starter_question_or_refuse
from app.campaigns.step_page import EnteredStep, StepPage, load_item_notes_context, load_notes_context
from app.campaigns.totals import CampaignTotals, sentence_on_task_size
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.errors import Conflict, Invalid, NotFound
from app.http.dependencies import Database, FormFields, Now, Transaction, render_page
from app.record.campaign import CampaignOnPage, load_campaign_for_page_or_refuse
from app.record.law_editions import load_law_edition, move_to_newest_edition_and_return_former

router = researcher_router("/admin")

NEW_CAMPAIGN_STEP = setup_rail.FIRST_STEP
MAX_STEP_VERSION = 1_000_000_000
TemplateQuery = Annotated[str | None, Query(alias="template", description="A question that comes with Easel.")]


def initial_settings_of_new_campaign(template_name: str | None) -> CampaignSettings:
    """Return the settings that a new campaign begins with; a placeholder stands for its question."""
    if template_name:
        return load_starter_question_or_refuse(template_name).settings
    return CampaignSettings.model_validate(form_input.PLACEHOLDER_VALUES)


@router.get("/campaigns/new")
async def new_campaign_page(request: Request, template_name: TemplateQuery = None) -> HTMLResponse:
    return render_step_page(request, None, NEW_CAMPAIGN_STEP, template_name=template_name)


@router.post("/campaigns/new")
async def submit_new_campaign(
    request: Request, values: FormFields, connection: Transaction, now: Now, template_name: TemplateQuery = None
) -> Response:
    """Create a draft from its question, and show the next step."""
    base = initial_settings_of_new_campaign(template_name)
    own_values = {name: value for name, value in values.items() if step_of_field_or_none(name)}
    merged = step_input.form_values_reset_for_new_design(
        base,
        step_input.stored_form_values_except_switches_of_step(base, NEW_CAMPAIGN_STEP, is_launched=False) | own_values,
    )
    if not template_name:
        merged = dict.fromkeys(form_input.PLACEHOLDER_VALUES, "") | {
            name: value for name, value in merged.items() if name in values or name not in form_input.PLACEHOLDER_VALUES
        }
    try:
        settings = form_input.parse_settings_form(merged)
    except ValidationError as error:
        entered = EnteredStep(values, form_input.error_message_by_form_field(error, merged))
        return render_step_page(request, None, NEW_CAMPAIGN_STEP, entered, template_name=template_name)
    campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=now)
    return redirect_to(campaign_page_url(campaign.slug, "/settings/visit", notice="created"))


@router.get(CAMPAIGN_PATH + "/settings")
async def redirect_to_step_of_setting(
    slug: str,
    setting: Annotated[str, Query(description="The setting to change.", max_length=200)] = "",
) -> Response:
    """Redirect to the step that has a setting, by default to the first step."""
    step = step_of_field_or_none(setting)
    return redirect_to(setup_rail.step_url(slug, step or NEW_CAMPAIGN_STEP) + (f"#{setting}" if step else ""))


@router.get(CAMPAIGN_PATH + "/edit")
async def redirect_edit_to_settings(slug: str) -> Response:
    """Redirect from the address that the settings had before they were in steps; the script follows its fragment."""
    return redirect_to(f"{setup_rail.step_url(slug, NEW_CAMPAIGN_STEP)}?moved=1")


def step_name_or_refuse(step: str) -> StepName:
    """Return the step of an address. Raises `NotFound`."""
    for name in STEP_TITLES:
        if name == step:
            return name
    raise NotFound("There is no such page.")


@router.get(CAMPAIGN_PATH + "/settings/{step}")
async def step_page(request: Request, connection: Transaction, slug: str, step: str) -> Response:
    """Show the settings of one step; after the launch, those that are fixed are read-only."""
    name = step_name_or_refuse(step)
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    if name == "review":
        return redirect_to(setup_rail.step_url(slug, name))
    check_context = await load_notes_context(
        connection, campaign, name, max_days=request.app.state.settings.retention_days
    )
    if campaign.status == "draft":
        return render_step_page(request, campaign, name, more_context=check_context)
    launched_context = check_context | {
        "closed_links": await load_notes_on_closed_links(connection, campaign),
        "has_no_answers": not await empty_campaigns.has_any_answer(connection, campaign.id),
        "law_edition": await load_law_edition(connection, campaign) if name == STEP_BY_SETTING["update_law"] else None,
    }
    return render_step_page(request, campaign, name, more_context=launched_context)


@router.get(CAMPAIGN_PATH + "/settings/{step}/totals")
async def show_totals_of_entered_step(request: Request, connection: Transaction, slug: str, step: str) -> HTMLResponse:
    """Show the totals of the campaign with the settings of a form that is being filled in, whose numbers the query has.

    The texts about checks and rules come with them. If the settings cannot be saved, the page has the problem of each
    wrong field instead, with status 422.
    """
    name = step_name_or_refuse(step)
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    unit = ComparisonUnit.comparison_unit_or_none(campaign, campaign.item_count)
    values = form_values_with_judgments_for_comparisons_or_refuse(dict(request.query_params), campaign, unit)
    stored_settings, launched = (
        lifecycle.unchecked_settings_with_deliverable_emails(campaign),
        campaign.status != "draft",
    )
    merged = step_input.form_values_with_entered_step(stored_settings, name, values, is_launched=launched)
    try:
        entered_settings = form_input.parse_settings_form(merged)
    except ValidationError as error:
        chosen_need = None if launched else values.get(NEED_FIELD, name_of_need_of_settings(stored_settings))
        messages = step_input.error_message_by_field_of_step(error, name, merged, chosen_need)
        return render_page(request, "admin/_setup_problems.html", {"messages": messages}, status=422)
    changed = CampaignOnPage.from_columns(campaign.column_values_of_campaign() | entered_settings.model_dump())
    context = {"campaign": changed, "totals": CampaignTotals.from_campaign(changed), "is_entered": True}
    context["task_size"] = sentence_on_task_size(changed)
    return render_page(
        request, "admin/_setup_totals.html", context | await load_item_notes_context(connection, changed, name)
    )


@router.post(CAMPAIGN_PATH + "/settings/{step}")
async def submit_step_form(request: Request, values: FormFields, database: Database, slug: str, step: str) -> Response:
    """Save one step, and show the next one on request. What cannot be saved is kept in the form with the reason."""
    name = step_name_or_refuse(step)
    if name == "review":
        raise NotFound("There is no such page.")
    if entered := await store_step_or_return_entered_with_reason(database, slug, name, values):
        async with database.begin() as connection:
            campaign = await load_campaign_for_page_or_refuse(connection, slug)
            check_context = await load_notes_context(
                connection, campaign, name, max_days=request.app.state.settings.retention_days
            )
        return render_step_page(request, campaign, name, entered, more_context=check_context)
    if values.get("go") == "fitting-rules":
        async with database.begin() as connection:
            await turn_off_or_relax_rules_that_can_flag_no_one(connection, slug)
        return redirect_to(f"{setup_rail.step_url(slug, name)}?done=fitting-rules")
    if values.get("go", "").startswith("remedy-"):
        _, kind, remedy_name = f"{values['go']}--".split("-")[:3]
        async with database.begin() as connection:
            notice = await store_check_remedy_and_return_notice(connection, slug, kind, remedy_name, otherwise="saved")
        return redirect_to(f"{setup_rail.step_url(slug, name)}?done={notice}")
    if values.get("go") == "write-consent":
        async with database.begin() as connection:
            await write_consent_again(connection, slug, request.app.state.settings.retention_days)
        return redirect_to(f"{setup_rail.step_url(slug, name)}?done=consent-written")
    if values.get("go") == "close-open-link":
        async with database.begin() as connection:
            await close_open_link_and_keep_platform_links(connection, slug)
        return redirect_to(f"{setup_rail.step_url(slug, name)}?done=link-closed")
    next_step = setup_rail.neighbouring_step_or_none(name, 1) if values.get("go") == "next" else None
    is_unfit = next_step and name == STEP_BY_SETTING["consent"] and await does_consent_differ(request, database, slug)
    notice = "saved-consent-differs" if is_unfit else "saved"
    return redirect_to(f"{setup_rail.step_url(slug, next_step or name)}?done={notice}")


async def does_consent_differ(request: Request, database: Database, slug: str) -> bool:
    """Return whether the stored consent text says something else than the stored settings."""
    async with database.begin() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, slug)
        context = await load_consent_context(connection, campaign, request.app.state.settings.retention_days)
    return bool(context["consent_differs"])


@router.post(CAMPAIGN_PATH + "/law-edition/newest")
async def submit_move_to_newest_edition(database: Database, slug: str, now: Now) -> Response:
    """Recompute the posteriors under the newest edition of the update law."""
    await move_to_newest_edition_and_return_former(database, slug, now=now)
    return redirect_to(f"{setup_rail.step_url(slug, STEP_BY_SETTING['update_law'])}?done=recomputed")


async def store_step_or_return_entered_with_reason(
    database: Database, slug: str, step: StepName, values: Mapping[str, str]
) -> EnteredStep | None:
    """Store a step, or return what was entered with the reason; a refusal rolls its transaction back."""
    saved_step = SavedStep(step, parse_nonnegative_int_or_none(values.get("version"), maximum=MAX_STEP_VERSION))
    merged: dict[str, str] = {}
    chosen_need: str | None = None
    entered = values

    def change(before: CampaignSettings) -> CampaignSettings:
        nonlocal chosen_need
        chosen_need = None if is_launched else values.get(NEED_FIELD, name_of_need_of_settings(before))
        refuse_reward_without_tasks(before, entered)
        merged.update(step_input.form_values_with_entered_step(before, step, entered, is_launched=is_launched))
        return form_input.parse_settings_form(merged)

    try:
        async with database.begin() as connection:
            await lifecycle.lock_and_load_campaign_or_refuse(connection, slug)
            campaign = await load_campaign_for_page_or_refuse(connection, slug)
            is_launched = campaign.status != "draft"
            entered = form_values_with_judgments_for_comparisons_or_refuse(
                values, campaign, ComparisonUnit.comparison_unit_or_none(campaign, campaign.item_count)
            )
            await settings_edits.store_changed_settings_or_refuse(connection, slug, change, saved_step)
    except ValidationError as error:
        return EnteredStep(values, step_input.error_message_by_field_of_step(error, step, merged, chosen_need))
    except (Conflict, Invalid) as refusal:
        if field_errors := form_input.refusal_message_by_field(refusal):
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
    more_context: Mapping[str, Any] | None = None,
) -> HTMLResponse:
    """Show one step with its stored values, or with what was entered and could not be saved.

    Args:
        request: The request.
        campaign: The campaign, None for one that does not exist yet.
        step: The step.
        entered: What was entered and could not be saved.
        template_name: The question that a new campaign began with.
        more_context: Further values for the template.

    """
    settings = (
        lifecycle.unchecked_settings_with_deliverable_emails(campaign)
        if campaign
        else initial_settings_of_new_campaign(template_name)
    )
    page = StepPage(campaign, step, settings, entered, template_name)
    context = page.context() | dict(more_context or {})
    return render_page(
        request, "admin/settings.html", context, refusal=page.refusal, status=422 if page.errors else 200
    )
