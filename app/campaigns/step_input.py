"""Input of one step of the settings form: it changes the settings of this step and leaves all others as stored."""

from collections.abc import Mapping

from pydantic import ValidationError

from app.campaigns.form import form_field_kind, json_schema_of_settings, schema_of_setting_value
from app.campaigns.form_input import error_message_by_form_field, is_switch_setting
from app.campaigns.form_sections import DESIGN_OF_ITEMS_FIELD, STEP_BY_SETTING, StepName, step_of_field_or_none
from app.campaigns.form_values import form_values_of_settings
from app.campaigns.needs import form_field_of_need_error, form_values_of_chosen_need_or_refuse
from app.campaigns.person_pay import field_of_person_or_same, form_values_of_task_pay
from app.campaigns.setting_types import (
    can_law_read_design,
    can_law_serve_rule,
    repeats_items_under_new_design,
)
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SETTINGS_EDITABLE_AFTER_LAUNCH
from app.designs.design import Design
from app.designs.registry import DESIGNS
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES

DEFAULT_RULE = CampaignSettings.model_fields["rule"].default


def form_values_with_entered_step(
    settings: CampaignSettings, step: StepName, entered_values: Mapping[str, str], *, is_launched: bool = False
) -> dict[str, str]:
    """Return values of the whole form: those of the step as entered, all others as stored.

    Raises `Invalid` (`need_unknown`).
    """
    own_values = {name: value for name, value in entered_values.items() if step_of_field_or_none(name) == step}
    own_values |= form_values_of_task_pay(settings, own_values, is_launched=is_launched)
    if step == STEP_BY_SETTING["goal"]:
        own_values |= form_values_of_chosen_need_or_refuse(settings, entered_values)
    return form_values_reset_for_new_design(
        settings, stored_form_values_except_switches_of_step(settings, step, is_launched=is_launched) | own_values
    )


def stored_form_values_except_switches_of_step(
    settings: CampaignSettings, step: StepName, *, is_launched: bool
) -> dict[str, str]:
    """Return the stored values, without the switches of a step: browsers do not send a switch that is off."""
    return {
        name: value
        for name, value in form_values_of_settings(settings).items()
        if value and not (step_of_field_or_none(name) == step and is_switch_of_form(name, is_launched=is_launched))
    }


def is_switch_of_form(field_name: str, *, is_launched: bool) -> bool:
    """Return whether a field is a switch that the form shows; after a launch it shows only what can be changed."""
    design_name, _, setting = field_name.partition(".")
    if design := DESIGNS.get(design_name):
        schema = json_schema_of_settings(design)["properties"].get(setting)
        return (
            not is_launched
            and bool(schema)
            and form_field_kind(field_name, schema_of_setting_value(schema)) == "switch"
        )
    is_shown = not is_launched or field_name in SETTINGS_EDITABLE_AFTER_LAUNCH
    return is_shown and field_name in CampaignSettings.model_fields and is_switch_setting(field_name)


def form_values_reset_for_new_design(settings: CampaignSettings, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values, with those reset that belong to the former way of asking if another one was chosen.

    These are settings that stand in other steps or were not changed: the update law and its prior, the items per HIT,
    whether items are shown again, and the selection rule. Scripts say for which way of asking the items per HIT were
    entered.
    """
    changed = dict(values)
    old_design, new_design = DESIGNS[settings.design], DESIGNS.get(values.get("design", ""))
    if new_design is None or new_design is old_design:
        return changed
    law = kept_law_name_or_empty(settings.update_law, old_design, new_design)
    old_family, new_family = (ONLINE_LAWS[name].family for name in (settings.update_law, law or new_design.default_law))
    if values.get("update_law") == settings.update_law:
        changed["update_law"] = law
        if old_family is not new_family:
            changed.pop("prior", None)
        if not can_law_serve_rule(SELECTION_RULES[settings.rule], ONLINE_LAWS[law or new_design.default_law]):
            changed["rule"] = DEFAULT_RULE
    if settings.repeat_items == ("repeat_items" in values):
        changed.pop("repeat_items", None)
        if repeats_items_under_new_design(old_design, new_design, repeats_items=settings.repeat_items):
            changed["repeat_items"] = "on"
    is_for_new_design = values.get(DESIGN_OF_ITEMS_FIELD) == new_design.name
    if (
        not is_for_new_design
        and values.get("items_per_hit") == str(settings.items_per_hit)
        and (
            settings.items_per_hit not in new_design.items_per_hit or settings.items_per_hit == old_design.default_items
        )
    ):
        changed["items_per_hit"] = ""
    return changed


def kept_law_name_or_empty(law_name: str, old_design: type[Design], new_design: type[Design]) -> str:
    """Return the law if it was chosen on purpose and reads the answers of the new design; else empty, for the usual."""
    is_usual = law_name == old_design.default_law
    return "" if is_usual or not can_law_read_design(new_design(), ONLINE_LAWS[law_name]) else law_name


def error_message_by_field_of_step(
    error: ValidationError, step: StepName, merged_values: Mapping[str, str], chosen_need: str | None
) -> dict[str, str]:
    """Return the message at each wrong field of a step's form, or of the field of another step.

    `chosen_need_name` is the need whose card shows the fields of the goal; None if the form has no cards.
    """
    errors = error_message_by_form_field(error, merged_values)
    if step == STEP_BY_SETTING["people_from"]:
        return {field_of_person_or_same(name, merged_values): message for name, message in errors.items()}
    if step != STEP_BY_SETTING["goal"] or chosen_need is None:
        return errors
    return {form_field_of_need_error(name, chosen_need): message for name, message in errors.items()}
