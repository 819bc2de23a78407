"""Input of the settings form: settings from its fields, and a message at each wrong field."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from app.campaigns.form import (
    CRITERION_SETTINGS,
    IMPLIED_PAIRS_SETTING,
    form_field_kind,
    json_schema_of_settings,
    schema_of_setting_value,
    space_separated_designs_reading_setting,
)
from app.campaigns.form_sections import ASKED_BY_SETTING, CRITERIA_SETTING, DESIGN_SETTINGS_SETTING
from app.campaigns.label_fields import (
    LABELS_SETTING,
    label_lines_with_criteria,
    needs_labels,
    values_with_placeholder_labels,
)
from app.campaigns.settings import JOINT_ERROR_TYPE, CampaignSettings
from app.designs.criteria_settings import MAX_WRITTEN_CRITERIA
from app.designs.registry import DEFAULT_DESIGN as USUAL_DESIGN
from app.designs.registry import DESIGNS
from app.errors import Refusal, strip_validator_prefix

TYPE_ERROR_PREFIX = re.compile("^(Input|String|List|Tuple|Dictionary) should")  # first words of Pydantic's messages


PLACEHOLDER_VALUES = {"name": "", "question": "Your question"}


MESSAGE_BY_ERROR_TYPE = {
    "string_too_short": "Please fill this in.",
    "missing": "Please fill this in.",
    "bool_parsing": "Enter yes or no.",
    "int_parsing": "Enter a whole number.",
    "int_parsing_size": "This number is too large.",
    "int_from_float": "Enter a whole number.",
    "float_parsing": "Enter a number.",
    "finite_number": "Enter a number.",
}


def refusal_message_by_field(refusal: Refusal) -> dict[str, str]:
    """Return the message at the field that a refusal is about; empty if it is about no field."""
    setting, minimum = refusal.details.get("setting"), refusal.details.get("least")
    if setting is None:
        return {}
    growth_message = f"It is {minimum} and can only be raised: enter {minimum} or more."
    return {setting: refusal.message if minimum is None else growth_message}


def parse_settings_form(values: Mapping[str, str]) -> CampaignSettings:
    """Return the settings in a form. Raises Pydantic's ValidationError; `error_message_by_form_field` turns it into
    messages.
    """
    entered = {
        name: entered_setting_value(name, values)
        for name in CampaignSettings.model_fields
        if is_switch_setting(name) or name in values
    }
    entered[DESIGN_SETTINGS_SETTING] = parse_design_fields(values)
    if lacks_labels_and_criteria(values):
        entered[DESIGN_SETTINGS_SETTING] = {LABELS_SETTING: [""]}  # which the design refuses
    has_labels = bool(label_lines_with_criteria(values))
    entered[CRITERIA_SETTING] = (
        [] if has_labels else [criterion for criterion in values_of_each_criterion_in_form(values) if criterion]
    )
    if not (has_labels or entered[CRITERIA_SETTING]):
        entered.pop(ASKED_BY_SETTING, None)
    if values.get("design", USUAL_DESIGN) not in space_separated_designs_reading_setting(IMPLIED_PAIRS_SETTING).split():
        entered.pop(IMPLIED_PAIRS_SETTING, None)  # entered for another selection rule
    return CampaignSettings.model_validate(entered)


def lacks_labels_and_criteria(values: Mapping[str, str]) -> bool:
    """Return whether a form has a design that makes criteria of labels, but neither labels nor criteria."""
    return (
        needs_labels(values)
        and not label_lines_with_criteria(values)
        and not any(values_of_each_criterion_in_form(values))
    )


def values_of_each_criterion_in_form(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the values of each criterion's fields; criteria without any are left out."""
    criteria_values = []
    for start in (f"{CRITERIA_SETTING}.{number}." for number in range(MAX_WRITTEN_CRITERIA)):
        criterion_values: dict[str, object] = {
            name: text for name in CRITERION_SETTINGS if (text := values.get(start + name, "").strip())
        }
        design_values = parse_design_fields(values, start)
        criteria_values.append(criterion_values | ({DESIGN_SETTINGS_SETTING: design_values} if design_values else {}))
    return criteria_values


def parse_design_fields(values: Mapping[str, str], name_prefix: str = "") -> dict[str, object]:
    """Return the settings of the chosen design; empty fields are left to the design's defaults.

    `name_prefix` begins the names of the fields of one criterion, whose switches may be left to the campaign.
    """
    design = DESIGNS.get(values.get("design", USUAL_DESIGN))
    properties = json_schema_of_settings(design).get("properties", {}) if design else {}
    design_values: dict[str, object] = {}
    for name, schema in properties.items():
        field_name, kind = (
            f"{name_prefix}{values.get('design', USUAL_DESIGN)}.{name}",
            form_field_kind(name, schema_of_setting_value(schema)),
        )
        entered_text = values.get(field_name, "").strip()
        if kind == "switch" and not name_prefix:
            design_values[name] = field_name in values
        elif kind == "lines" and entered_text:
            design_values[name] = [line.strip() for line in entered_text.splitlines() if line.strip()]
        elif entered_text:
            design_values[name] = entered_text
    return design_values


