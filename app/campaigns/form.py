"""The settings as a form: which fields belong together, how each is asked, and what is wrong with what was entered."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from app.campaigns.choice_titles import choice_titles, has_choice
from app.campaigns.compatibility import can_law_read_design, can_law_serve_rule
from app.campaigns.form_sections import (
    ASKED_BY_SETTING,
    CRITERIA_SETTING,
    CRITERIA_SHOWN_SETTING,
    DESIGN_SETTINGS_SETTING,
    FORM_FIELD_GROUPS,
)
from app.campaigns.hints import Hint, RuleOffer, hints_for_setting, rule_offers_for_setting
from app.campaigns.settings import JOINT_ERROR_TYPE, SETTINGS_EDITABLE_AFTER_LAUNCH, CampaignSettings
from app.designs.criteria import MAX_CRITERIA
from app.designs.registry import DEFAULT_DESIGN as USUAL_DESIGN
from app.designs.registry import DESIGNS
from app.errors import Refusal, strip_validator_prefix
from app.field_flags import editability_after_launch
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES

MULTILINE_SETTINGS = ("question",)
TYPE_ERROR_PREFIX = re.compile("^(Input|String|List|Tuple|Dictionary) should")  # as Pydantic begins
MAX_SINGLE_LINE_CHARACTERS = 500  # what may be longer is asked in a field of several lines
CRITERION_SWITCH_TITLES = {"": "As the campaign", "yes": "Yes", "no": "No"}
POINT_SCALE_SETTINGS = (
    "low_label",
    "middle_label",
    "high_label",
    "show_numbers",
    "tie_margin_points",
)  # where points are given
ORDER_LAW_SETTINGS = ("epsilon", "tie_margin_points")  # where laws read orders
IMPLIED_PAIRS_SETTING = "implied_asked_percent"  # asked where any two items may be compared
CRITERION_SETTINGS = ("name", "question", "low_label", "middle_label", "high_label")
OPTIONAL_DEFAULTS: tuple[Any, ...] = (None, "", [])
PLACEHOLDER_VALUES = {"name": "Name", "question": "Your question"}
MAX_PREVIEW_VALUE_CHARACTERS = 2_000  # characters of a field in an address
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


@dataclass(frozen=True)
class FormField:
    """One field as it is shown, with `value` in it.

    kind: line, area, lines, whole, number, choice or switch.
    designs, laws: names of those that ask for it, with spaces between them; empty where all do. only_for: the same of
    the designs for some of the choices. hints: what else is said of it, and for whom. offers: what goes with it in
    other fields. of: which criterion it is about, in words; empty where it is about the campaign.
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
    designs_by_choice: Mapping[str, str] = field(default_factory=dict)
    hints: Sequence[Hint] = ()
    offers: Sequence[RuleOffer] = ()
    criterion_title: str = ""

    @property
    def full_title(self) -> str:
        """As it is called where it stands alone."""
        return f"{self.criterion_title}: {self.title}" if self.criterion_title else self.title


@dataclass(frozen=True)
class FormSection:
    title: str
    basic_fields: Sequence[FormField]
    advanced_fields: Sequence[FormField]
    is_visible_to_annotators: bool

    @property
    def has_error_in_advanced(self) -> bool:
        """Whether the folded fields must be seen at once."""
        return any(question.error for question in self.advanced_campaign_fields)

    @property
    def all_fields(self) -> Sequence[FormField]:
        """All of them."""
        return [*self.basic_fields, *self.advanced_fields]

    @property
    def advanced_campaign_fields(self) -> Sequence[FormField]:
        """The advanced ones about the campaign."""
        return [
            question
            for question in self.advanced_fields
            if not question.criterion_title and question.name != CRITERIA_SHOWN_SETTING
        ]

    @property
    def fields_by_criterion(self) -> Mapping[str, Sequence[FormField]]:
        """Those about each criterion, by what it is called."""
        by_criterion: dict[str, list[FormField]] = {}
        for question in self.advanced_fields:
            if question.criterion_title:
                by_criterion.setdefault(question.criterion_title, []).append(question)
        return by_criterion

    @property
    def shared_criteria_fields(self) -> Sequence[FormField]:
        """Those about all criteria together."""
        return [question for question in self.advanced_fields if question.name == CRITERIA_SHOWN_SETTING]


