"""Settings as the values of form fields."""

from collections.abc import Mapping

from app.campaigns.form_sections import CRITERIA_SETTING, DESIGN_SETTINGS_SETTING
from app.campaigns.person_pay import person_pay_form_values
from app.campaigns.settings import CampaignSettings


def new_campaign_form_values() -> dict[str, str]:
    fields = CampaignSettings.model_fields.items()
    return {
        name: format_setting_value(name, info.default)
        for name, info in fields
        if not (info.is_required() or name in (DESIGN_SETTINGS_SETTING, CRITERIA_SETTING))
    }


def form_values_of_settings(settings: CampaignSettings) -> dict[str, str]:
    campaign_values = settings.model_dump(exclude={DESIGN_SETTINGS_SETTING, CRITERIA_SETTING})
    prefixed_values = form_texts_with_prefix(settings.design_settings, f"{settings.design}.")
    for number, criterion in enumerate(settings.written_criteria):
        name_prefix = f"{CRITERIA_SETTING}.{number}."
        criterion_values = {name: value for name, value in criterion.items() if name != DESIGN_SETTINGS_SETTING}
        prefixed_values |= form_texts_with_prefix(criterion_values, name_prefix)
        design_values = criterion.get("design_settings", {})
        prefixed_values |= form_texts_with_prefix(
            {name: bool_as_yes_or_no_else_unchanged(value) for name, value in design_values.items()},
            f"{name_prefix}{settings.design}.",
        )
    values = {name: format_setting_value(name, value) for name, value in campaign_values.items()}
    return values | person_pay_form_values(settings) | prefixed_values


def form_texts_with_prefix(values: Mapping[str, object], name_prefix: str) -> dict[str, str]:
    return {name_prefix + name: format_multiline_form_value(value) for name, value in values.items()}


def bool_as_yes_or_no_else_unchanged(value: object) -> object:
    """Return a criterion's switch as yes or no: it may be off where the campaign's is on."""
    return ("no", "yes")[value] if isinstance(value, bool) else value


def format_form_value(value: object) -> str:
    """Return a value as text; a switch that is off is empty, as in a browser's form."""
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def format_setting_value(setting_name: str, value: object) -> str:
    """Return a campaign setting as text; the numbers of its prior are on one line."""
    return (
        format_form_value(value)
        if setting_name == "prior"
        else format_multiline_form_value(
            bool_as_yes_or_no_else_unchanged(value) if setting_name == "open_platforms" else value
        )
    )


def format_multiline_form_value(value: object) -> str:
    """Return a value as text, the elements of a list on a line each."""
    return "\n".join(map(str, value)) if isinstance(value, list) else format_form_value(value)
