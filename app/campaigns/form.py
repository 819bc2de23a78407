"""The settings as a form: groups of fields, how each is entered, and messages about wrong input."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel

from app.annotation.onboarding.entry_questions import error_by_wrong_question_line
from app.annotation.platforms.registry import people_from_paid_per_task, people_from_values_paid_per_person
from app.campaigns.choice_titles import choice_title_by_value, has_setting_more_than_one_choice
from app.campaigns.form_sections import (
    ASKED_BY_SETTING,
    CRITERIA_SETTING,
    CRITERIA_SHOWN_SETTING,
    DESIGN_SETTINGS_SETTING,
    FORM_FIELD_GROUPS,
    STEP_BY_SETTING,
    StepName,
)
from app.campaigns.form_values import format_multiline_form_value, new_campaign_form_values
from app.campaigns.hints import Hint, hints_for_setting
from app.campaigns.label_fields import criterion_names_in_form
from app.campaigns.person_pay import (
    PERSON_MINUTES_SETTING,
    PERSON_REWARD_FIELD,
    PERSON_TASKS_FIELD,
    TASKS_SETTING,
)
from app.campaigns.setting_types import can_law_read_design, can_law_serve_rule
from app.campaigns.settings import CampaignSettings
from app.designs.campaign import Campaign
from app.designs.content import CONTENT_KINDS
from app.designs.criteria_settings import MAX_WRITTEN_CRITERIA
from app.designs.field_flags import editability_code_after_launch_or_none
from app.designs.registry import DESIGNS
from app.goals.settings import GOALS_BY_SETTING
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES

MULTILINE_SETTINGS = ("question",)
MAX_SINGLE_LINE_CHARACTERS = 500  # texts that may be longer get a field of several lines
ALL_CRITERIA_TITLE = "All criteria together"
CRITERION_SWITCH_TITLES = {"": "Same as the campaign", "yes": "Yes", "no": "No"}
POINT_SCALE_SETTINGS = (
    "low_label",
    "middle_label",
    "high_label",
    "show_numbers",
    "tie_margin_points",
)  # of designs that ask for points
ORDER_LAW_SETTINGS = ("epsilon", "tie_margin_points")  # of laws that read orders
IMPLIED_PAIRS_SETTING = "implied_asked_percent"  # of rules that may compare any two items
CRITERION_SETTINGS = ("name", "question", "low_label", "middle_label", "high_label")
OPTIONAL_DEFAULTS: tuple[Any, ...] = (None, "", [])
MAX_PREVIEW_VALUE_CHARACTERS = 2_000  # of a field in the preview's address


@dataclass(frozen=True)
class FormField:
    """One field of the form with its `value`.

    Attributes:
        kind: `line`, `area`, `lines`, `whole`, `number`, `choice` or `switch`.
        designs: Names of the designs that have this setting, separated by spaces; empty for all.
        laws: The same for update laws.
        goals: The same for goals.
        designs_by_choice: Choice to the designs that it is limited to.
        hints: Hints, each for some designs or laws.
        criterion_title: The criterion that the field is about; empty for the campaign.
        line_errors: The errors of single lines of a text, by the line, which its editor shows where they are.
        people_from: Answers to “Where do people come from?” that need this field, separated by spaces; empty for all.

    """

    name: str
    title: str
    description: str
    kind: str
    value: str
    required: bool
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    designs: str = ""
    laws: str = ""
    goals: str = ""
    designs_by_choice: Mapping[str, str] = field(default_factory=dict)
    hints: Sequence[Hint] = ()
    criterion_title: str = ""
    line_errors: Mapping[str, str] = field(default_factory=dict)
    people_from: str = ""

    @property
    def full_title(self) -> str:
        """Return the title to use for the field alone."""
        return f"{self.criterion_title}: {self.title}" if self.criterion_title else self.title


@dataclass(frozen=True)
class FormSection:
    """A group of fields under one heading; `people_from` is as in `SettingGroup`."""

    step: StepName
    title: str
    basic_fields: Sequence[FormField]
    advanced_fields: Sequence[FormField]
    is_visible_to_annotators: bool
    help_url: str
    people_from: str = ""

    @property
    def has_error_in_advanced(self) -> bool:
        """Return whether the folded fields must be open because one of them has an error."""
        return any(question.error for question in self.advanced_campaign_fields)

    @property
    def people_from_or_empty_if_filled_in(self) -> str:
        """Return who needs the section; empty, for all, if one of its settings differs from the default."""
        defaults = new_campaign_form_values()
        is_filled_in = any(question.value != defaults.get(question.name, "") for question in self.all_fields)
        return "" if is_filled_in else self.people_from

    @property
    def all_fields(self) -> Sequence[FormField]:
        return [*self.basic_fields, *self.advanced_fields]

    @property
    def advanced_campaign_fields(self) -> Sequence[FormField]:
        return [
            question
            for question in self.advanced_fields
            if not question.criterion_title and question.name != CRITERIA_SHOWN_SETTING
        ]

    @property
    def fields_by_criterion(self) -> Mapping[str, Sequence[FormField]]:
        """Return the fields about each criterion, by its title."""
        by_criterion: dict[str, list[FormField]] = {}
        for question in self.advanced_fields:
            if question.criterion_title:
                by_criterion.setdefault(question.criterion_title, []).append(question)
        return by_criterion

    @property
    def designs_with_written_criteria(self) -> str:
        """Return the designs whose criteria a researcher writes, separated by spaces."""
        return " ".join(design.name for design in DESIGNS.values() if not design.ticks_criteria)

    @property
    def shared_criteria_fields(self) -> Sequence[FormField]:
        """Return the fields about all criteria together."""
        return [question for question in self.advanced_fields if question.name == CRITERIA_SHOWN_SETTING]


def build_form_sections(
    values: Mapping[str, str], errors: Mapping[str, str] | None = None, minimums: Mapping[str, float] | None = None
) -> list[FormSection]:
    """Return the whole form with `values` in its fields and `errors` at them.

    `minimums` has the lowest value of numbers that can only grow after a launch.
    """
    schema = json_schema_of_settings(CampaignSettings)
    properties = schema["properties"]
    fields_by_setting = {name: [build_form_field(name, properties[name], values, errors or {})] for name in properties}
    fields_by_setting |= {
        name: [replace(fields_by_setting[name][0], minimum=value)] for name, value in (minimums or {}).items()
    }
    fields_by_setting[DESIGN_SETTINGS_SETTING] = build_design_fields(values, errors or {})
    fields_by_setting[CRITERIA_SETTING] = build_criteria_fields(
        schema["$defs"]["CriterionSettings"]["properties"], values, errors or {}
    )
    fields_by_setting |= add_fields_of_person_pay(fields_by_setting, values, errors or {})
    fields_by_setting[ASKED_BY_SETTING] = build_deciding_criterion_fields(fields_by_setting[ASKED_BY_SETTING], values)
    return [
        FormSection(
            group.step,
            group.title,
            [
                field
                for name in group.basic_settings
                if has_setting_more_than_one_choice(name)
                for field in fields_by_setting[name]
            ],
            [
                field
                for name in group.advanced_settings
                if has_setting_more_than_one_choice(name)
                for field in fields_by_setting[name]
            ],
            group.is_visible_to_annotators,
            group.help_url,
            group.people_from,
        )
        for group in FORM_FIELD_GROUPS
    ]


def add_fields_of_person_pay(
    fields_by_setting: Mapping[str, Sequence[FormField]], values: Mapping[str, str], errors: Mapping[str, str]
) -> dict[str, list[FormField]]:
    """Return the fields of pay and time, by setting: those of a task, and before them those of a person.

    Platforms that pay each person one reward show only the fields of a person, all others those of a task.
    """
    per_person, per_task = (
        " ".join(ways()) for ways in (people_from_values_paid_per_person, people_from_paid_per_task)
    )
    (pay,), (task_minutes,), (minutes,), (tasks,) = (
        fields_by_setting[name] for name in ("pay_per_hit", "minutes_per_hit", PERSON_MINUTES_SETTING, TASKS_SETTING)
    )
    reward = replace(
        pay,
        name=PERSON_REWARD_FIELD,
        title="Reward of one person",
        description="What the platform pays each person who finishes. The pay of a task follows from it.",
    )
    limit = replace(
        tasks, name=PERSON_TASKS_FIELD, description="How many tasks one person does for the reward.", hints=()
    )
    fields = [replace(one, value=values.get(one.name, ""), error=errors.get(one.name)) for one in (reward, limit)]
    reward, limit = (replace(one, people_from=per_person) for one in fields)
    return {
        "pay_per_hit": [reward, replace(pay, people_from=per_task)],
        # Shown also elsewhere if it is filled in: totals use it.
        PERSON_MINUTES_SETTING: [limit, replace(minutes, people_from="" if minutes.value else per_person)],
        "minutes_per_hit": [replace(task_minutes, people_from=per_task)],
    }


def sections_with_no_effect_reasons_as_hints(
    sections: Sequence[FormSection], no_effect_reason_by_field: Mapping[str, str]
) -> list[FormSection]:
    """Return the sections with the reasons why settings have no effect in place of the hints at their fields."""

    def with_reason(one_field: FormField) -> FormField:
        reason = no_effect_reason_by_field.get(one_field.name)
        return replace(one_field, hints=[Hint(reason)]) if reason else one_field

    return [replace(section, basic_fields=[*map(with_reason, section.basic_fields)]) for section in sections]


def form_sections_of_step(sections: Sequence[FormSection], step: StepName, design_name: str) -> list[FormSection]:
    """Return the sections of a step, without the fields and choices that this design does not have.

    The step that chooses the design keeps all of them: its page follows the choice.
    """
    own = [section for section in sections if section.step == step]
    if step == STEP_BY_SETTING["design"]:
        return own
    limited = [
        replace(
            section,
            basic_fields=fields_of_design_with_its_choices(section.basic_fields, design_name),
            advanced_fields=fields_of_design_with_its_choices(section.advanced_fields, design_name),
        )
        for section in own
    ]
    return [section for section in limited if section.all_fields]


def fields_of_design_with_its_choices(fields: Sequence[FormField], design_name: str) -> list[FormField]:
    return [
        replace(
            field,
            choices={
                choice: title
                for choice, title in field.choices.items()
                if choice == field.value or design_name in field.designs_by_choice.get(choice, design_name).split()
            },
        )
        for field in fields
        if not field.designs or design_name in field.designs.split()
    ]


def setting_minimums_by_name_after_launch(campaign: Campaign) -> dict[str, float]:
    """Return, by name, the present values of settings that can only grow after a launch."""
    columns, fields = campaign.column_values_of_campaign(), CampaignSettings.model_fields.items()
    return {
        name: columns[name] for name, field in fields if editability_code_after_launch_or_none(field) == "only more"
    }


def query_string_of_annotator_preview(
    sections: Sequence[FormSection], design_name: str, context: Mapping[str, str]
) -> str:
    """Return the query of the preview address: the fields of a form that annotators see, and what it is a form of."""
    fields = [field for section in sections if section.is_visible_to_annotators for field in section.all_fields]
    design_fields = [field for field in fields if not field.designs or design_name in field.designs.split()]
    shown = {field.name: field.value[:MAX_PREVIEW_VALUE_CHARACTERS] for field in design_fields if field.value}
    return urlencode({name: value for name, value in context.items() if value} | shown)


def build_design_fields(values: Mapping[str, str], errors: Mapping[str, str]) -> list[FormField]:
    """Return the fields of each design's own settings, called `DESIGN.SETTING`."""
    fields = []
    for design in DESIGNS.values():
        for name, schema in json_schema_of_settings(design).get("properties", {}).items():
            field_name = f"{design.name}.{name}"
            values_with_default = {field_name: format_multiline_form_value(schema.get("default")), **values}
            fields.append(
                replace(
                    build_form_field(field_name, schema, values_with_default, errors),
                    designs=design.name,
                    required=False,
                )
            )
    return fields


