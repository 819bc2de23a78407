"""A whole campaign as one YAML file: its settings by their names and, if wanted, its items."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from app.campaigns import yaml_lines
from app.campaigns.form_input import path_of_joint_error_field, setting_error_message
from app.campaigns.form_sections import CRITERIA_SETTING, DESIGN_SETTINGS_SETTING
from app.campaigns.known_answers import KnownAnswersChoice
from app.campaigns.settings import CampaignSettings
from app.campaigns.yaml_lines import Mistake, YamlDocument, YamlPath, format_yaml_path
from app.designs.criteria_settings import CriterionSettings
from app.designs.field_flags import is_omitted_from_campaign_files
from app.designs.registry import DESIGNS
from app.errors import MAX_NAMES_LISTED, Invalid, pluralize, shorten_echo
from app.uploads.rows import ROW_NUMBERS_AS_IDS

MAX_ITEMS_IN_CAMPAIGN_FILE = 10_000
FIRST_SETTINGS_IN_FILE = (
    "name",
    "question",
    "instructions",
    "design",
    "design_settings",
    "criteria",
)  # in a file that is written
EMPTY_YAML_VALUES: tuple[Any, ...] = (None, "", [], {})
CAMPAIGN_FILE_HEADER = (
    "# A campaign of Easel; `easel campaign create FILE` makes a draft of it. See docs/reference/campaign-file.md.\n"
)

RequiredLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class About(BaseModel):
    """Description of a campaign file, for readers; a campaign keeps none of it."""

    model_config = ConfigDict(extra="forbid")

    title: RequiredLine = Field(description="Purpose of the file, in a few words.")
    description: RequiredLine = Field(description="Purpose of the file, in one sentence.")
    source: RequiredLine | None = Field(default=None, description="Source of the question.")


class ItemsOfFile(BaseModel):
    """The items, in the file itself or in a table next to it."""

    model_config = ConfigDict(extra="forbid")

    id: RequiredLine | None = Field(
        default=None,
        description=f"Column of unique ids; `id` if it is left out, `{ROW_NUMBERS_AS_IDS}` to number the rows.",
    )
    shown: RequiredLine | None = Field(
        default=None, description="Column that annotators see; optional if only one column is possible."
    )
    template: RequiredLine | None = Field(
        default=None, description="Instead of `shown`: a text with columns in it, such as `{premise} → {hypothesis}`."
    )
    priors: bool = Field(
        default=False, description="Whether to use the columns `alpha` and `beta` (`mu` and `sigma2`, ...) as priors."
    )
    ignore: list[Literal["check", "system", "source", "reference"]] = Field(
        default=[], description="Columns to keep without their special meaning."
    )
    systems: list[RequiredLine] = Field(
        default=[],
        description="Columns with the outputs of one system each, for a table with a column for each system; `id` then "
        "names the segments.",
    )
    known_answers: KnownAnswersChoice | None = Field(
        default=None, description="Use items as gold items by the known answers in a column of their table."
    )
    file: RequiredLine | None = Field(
        default=None,
        description="Name of a CSV, TSV, TXT, JSON or XLSX file in the folder of this file, or in one below it.",
    )
    encoding: RequiredLine | None = Field(
        default=None, description="Encoding of that file if it is not Unicode, such as `windows-1252`."
    )
    quotes: Literal["cells", "text"] | None = Field(
        default=None, description="Whether its quotation marks enclose cells or are part of the text."
    )
    sheet: RequiredLine | None = Field(
        default=None,
        description="Sheet to read if it is an Excel workbook. Default: the first visible one with content.",
    )
    read_as: Literal["auto", "table", "lines"] | None = Field(
        default=None,
        description=(
            "`table` if its first row names the columns, `lines` if every line is a text. Default: `lines` for a file "
            "named .txt without columns. In another table with a single column, the first line is an item unless "
            "it is one word such as `text`."
        ),
    )
    rows: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_ITEMS_IN_CAMPAIGN_FILE)] | None = Field(
        default=None,
        description=(
            f"Or the items themselves, {MAX_ITEMS_IN_CAMPAIGN_FILE:,} at most: rows with columns by name, including "
            "`id`."
        ),
    )

    @model_validator(mode="after")
    def require_file_or_rows(self) -> Self:
        """Raise ValueError unless there is either a file or rows."""
        if (self.file is None) == (self.rows is None):
            raise ValueError("name either a file or rows")
        return self


class CampaignFile(CampaignSettings):
    """Everything that a campaign file may hold: the settings of a campaign, its items, and a description."""

    about: About | None = Field(
        default=None, description="Description of the file; it is not stored with the campaign."
    )
    items: ItemsOfFile | None = Field(
        default=None, description="The items of the campaign; without this part, it has none."
    )

    @property
    def settings(self) -> CampaignSettings:
        """Return the settings of the campaign, without items and description."""
        return CampaignSettings.model_validate(self.model_dump(include=set(CampaignSettings.model_fields)))


@dataclass(frozen=True)
class ParsedCampaignFile:
    """A campaign file that was read: its content, and the line of each setting."""

    name: str
    content: CampaignFile
    document: YamlDocument

    def with_columns_of_items(self, columns: Mapping[str, str]) -> Self:
        """Return the file with other columns in `items`: `id`, `shown`, which replaces a template, or both."""
        changes: dict[str, str | None] = dict(columns)
        if "shown" in columns:
            changes["template"] = None
        items = (self.content.items or ItemsOfFile.model_construct()).model_copy(update=changes)
        return replace(self, content=self.content.model_copy(update={"items": items}))


def parse_campaign_file(content: bytes, name: str, overrides: Mapping[str, Any] | None = None) -> ParsedCampaignFile:
    """Return the campaign in a file called `name`; settings in `overrides` replace those of the file.

    Raises what `yaml_lines.read` raises, and `Invalid` (`campaign_file_invalid`; details: `mistakes`, all of them).
    """
    overrides = overrides or {}
    document = yaml_lines.parse_yaml(content, data_names=["items"])
    try:
        campaign_file = CampaignFile.model_validate({**document.values, **overrides})
    except ValidationError as error:
        raise campaign_file_invalid_error(
            name, [*document.mistakes, *iterate_mistakes_of_refused_settings(error, document, overrides)], overrides
        ) from None
    if document.mistakes:
        raise campaign_file_invalid_error(name, document.mistakes, overrides)
    return ParsedCampaignFile(name, campaign_file, document)


def campaign_file_invalid_error(name: str, mistakes_found: Sequence[Mistake], overrides: Collection[str]) -> Invalid:
    """Return one refusal with all mistakes in the order of their lines; its message has only the first ones."""
    first_mistakes = sorted(mistakes_found, key=lambda mistake: mistake.line)[:MAX_NAMES_LISTED]
    head = f"{shorten_echo(name)} has {pluralize(len(mistakes_found), 'mistake')}; nothing was created."
    more_sentence = (
        [f"And {len(mistakes_found) - MAX_NAMES_LISTED:,} more."] if len(mistakes_found) > MAX_NAMES_LISTED else []
    )
    return Invalid(
        " ".join(
            [
                head,
                *(f"{mistake_location_text(mistake, overrides)}: {mistake.message}" for mistake in first_mistakes),
                *more_sentence,
            ]
        ),
        code="campaign_file_invalid",
        mistakes=[mistake._asdict() for mistake in first_mistakes],
    )


def mistake_location_text(mistake: Mistake, overrides: Collection[str]) -> str:
    """Return the line and the setting of a mistake, or the command option that gave the setting."""
    option = "--" + mistake.field.replace("_", "-")
    return option if mistake.field in overrides else f"Line {mistake.line}, {mistake.field}"


def iterate_mistakes_of_refused_settings(
    error: ValidationError, document: YamlDocument, overrides: Mapping[str, Any]
) -> Iterator[Mistake]:
    """Yield what the settings refuse, each at its line.

    The caller formats only the mistakes it shows: there may be many.
    """
    design = str({**document.values, **overrides}.get("design", CampaignSettings.model_fields["design"].default))
    setting_names = possible_setting_names_in_file(design)
    flat_problems = [*iterate_path_kind_and_message_of_errors(error)]
    containing_paths = {path[:depth] for path, _, _ in flat_problems for depth in range(len(path))}
    # A list is short because one of its elements is wrong.
    innermost_problems = sorted(
        (problem for problem in flat_problems if problem[0] not in containing_paths),
        key=lambda problem: document.line_number_of_value_at(problem[0]),
    )
    for number, (path, kind, message) in enumerate(innermost_problems):
        is_design_setting = path[:1] == (DESIGN_SETTINGS_SETTING,) and len(path) == 2 and design in DESIGNS
        is_unknown_name = kind == "extra_forbidden" or (
            is_design_setting and format_yaml_path(path) not in setting_names
        )
        message_text = (
            unknown_setting_message(path, setting_names)
            if is_unknown_name and number < MAX_NAMES_LISTED
            else setting_error_message(kind, message)
        )
        yield Mistake(document.line_number_of_value_at(path), format_yaml_path(path), message_text)


def iterate_path_kind_and_message_of_errors(error: ValidationError) -> Iterator[tuple[YamlPath, str, str]]:
    """Yield path, kind and message of each error; errors of a design's own settings one by one."""
    for problem in error.errors(include_url=False, include_input=False):
        yaml_path: YamlPath = problem["loc"] or path_of_joint_error_field(problem)
        design_problems: Mapping[str, str] = problem.get("ctx", {}).get("problems", {})
        for name, message in design_problems.items():
            yield (
                (*yaml_path, *(int(part) if part.isdecimal() else part for part in name.split(".") if part)),
                "",
                message,
            )
        if not design_problems:
            yield yaml_path, problem["type"], problem["msg"]