def build_form_sections(
    values: Mapping[str, str], errors: Mapping[str, str] | None = None, minimums: Mapping[str, float] | None = None
) -> list[FormSection]:
    """The whole form with `values` in it and `errors` beside their fields. least: what numbers cannot be below, for
    fields of a campaign that was launched.
    """
    schema = CampaignSettings.model_json_schema()
    properties = schema["properties"]
    fields_by_setting = {name: [build_form_field(name, properties[name], values, errors or {})] for name in properties}
    fields_by_setting |= {
        name: [replace(fields_by_setting[name][0], minimum=value)] for name, value in (minimums or {}).items()
    }
    fields_by_setting[DESIGN_SETTINGS_SETTING] = build_design_fields(values, errors or {})
    fields_by_setting[CRITERIA_SETTING] = build_criteria_fields(
        schema["$defs"]["Criterion"]["properties"], values, errors or {}
    )
    return [
        FormSection(
            group.title,
            [field for name in group.basic_settings if has_choice(name) for field in fields_by_setting[name]],
            [field for name in group.advanced_settings if has_choice(name) for field in fields_by_setting[name]],
            group.is_visible_to_annotators,
        )
        for group in FORM_FIELD_GROUPS
    ]


def setting_minimums_after_launch(settings: Any) -> dict[str, float]:
    """Return by name what settings of a launched campaign are now that can only grow."""
    fields = CampaignSettings.model_fields.items()
    return {name: getattr(settings, name) for name, field in fields if editability_after_launch(field) == "only more"}


def error_of_refused_setting(refusal: Refusal) -> dict[str, str]:
    """Return what to say at the field of the setting that a refusal is about; nothing where it is about none."""
    setting, minimum = refusal.details.get("setting"), refusal.details.get("least")
    if setting is None:
        return {}
    growth_message = f"It is {minimum} and can only grow: enter {minimum} or more."
    return {setting: refusal.message if minimum is None else growth_message}


def annotator_preview_query(sections: Sequence[FormSection], design_name: str) -> str:
    """What annotators see of a form, as the query of the address that shows it to a researcher."""
    fields = [field for section in sections if section.is_visible_to_annotators for field in section.all_fields]
    design_fields = [field for field in fields if not field.designs or design_name in field.designs.split()]
    return urlencode({field.name: field.value[:MAX_PREVIEW_VALUE_CHARACTERS] for field in design_fields if field.value})


def build_design_fields(values: Mapping[str, str], errors: Mapping[str, str]) -> list[FormField]:
    """What each design asks for itself, in fields that are called `DESIGN.SETTING`."""
    fields = []
    for design in DESIGNS.values():
        for name, schema in design.model_json_schema().get("properties", {}).items():
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
    """What may differ for each criterion, in fields that are called `criteria.NUMBER.NAME`, and for the settings of its
    design `criteria.NUMBER.DESIGN.SETTING`. Whoever leaves all fields of one empty has no such criterion.
    """
    return [
        replace(one, criterion_title=f"Criterion {number + 1}", required=False)
        for number in range(MAX_CRITERIA)
        for one in build_criterion_fields(f"{CRITERIA_SETTING}.{number}.", properties, values, errors)
    ]


def build_criterion_fields(
    name_prefix: str, properties: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]
) -> Iterator[FormField]:
    for name in CRITERION_SETTINGS:
        yield replace(
            build_form_field(name_prefix + name, properties[name], values, errors),
            designs=designs_reading_setting(name),
        )
    for design_field in build_design_fields({}, {}):
        name = name_prefix + design_field.name
        criterion_field = replace(design_field, name=name, value=values.get(name, ""), error=errors.get(name))
        # A switch that is off would look like one that nobody set.
        yield (
            replace(criterion_field, kind="choice", choices=CRITERION_SWITCH_TITLES)
            if design_field.kind == "switch"
            else criterion_field
        )