def build_criteria_fields(
    properties: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]
) -> list[FormField]:
    """Return the fields of each criterion, called `criteria.NUMBER.NAME`, or `criteria.NUMBER.DESIGN.SETTING` for the
    settings of its design. A criterion whose fields are all empty does not exist.
    """
    return [
        replace(field, criterion_title=f"Criterion {number + 1}", required=False)
        for number in range(MAX_WRITTEN_CRITERIA)
        for field in iterate_criterion_fields(f"{CRITERIA_SETTING}.{number}.", properties, values, errors)
    ]


def build_deciding_criterion_fields(text_fields: Sequence[FormField], values: Mapping[str, str]) -> list[FormField]:
    """Return the field of the deciding criterion with the names of the criteria as choices; none without criteria."""
    choices = {"": ALL_CRITERIA_TITLE} | {name: name for name in criterion_names_in_form(values) if name}
    return [replace(field, kind="choice", choices=choices) for field in text_fields] if len(choices) > 1 else []


def iterate_criterion_fields(
    name_prefix: str, properties: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]
) -> Iterator[FormField]:
    for name in CRITERION_SETTINGS:
        field = build_form_field(name_prefix + name, properties[name], values, errors)
        kind = form_field_kind(name, schema_of_setting_value(properties[name]))  # by its name without the prefix
        yield replace(field, kind=kind, designs=space_separated_designs_reading_setting(name))
    for design_field in build_design_fields({}, {}):
        if DESIGNS[design_field.designs].ticks_criteria:
            continue  # its labels are the criteria
        name = name_prefix + design_field.name
        criterion_field = replace(design_field, name=name, value=values.get(name, ""), error=errors.get(name))
        # A switch that is off looks the same as one that is not set.
        yield (
            replace(criterion_field, kind="choice", choices=CRITERION_SWITCH_TITLES)
            if design_field.kind == "switch"
            else criterion_field
        )


