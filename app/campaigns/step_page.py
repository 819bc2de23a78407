"""The page of a step: its fields with the stored values, or with what was entered and could not be saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.panel_presets import PANEL_PRESETS
from app.annotation.platforms.registry import people_from_values_paid_per_person
from app.annotation.platforms.settings import CALL_SETTING_NAMES, RETURN_SETTING_NAMES
from app.campaigns import form, form_input, form_sections, form_values, setup_rail, step_input, step_report
from app.campaigns.comparisons import ComparisonUnit, sections_with_comparisons_in_place_of_judgments
from app.campaigns.conditions_check import load_short_block_note_or_empty
from app.campaigns.consent_writing import load_consent_context
from app.campaigns.form_sections import STEP_BY_SETTING, STEP_TITLES, StepName
from app.campaigns.item_list import count_checks_by_kind
from app.campaigns.known_answers import load_known_answers_of_usual_columns
from app.campaigns.need_cards import CUSTOM_NEED_TEXT, NeedForm
from app.campaigns.needs import NEED_BY_NAME, form_values_of_chosen_need_or_refuse, name_of_need_of_settings
from app.campaigns.open_link import platform_recruiting_beside_open_link_or_none
from app.campaigns.pay import HourlyPay, minimum_hourly_pay_by_platform_and_currency
from app.campaigns.person_pay import PERSON_FIELDS
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SETTINGS_EDITABLE_AFTER_LAUNCH
from app.campaigns.starter_questions import load_starter_question_or_refuse
from app.campaigns.totals import sentence_on_task_size
from app.campaigns.visit_reading import readable_visit_table_by_setting
from app.designs.campaign import Campaign
from app.designs.content import CONTENT_KINDS
from app.designs.registry import DESIGNS
from app.errors import Refusal
from app.goals.settings import hint_that_design_has_no_goal_or_empty
from app.quality.caught_guessers import load_guess_chance_by_kind
from app.quality.check_remedies import unfit_check_rules
from app.quality.checks import hint_that_hits_cannot_show_checks_or_empty, reason_hits_cannot_show_checks_or_empty
from app.quality.expected_answers import (
    default_tolerance_cell_or_empty,
    proposed_tolerance_cell_or_empty,
    reason_for_proposed_tolerance_or_empty,
)
from app.quality.fitting_rules import UnfitRules
from app.quality.rule_reach import sentences_on_check_counts_and_failures_needed
from app.record.campaign import CampaignOnPage

# Settings that are or may contain passphrases, keys and codes. Browsers do not keep what is typed there.
SECRET_SETTING_NAMES = ("passphrase", "panel_key", "alert_webhook", *RETURN_SETTING_NAMES, *CALL_SETTING_NAMES)
FIXED_SETTINGS = CampaignSettings.model_fields.keys() - SETTINGS_EDITABLE_AFTER_LAUNCH.keys()


@dataclass(frozen=True)
class EnteredStep:
    """The entries of a form that was not saved, and the reason."""

    values: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None


@dataclass(frozen=True)
class StepPage:
    """The page of a step of a campaign, or of the first step of a campaign that does not exist yet.

    Attributes:
        settings: The stored settings, or those that a new campaign begins with.
        entered: What was entered and could not be saved.
        template_name: The question that a new campaign begins with.

    """

    campaign: CampaignOnPage | None
    step: StepName
    settings: CampaignSettings
    entered: EnteredStep | None = None
    template_name: str | None = None

    @property
    def launched(self) -> bool:
        return self.campaign is not None and self.campaign.status != "draft"

    @property
    def errors(self) -> Mapping[str, str]:
        return self.entered.errors if self.entered else {}

    @property
    def refusal(self) -> Refusal | None:
        """Return the refusal that is about no field."""
        return self.entered.refusal if self.entered and not self.errors else None

    @cached_property
    def stored_values(self) -> dict[str, str]:
        values = form_values.form_values_of_settings(self.settings)
        is_blank = self.campaign is None and not self.template_name
        hidden_names = form_input.PLACEHOLDER_VALUES if is_blank else ()
        return {name: value for name, value in values.items() if name not in hidden_names}

    @cached_property
    def values(self) -> dict[str, str]:
        """Return the values of the fields; settings that the launch fixed show what is stored."""
        values = self.stored_values
        if self.entered:
            kept = step_input.stored_form_values_except_switches_of_step(
                self.settings, self.step, is_launched=self.launched
            )
            values = kept | dict(self.entered.values)
        if self.launched:
            values = values | {name: self.stored_values.get(name, "") for name in FIXED_SETTINGS}
        return values

    @property
    def design_name(self) -> str:
        """Return the entered design, or the stored one if there is none of the entered name."""
        entered = self.values.get("design", "")
        return entered if entered in DESIGNS else str(self.settings.design)

    @cached_property
    def comparison_unit(self) -> ComparisonUnit | None:
        return (
            ComparisonUnit.comparison_unit_or_none(self.campaign, self.campaign.item_count) if self.campaign else None
        )

    @cached_property
    def all_sections(self) -> list[form.FormSection]:
        """Return the sections of all steps: a problem of this step may be at a field of another one."""
        minimums = form.setting_minimums_by_name_after_launch(self.campaign) if self.campaign and self.launched else {}
        sections = form.build_form_sections(self.values, self.errors, minimums)
        if self.campaign:
            sections = form.sections_with_no_effect_reasons_as_hints(
                sections, no_goal_or_checks_reason_by_field(self.campaign)
            )
        if self.comparison_unit and not self.launched:
            return sections_with_comparisons_in_place_of_judgments(
                sections, self.comparison_unit, self.values, self.errors
            )
        return sections

    @cached_property
    def sections(self) -> list[form.FormSection]:
        return form.form_sections_of_step(self.all_sections, self.step, self.design_name)

    def context(self) -> dict[str, Any]:
        """Return what the template of the page needs."""
        return self.campaign_template_context() | self.form_template_context() | self.need_cards_template_context()

    def campaign_template_context(self) -> dict[str, Any]:
        campaign, unit = self.campaign, self.comparison_unit
        return {
            "campaign": campaign,
            "step": self.step,
            "step_title": STEP_TITLES[self.step],
            "rail": setup_rail.build_setup_rail(campaign),
            "back_step": setup_rail.neighbouring_step_or_none(self.step, -1),
            "next_step": setup_rail.neighbouring_step_or_none(self.step, 1),
            "version": campaign.step_versions.get(self.step, 0) if campaign else 0,
            "few_comparisons": unit.warning(campaign.judgments_per_item) if unit and campaign else "",
            "pay_section": form_sections.PAY_SECTION,
            "hourly_pay": HourlyPay.from_campaign(campaign) if campaign else None,
            "panel_presets": PANEL_PRESETS,
            "open_link_platform": platform_recruiting_beside_open_link_or_none(campaign)
            if campaign and self.step == STEP_BY_SETTING["open_link"]
            else None,
            "hourly_minimums": minimum_hourly_pay_by_platform_and_currency(),
            "ways_paid_per_person": people_from_values_paid_per_person(),
            "task_size": sentence_on_task_size(campaign) if campaign else "",
            "starter_question": load_starter_question_or_refuse(self.template_name) if self.template_name else None,
        }

    def form_template_context(self) -> dict[str, Any]:
        preview_context = {"step": self.step, "template": self.template_name or ""}
        return {
            "sections": self.sections,
            "errors": self.errors,
            "problems": step_report.problems_in_order_of_fields(self.all_sections, self.step, self.errors),
            "differences": self.differences_between_stored_and_entered() if self.refusal else [],
            "designs": DESIGNS,
            "chosen_design": self.design_name,
            "chosen_law": self.settings.update_law,
            "open_after_launch": (*SETTINGS_EDITABLE_AFTER_LAUNCH, *PERSON_FIELDS),
            "secret_settings": SECRET_SETTING_NAMES,
            "max_preview_length": form.MAX_PREVIEW_VALUE_CHARACTERS,
            "expected_answer_inputs": expected_answer_inputs_of_criteria(self.settings)
            if self.step == STEP_BY_SETTING["training"]
            else [],
            "items_are_files": CONTENT_KINDS[self.settings.content].is_file,
            "readable_tables": readable_visit_table_by_setting(self.settings)
            if self.step == STEP_BY_SETTING["questions"]
            else {},
            "preview_query": form.query_string_of_annotator_preview(self.sections, self.design_name, preview_context),
        }

    def need_cards_template_context(self) -> dict[str, Any]:
        campaign, need = self.campaign, NEED_BY_NAME.get(name_of_need_of_settings(self.settings))
        context: dict[str, Any] = {"chosen_need": need.title if need else None}
        if self.step == STEP_BY_SETTING["goal"] and not self.launched:
            has_plain_items = bool(campaign and campaign.item_count and not campaign.segment_count)
            context["need_cards"] = NeedForm(self.settings, self.values, self.errors, has_plain_items).build_cards()
            context["no_goal_hint"] = hint_that_design_has_no_goal_or_empty(
                self.settings.design_with_settings, lacks_deciding_criterion=False
            )
        elif self.step == STEP_BY_SETTING["goal"]:
            context |= {"fixed_need": need or CUSTOM_NEED_TEXT, "rule": self.settings.rule}
        return context

    def differences_between_stored_and_entered(self) -> list[step_report.Difference]:
        """Return how what was entered differs from what is stored now."""
        entered = dict(self.entered.values) if self.entered else {}
        final_values = self.values | entered | form_values_of_chosen_need_or_refuse(self.settings, entered)
        return step_report.differences_between_stored_and_entered(
            self.all_sections, self.step, self.stored_values, final_values
        )


def no_goal_or_checks_reason_by_field(campaign: Campaign) -> dict[str, str]:
    """Return the reasons why goal or checks are unavailable, by form field."""
    return {
        "goal": hint_that_design_has_no_goal_or_empty(
            campaign.design, lacks_deciding_criterion=campaign.lacks_deciding_criterion
        ),
        "checks_percent": hint_that_hits_cannot_show_checks_or_empty(campaign),
    }


def expected_answer_inputs_of_criteria(settings: CampaignSettings) -> list[dict[str, Any]]:
    """Return, for each criterion, the labels or the value range of its expected-answer input."""
    criteria = {one["name"]: dict(one) for one in settings.criteria}
    return [
        {
            "criterion": name,
            "labels": [*design.classes],
            "range": design.value_range if design.value_kind == "points" else None,
            "ends": [criteria.get(name, {}).get(end) or getattr(settings, end) for end in ("low_label", "high_label")],
            "hint": "1 for the best" if design.value_kind == "order" else "",
            "default_tolerance": default_tolerance_cell_or_empty(design),
            "proposed_tolerance": proposed_tolerance_cell_or_empty(design),
            "tolerance_reason": reason_for_proposed_tolerance_or_empty(design),
        }
        for name, design in settings.practice_format_of_settings.designs
    ]


async def load_item_notes_context(
    connection: AsyncConnection, campaign: CampaignOnPage, step: StepName
) -> dict[str, Any]:
    """Return the template context with what a step says about items and rules: check counts, or a note on blocks.

    Check counts are for the step with `checks_percent`, if the campaign can have checks, and the note is for a draft.
    Rules that can flag no one are named at both steps, once there are items.
    """
    context: dict[str, Any] = {}
    if step not in (STEP_BY_SETTING["tasks_per_block"], STEP_BY_SETTING["checks_percent"]):
        return context
    check_counts = await count_checks_by_kind(connection, campaign.id)
    if campaign.item_count:
        context["unfit_rules"] = UnfitRules.unfit_rules_or_none(campaign, campaign.item_count, check_counts)
        guess_chances = await load_guess_chance_by_kind(connection, campaign)
        context["unfit_check_rules"] = unfit_check_rules(campaign, campaign.item_count, check_counts, guess_chances)
    if step == STEP_BY_SETTING["tasks_per_block"]:
        if campaign.status == "draft":
            context["block_note"] = await load_short_block_note_or_empty(connection, campaign, with_refusals=True)
    elif not reason_hits_cannot_show_checks_or_empty(campaign):
        context |= {
            "check_summary": sentences_on_check_counts_and_failures_needed(campaign, campaign.item_count, check_counts),
            "known_answers": await load_known_answers_of_usual_columns(connection, campaign),
        }
    return context


async def load_notes_context(
    connection: AsyncConnection, campaign: CampaignOnPage, step: StepName, *, max_days: int | None
) -> dict[str, Any]:
    """Return the template context with what a step says about items, rules and the consent text.

    `max_days` is the server's limit for ids, free text and telemetry.
    """
    notes = await load_item_notes_context(connection, campaign, step)
    if step == STEP_BY_SETTING["consent"]:
        notes |= await load_consent_context(connection, campaign, max_days)
    return notes