def build_form_field(
    name: str, setting_schema: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]
) -> FormField:
    """How one setting is asked, as its JSON schema says."""
    value_limits = value_limits_of_schema(setting_schema)
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
        choices=choice_titles(name),
        error=errors.get(name),
        designs=designs_reading_setting(name),
        laws=laws_reading_setting(name),
        designs_by_choice=designs_by_choice_of_setting(name),
        hints=hints_for_setting(name, values),
        offers=rule_offers_for_setting(name, values),
    )


def designs_by_choice_of_setting(setting_name: str) -> dict[str, str]:
    """The designs that each choice is for, where some are not for all."""
    if setting_name == "update_law":
        return designs_by_update_law()
    return designs_by_selection_rule() if setting_name == "rule" else {}


def designs_by_update_law() -> dict[str, str]:
    """The designs that each update law can follow."""
    designs = [design() for design in DESIGNS.values()]
    return {
        name: " ".join(one.name for one in designs if can_law_read_design(one, law))
        for name, law in ONLINE_LAWS.items()
    }


def designs_by_selection_rule() -> dict[str, str]:
    """The designs that each rule of selection can ask by, with a law that follows them."""
    designs_by_law = designs_by_update_law()
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


def designs_reading_setting(setting_name: str) -> str:
    """The designs that read a setting, if not all do."""
    if setting_name == IMPLIED_PAIRS_SETTING:
        return " ".join(design.name for design in DESIGNS.values() if design().compares_pairs)
    if setting_name == CRITERIA_SHOWN_SETTING:
        return " ".join(design.name for design in DESIGNS.values() if design.fits_in_grid)
    if setting_name in POINT_SCALE_SETTINGS:
        return " ".join(design.name for design in DESIGNS.values() if design.value_kind == "points")
    if setting_name == "items_per_hit":
        return " ".join(design.name for design in DESIGNS.values() if len(design.items_per_hit) > 1)
    return ""


def laws_reading_setting(setting_name: str) -> str:
    """The update laws that read a setting, if not all do."""
    return (
        " ".join(law.name for law in ONLINE_LAWS.values() if law.reads == "order")
        if setting_name in ORDER_LAW_SETTINGS
        else ""
    )