def build_form_field(
    name: str, setting_schema: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]
) -> FormField:
    """Return the field of one setting, as its JSON schema describes it."""
    value_limits = schema_of_setting_value(setting_schema)
    return FormField(
        name=name,
        title=setting_schema["title"],
        description=setting_schema["description"],
        kind=form_field_kind(name, value_limits),
        value=values.get(name, ""),
        required=value_limits is setting_schema and setting_schema.get("default", ...) not in OPTIONAL_DEFAULTS,
        minimum=value_limits.get("minimum"),
        maximum=value_limits.get("maximum"),
        max_length=value_limits.get("maxLength"),
        choices=choice_title_by_value(name),
        error=errors.get(name),
        designs=space_separated_designs_reading_setting(name),
        laws=space_separated_laws_reading_setting(name),
        goals=" ".join(GOALS_BY_SETTING.get(name, ())),
        designs_by_choice=space_separated_designs_by_choice_of_setting(name),
        hints=hints_for_setting(name, values),
        line_errors=error_by_wrong_question_line(values.get(name, ""))
        if name == "questions" and name in errors
        else {},
    )


def space_separated_designs_by_choice_of_setting(setting_name: str) -> dict[str, str]:
    """Return the designs for each choice of a setting that are limited to some designs."""
    if setting_name == "update_law":
        return space_separated_designs_by_law()
    return space_separated_designs_by_rule() if setting_name == "rule" else {}