def possible_setting_names_in_file(design_name: str) -> list[str]:
    """Return every name that a file of this design can have, with dots."""
    parts: dict[str, Iterable[str]] = {"about": About.model_fields, "items": ItemsOfFile.model_fields}
    parts |= {DESIGN_SETTINGS_SETTING: DESIGNS[design_name].model_fields} if design_name in DESIGNS else {}
    parts[CRITERIA_SETTING] = CriterionSettings.__annotations__
    return [*CampaignFile.model_fields, *(f"{name}.{own}" for name, part in parts.items() for own in part)]


def unknown_setting_message(yaml_path: YamlPath, setting_names: Sequence[str]) -> str:
    """Return a message with the nearest known name; names at the same level come first."""
    word, parent_name = (
        str(yaml_path[-1]),
        format_yaml_path(tuple(part for part in yaml_path[:-1] if isinstance(part, str))),
    )
    same_word = [name for name in setting_names if name.rpartition(".")[2] == word]
    siblings = [name for name in setting_names if name.rpartition(".")[0] == parent_name]
    for names in (same_word, siblings, setting_names):
        last = {name.rpartition(".")[2]: name for name in reversed(names)}
        if near := difflib.get_close_matches(word, last, n=1):
            return f"There is no setting with this name. Did you mean “{last[near[0]]}”?"
    return "There is no setting with this name."


def format_campaign_file(settings: CampaignSettings, items: Mapping[str, Any] | None = None) -> str:
    """Return a campaign as a file: first the question, then all settings except those that are empty by default."""
    fields = CampaignSettings.model_fields.items()
    values = settings.model_dump(
        mode="json", exclude={name for name, field in fields if is_omitted_from_campaign_files(field)}
    )
    if not settings.written_criteria:
        values["criteria"] = []
    defaults = {
        name: None if info.is_required() else info.get_default(call_default_factory=True) for name, info in fields
    }
    in_order = dict.fromkeys((*FIRST_SETTINGS_IN_FILE, *values))
    written_values = {
        name: values[name]
        for name in in_order
        if values[name] not in EMPTY_YAML_VALUES or values[name] != defaults[name]
    }
    return CAMPAIGN_FILE_HEADER + yaml_lines.format_yaml(written_values | ({"items": items} if items else {}))