def settings_of_form_with_defaults_for_errors(values: Mapping[str, str]) -> CampaignSettings:
    """Return the settings in an unfinished form; wrong or missing values are as in a new campaign."""
    usable_values = PLACEHOLDER_VALUES | {
        name: value for name, value in values.items() if value.strip() or name not in PLACEHOLDER_VALUES
    }
    for _ in range(4):  # joint errors show up only when each field is valid
        try:
            has_labels = not lacks_labels_and_criteria(usable_values)
            return parse_settings_form(usable_values if has_labels else values_with_placeholder_labels(usable_values))
        except ValidationError as error:
            errors = error_message_by_form_field(error, usable_values)
            if any(
                name.startswith(f"{CRITERIA_SETTING}.") for name in errors
            ):  # a criterion with a part missing is wrong, too
                errors |= {name: "" for name in usable_values if name.startswith(f"{CRITERIA_SETTING}.")}
            usable_values = {name: value for name, value in usable_values.items() if name not in errors}
            usable_values = PLACEHOLDER_VALUES | usable_values
    return CampaignSettings.model_validate(PLACEHOLDER_VALUES)


def entered_setting_value(setting_name: str, values: Mapping[str, str]) -> object:
    """Return the entered value of a setting.

    Browsers leave out a switch that is off; an empty field means None if the setting is optional.
    """
    if is_switch_setting(setting_name):
        return setting_name in values
    optional = CampaignSettings.model_fields[setting_name].default is None
    return values[setting_name].strip() or (None if optional else "")


def is_switch_setting(setting_name: str) -> bool:
    return CampaignSettings.model_fields[setting_name].annotation is bool


def path_of_joint_error_field(validation_error: Mapping[str, Any]) -> tuple[str]:
    """Return the field that shows an error of several settings together."""
    return (
        str(validation_error.get("ctx", {}).get("field", "prior"))
        if validation_error["type"] == JOINT_ERROR_TYPE
        else "prior",
    )


def error_message_by_setting(error: ValidationError) -> dict[str, str]:
    """Return a message for each wrong field; an error of several fields is at the first of them."""
    message_by_setting = {}
    for problem in reversed(error.errors(include_url=False, include_input=False)):
        message_by_setting[str((problem["loc"] or path_of_joint_error_field(problem))[0])] = setting_error_message(
            problem["type"], problem["msg"]
        )
    return message_by_setting


def error_message_by_form_field(error: ValidationError, values: Mapping[str, str]) -> dict[str, str]:
    """Return messages as `error_message_by_setting` does, with errors of a design's own settings at their fields."""
    message_by_field, design = error_message_by_setting(error), values.get("design", USUAL_DESIGN)
    for problem in error.errors(include_url=False, include_input=False):
        if problem["loc"] == (DESIGN_SETTINGS_SETTING,):
            del message_by_field[DESIGN_SETTINGS_SETTING]
            design_problems = problem.get("ctx", {}).get("problems", {})
            first_setting = next(iter(DESIGNS[design].model_fields), "")  # shows an error of all of them together
            message_by_field |= {
                f"{design}.{name.partition('.')[0] or first_setting}": setting_error_message("", message)
                for name, message in design_problems.items()
            }
        elif problem["loc"][:1] == (CRITERIA_SETTING,):
            message_by_field.pop(CRITERIA_SETTING, None)
            message_by_field[field_of_criterion_error(problem, values)] = setting_error_message(
                problem["type"], problem["msg"]
            )
    return message_by_field


def field_of_criterion_error(validation_error: Mapping[str, Any], values: Mapping[str, str]) -> str:
    """Return the field of a criterion's error; the first field if all criteria together are wrong."""
    context = validation_error.get("ctx", {})
    default_position = context.get("number", 0), context.get("field", "name")
    number, name, *_ = (*validation_error["loc"][1:], "name") if validation_error["loc"][1:] else default_position
    filled_criteria = [
        position for position, criterion in enumerate(values_of_each_criterion_in_form(values)) if criterion
    ] or [0]
    field_name = str(name).replace(DESIGN_SETTINGS_SETTING, values.get("design", USUAL_DESIGN))
    return f"{CRITERIA_SETTING}.{filled_criteria[number]}.{field_name}"


def setting_error_message(error_type: str, message: str) -> str:
    plain = TYPE_ERROR_PREFIX.sub("This should", strip_validator_prefix(message)).replace(" after validation", "")
    return MESSAGE_BY_ERROR_TYPE.get(error_type, plain[0].upper() + plain[1:] + "." * (not plain.endswith(".")))