def space_separated_designs_by_law() -> dict[str, str]:
    designs = [design() for design in DESIGNS.values()]
    return {
        name: " ".join(design.name for design in designs if can_law_read_design(design, law))
        for name, law in ONLINE_LAWS.items()
    }


def space_separated_designs_by_rule() -> dict[str, str]:
    """Return the designs that each selection rule can ask by, with a law that can read them."""
    designs_by_law = space_separated_designs_by_law()
    designs = {
        name: {
            design
            for law, able in designs_by_law.items()
            if can_law_serve_rule(rule, ONLINE_LAWS[law])
            for design in able.split()
        }
        for name, rule in SELECTION_RULES.items()
    }
    return {name: " ".join(design for design in DESIGNS if design in able) for name, able in designs.items()}


def space_separated_designs_reading_setting(setting_name: str) -> str:
    """Return the designs that read a setting; empty if all do."""
    if setting_name == IMPLIED_PAIRS_SETTING:
        return " ".join(design.name for design in DESIGNS.values() if design().compares_pairs)
    if setting_name == CRITERIA_SHOWN_SETTING:
        return " ".join(design.name for design in DESIGNS.values() if design.fits_in_grid)
    if setting_name in POINT_SCALE_SETTINGS:
        return " ".join(design.name for design in DESIGNS.values() if design.value_kind == "points")
    if setting_name == "items_per_hit":
        return " ".join(design.name for design in DESIGNS.values() if len(design.items_per_hit) > 1)
    return ""


def space_separated_laws_reading_setting(setting_name: str) -> str:
    """Return the update laws that read a setting; empty if all do."""
    return (
        " ".join(law.name for law in ONLINE_LAWS.values() if law.reads == "order")
        if setting_name in ORDER_LAW_SETTINGS
        else ""
    )


def json_schema_of_settings(settings: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON schema of a class of settings, which names what is registered."""
    return cached_json_schema_of_settings(settings, (*DESIGNS, *ONLINE_LAWS, *SELECTION_RULES, *CONTENT_KINDS))


@cache
def cached_json_schema_of_settings(settings: type[BaseModel], names: tuple[str, ...]) -> Mapping[str, Any]:  # noqa: ARG001  (they are in it)
    """Return the JSON schema, made once: that takes longer than all else of a page with these settings."""
    return settings.model_json_schema()


def schema_of_setting_value(setting_schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the type and limits of a setting's value, which the schema of an optional setting has one level down."""
    value_limits: Mapping[str, Any] = setting_schema["anyOf"][0] if "anyOf" in setting_schema else setting_schema
    return value_limits


def form_field_kind(setting_name: str, value_limits: Mapping[str, Any]) -> str:
    if "enum" in value_limits or setting_name == "open_platforms":
        return "cards" if setting_name == "design" else "choice"
    if setting_name in MULTILINE_SETTINGS or value_limits.get("maxLength", 0) > MAX_SINGLE_LINE_CHARACTERS:
        return "area"
    if setting_name == "prior":
        return "line"
    return {"boolean": "switch", "integer": "whole", "number": "number", "array": "lines"}.get(
        value_limits["type"], "line"
    )