def value_limits_of_schema(setting_schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The type and limits of a setting's value; the schema of one that may be none has them a level down."""
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


def new_campaign_form_values() -> dict[str, str]:
    """What stands in a new campaign's form."""
    fields = CampaignSettings.model_fields.items()
    return {
        name: format_setting_value(name, info.default)
        for name, info in fields
        if not (info.is_required() or name in (DESIGN_SETTINGS_SETTING, CRITERIA_SETTING))
    }


def form_values_of_settings(settings: CampaignSettings) -> dict[str, str]:
    """What stands in the form of a campaign that exists."""
    campaign_values = settings.model_dump(exclude={DESIGN_SETTINGS_SETTING, CRITERIA_SETTING})
    prefixed_values = prefixed_form_values(settings.design_settings, f"{settings.design}.")
    for number, criterion in enumerate(settings.criteria):
        name_prefix = f"{CRITERIA_SETTING}.{number}."
        criterion_values = {name: value for name, value in criterion.items() if name != DESIGN_SETTINGS_SETTING}
        prefixed_values |= prefixed_form_values(criterion_values, name_prefix)
        design_values = criterion.get("design_settings", {})
        prefixed_values |= prefixed_form_values(
            {name: switch_as_yes_or_no(value) for name, value in design_values.items()},
            f"{name_prefix}{settings.design}.",
        )
    return {name: format_setting_value(name, value) for name, value in campaign_values.items()} | prefixed_values


def prefixed_form_values(values: Mapping[str, object], name_prefix: str) -> dict[str, str]:
    return {name_prefix + name: format_multiline_form_value(value) for name, value in values.items()}


def switch_as_yes_or_no(value: object) -> object:
    """A switch of a criterion, which may be off where the campaign's is on."""
    return ("no", "yes")[value] if isinstance(value, bool) else value


def format_form_value(value: object) -> str:
    """A switch that is off is empty, as in a browser's form."""
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def format_setting_value(setting_name: str, value: object) -> str:
    """A setting of the campaign: the numbers of its prior stand on one line."""
    return (
        format_form_value(value)
        if setting_name == "prior"
        else format_multiline_form_value(switch_as_yes_or_no(value) if setting_name == "open_platforms" else value)
    )


def format_multiline_form_value(value: object) -> str:
    """What is many stands on lines."""
    return "\n".join(map(str, value)) if isinstance(value, list) else format_form_value(value)


def parse_settings_form(values: Mapping[str, str]) -> CampaignSettings:
    """Settings from a form. Raises Pydantic's ValidationError; `problems` turns it into words."""
    entered = {
        name: entered_setting_value(name, values)
        for name in CampaignSettings.model_fields
        if is_switch_setting(name) or name in values
    }
    entered[DESIGN_SETTINGS_SETTING] = parse_design_fields(values)
    entered[CRITERIA_SETTING] = [said for said in parse_criteria_fields(values) if said]
    if not entered[CRITERIA_SETTING]:
        entered.pop(ASKED_BY_SETTING, None)
    if values.get("design", USUAL_DESIGN) not in designs_reading_setting(IMPLIED_PAIRS_SETTING).split():
        entered.pop(IMPLIED_PAIRS_SETTING, None)  # it stands in the form for another way of asking
    return CampaignSettings.model_validate(entered)


def parse_criteria_fields(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Of each place for a criterion what stands in its fields; nothing where these are empty."""
    criteria_values = []
    for start in (f"{CRITERIA_SETTING}.{number}." for number in range(MAX_CRITERIA)):
        criterion_values: dict[str, object] = {
            name: text for name in CRITERION_SETTINGS if (text := values.get(start + name, "").strip())
        }
        design_values = parse_design_fields(values, start)
        criteria_values.append(criterion_values | ({DESIGN_SETTINGS_SETTING: design_values} if design_values else {}))
    return criteria_values


def parse_design_fields(values: Mapping[str, str], name_prefix: str = "") -> dict[str, object]:
    """Those of the chosen design, from their fields; what stands empty is left to the design.

    start: with what the names of the fields begin that are of one criterion, which may leave switches to the campaign.
    """
    design = DESIGNS.get(values.get("design", USUAL_DESIGN))
    properties = design.model_json_schema().get("properties", {}) if design else {}
    design_values: dict[str, object] = {}
    for name, schema in properties.items():
        field_name, kind = (
            f"{name_prefix}{values.get('design', USUAL_DESIGN)}.{name}",
            form_field_kind(name, value_limits_of_schema(schema)),
        )
        entered_text = values.get(field_name, "").strip()
        if kind == "switch" and not name_prefix:
            design_values[name] = field_name in values
        elif kind == "lines" and entered_text:
            design_values[name] = [line.strip() for line in entered_text.splitlines() if line.strip()]
        elif entered_text:
            design_values[name] = entered_text
    return design_values


def parse_unfinished_settings_form(values: Mapping[str, str]) -> CampaignSettings:
    """The same of a form that is being filled in: what is wrong or missing so far is as in a new campaign."""
    usable_values = PLACEHOLDER_VALUES | {
        name: value for name, value in values.items() if value.strip() or name not in PLACEHOLDER_VALUES
    }
    for _ in range(4):  # what is wrong with fields together is found once each is right
        try:
            return parse_settings_form(usable_values)
        except ValidationError as error:
            errors = form_field_errors(error, usable_values)
            if any(
                name.startswith(f"{CRITERIA_SETTING}.") for name in errors
            ):  # what is left of one would be wrong, too
                errors |= {name: "" for name in usable_values if name.startswith(f"{CRITERIA_SETTING}.")}
            usable_values = {name: value for name, value in usable_values.items() if name not in errors}
            usable_values = PLACEHOLDER_VALUES | usable_values
    return CampaignSettings.model_validate(PLACEHOLDER_VALUES)


def parse_form_of_launched_campaign(settings: CampaignSettings, values: Mapping[str, str]) -> CampaignSettings:
    """Settings with those that a launch leaves open from a form that asks for no others. Raises what `read` raises."""
    editable_switches = {
        name for name in SETTINGS_EDITABLE_AFTER_LAUNCH if is_switch_setting(name)
    }  # one that is off stands in no form
    kept_values = {
        name: value
        for name, value in form_values_of_settings(settings).items()
        if value and name not in editable_switches
    }
    return parse_settings_form({**kept_values, **values})


def entered_setting_value(setting_name: str, values: Mapping[str, str]) -> object:
    """A browser leaves a switch out that is off, and an empty field means none where none is possible."""
    if is_switch_setting(setting_name):
        return setting_name in values
    optional = CampaignSettings.model_fields[setting_name].default is None
    return values[setting_name].strip() or (None if optional else "")


def is_switch_setting(setting_name: str) -> bool:
    return CampaignSettings.model_fields[setting_name].annotation is bool


def field_of_joint_error(validation_error: Mapping[str, Any]) -> tuple[str]:
    """The field at which is said what is wrong with settings together."""
    return (
        str(validation_error.get("ctx", {}).get("field", "prior"))
        if validation_error["type"] == JOINT_ERROR_TYPE
        else "prior",
    )


def setting_errors(error: ValidationError) -> dict[str, str]:
    """A message for each field that is wrong; what is wrong with fields together is said at the first of them."""
    message_by_setting = {}
    for problem in reversed(error.errors(include_url=False, include_input=False)):
        message_by_setting[str((problem["loc"] or field_of_joint_error(problem))[0])] = setting_error_message(
            problem["type"], problem["msg"]
        )
    return message_by_setting


def form_field_errors(error: ValidationError, values: Mapping[str, str]) -> dict[str, str]:
    """The same, where what is wrong with a design's own settings is said at their fields."""
    message_by_field, design = setting_errors(error), values.get("design", USUAL_DESIGN)
    for problem in error.errors(include_url=False, include_input=False):
        if problem["loc"] == (DESIGN_SETTINGS_SETTING,):
            del message_by_field[DESIGN_SETTINGS_SETTING]
            design_problems = problem.get("ctx", {}).get("problems", {})
            message_by_field |= {
                f"{design}.{name.partition('.')[0]}": setting_error_message("", words)
                for name, words in design_problems.items()
            }
        elif problem["loc"][:1] == (CRITERIA_SETTING,):
            message_by_field.pop(CRITERIA_SETTING, None)
            message_by_field[field_of_criterion_error(problem, values)] = setting_error_message(
                problem["type"], problem["msg"]
            )
    return message_by_field


def field_of_criterion_error(validation_error: Mapping[str, Any], values: Mapping[str, str]) -> str:
    """The field in which something is wrong; the first one if it is wrong with all criteria together."""
    context = validation_error.get("ctx", {})
    default_place = context.get("number", 0), context.get("field", "name")
    number, name, *_ = (*validation_error["loc"][1:], "name") if validation_error["loc"][1:] else default_place
    filled_criteria = [place for place, said in enumerate(parse_criteria_fields(values)) if said] or [0]
    field_name = str(name).replace(DESIGN_SETTINGS_SETTING, values.get("design", USUAL_DESIGN))
    return f"{CRITERIA_SETTING}.{filled_criteria[number]}.{field_name}"


def setting_error_message(error_type: str, message: str) -> str:
    plain = TYPE_ERROR_PREFIX.sub("This should", strip_validator_prefix(message)).replace(" after validation", "")
    return MESSAGE_BY_ERROR_TYPE.get(error_type, plain[0].upper() + plain[1:] + "." * (not plain.endswith(".")))
