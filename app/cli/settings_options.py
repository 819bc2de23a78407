"""Command-line options for the settings of a campaign, and how they combine with settings files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.run_command import format_value_for_people
from app.errors import Invalid

if TYPE_CHECKING:
    from app.campaigns.settings import CampaignSettings

READABLE_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
OPTION_METAVARS = {"integer": "INTEGER", "number": "NUMBER", "string": "TEXT", "array": "JSON", "object": "JSON"}


class CommandWithSettingsOptions(click.Command):
    """Command with an option for each setting of a campaign, and one for a file of settings.

    The settings are slow to import, so the options are made when the command is called or its help is shown.
    """

    has_settings_options = False

    @property
    def params(self) -> list[click.Parameter]:
        if not self.has_settings_options:
            self.has_settings_options = True
            self.all_params.extend(make_settings_options())
        return self.all_params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:
        self.all_params = params


def make_settings_options() -> list[click.Option]:
    from app.campaigns import form
    from app.campaigns.settings import CampaignSettings

    properties = form.json_schema_of_settings(CampaignSettings)["properties"]
    help_ = "JSON file with settings, as `easel export SLUG settings` writes it. Options override the file."
    file_option = click.Option(["--settings", "settings_file"], type=READABLE_FILE, help=help_)
    return [file_option, *(make_setting_option(name, schema) for name, schema in properties.items())]


def make_setting_option(name: str, schema: Mapping[str, Any]) -> click.Option:
    """Return the option of a setting.

    `CampaignSettings` checks numbers with all other rules, so an empty option can mean none.
    """
    from app.campaigns import form

    option = "--" + name.replace("_", "-")
    rules = form.schema_of_setting_value(schema)
    help_ = schema["description"] + format_default_for_option_help(schema.get("default"))
    if rules.get("type") == "boolean":
        return click.Option([f"{option}/--no-{option[2:]}", name], default=None, help=help_)
    if "enum" in rules:
        return click.Option([option, name], type=click.Choice(rules["enum"]), help=help_)
    metavar = {"string": "LINES", "number": "NUMBERS"}.get(
        rules.get("items", {}).get("type"), OPTION_METAVARS[rules["type"]]
    )
    return click.Option([option, name], metavar=metavar, help=help_)


def format_default_for_option_help(default: Any) -> str:
    if default in (None, ""):
        return ""
    return f"  [default: {format_value_for_people(default)}]"


def validated_settings_after_overrides(
    current_settings: Mapping[str, Any], file: Path | None, options: Mapping[str, Any]
) -> CampaignSettings:
    """Return the current settings, overlaid by the file's and by the options given.

    Raises:
        Invalid: `settings_invalid`, `settings_unreadable`.

    """
    from pydantic import ValidationError

    from app.campaigns import form_input
    from app.campaigns.setting_types import settings_with_changes
    from app.campaigns.settings import CampaignSettings

    changes = (read_json_settings_file_or_refuse(file) if file else {}) | settings_of_given_options(options)
    try:
        return CampaignSettings.model_validate(settings_with_changes(current_settings, changes))
    except ValidationError as error:
        problems = form_input.error_message_by_setting(error)
        message = " ".join(f"--{name.replace('_', '-')}: {problem}" for name, problem in problems.items())
        raise Invalid(message, code="settings_invalid", fields=problems) from None


def settings_of_given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings from the options that were given.

    Raises:
        Invalid: `settings_unreadable`.

    """
    return {name: parse_setting_value(name, value) for name, value in options.items() if value is not None}


def parse_setting_value(name: str, value: Any) -> Any:
    """Return the value of an option; an empty one means none if the setting allows it.

    Raises:
        Invalid: `settings_unreadable`.

    """
    from app.campaigns import form_sections
    from app.campaigns.settings import CampaignSettings

    if name == form_sections.DESIGN_SETTINGS_SETTING:
        return parse_settings_json_object_or_refuse(value, "--design-settings")
    if name == form_sections.CRITERIA_SETTING:
        return parse_settings_json_or_refuse(value, "--criteria") if value else []
    return None if value == "" and CampaignSettings.model_fields[name].default is None else value


def read_json_settings_file_or_refuse(file: Path) -> dict[str, Any]:
    """Return a JSON object of settings, or the one under `settings`.

    Raises:
        Invalid: `settings_unreadable`.

    """
    document = parse_settings_json_object_or_refuse(file.read_bytes(), file)
    settings = document.get("settings", document)
    if not isinstance(settings, dict):
        raise Invalid(f"{file} is not a JSON object of settings.", code="settings_unreadable")
    return settings


def parse_settings_json_or_refuse(document: str | bytes, source_name: object) -> Any:
    """Return parsed JSON.

    Raises:
        Invalid: `settings_unreadable`.

    """
    try:
        return json.loads(document)
    except ValueError as problem:
        raise Invalid(f"{source_name} is not JSON: {problem}.", code="settings_unreadable") from problem


def parse_settings_json_object_or_refuse(document: str | bytes, source_name: object) -> dict[str, Any]:
    """Return a parsed JSON object.

    Raises:
        Invalid: `settings_unreadable`.

    """
    value = parse_settings_json_or_refuse(document, source_name)
    if not isinstance(value, dict):
        raise Invalid(f"{source_name} is not a JSON object of settings.", code="settings_unreadable")
    return value
