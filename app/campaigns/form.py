"""The settings as a form: which fields belong together, how each is asked, and what is wrong with what was entered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from app.campaigns.settings import OPEN_AFTER_LAUNCH, CampaignSettings
from app.designs.registry import DESIGNS
from app.inference.online.laws import ONLINE
from app.selection.registry import RULES

AREAS = ("question", "instructions")
SCHEDULES = {
    "streaming": "Streaming: each HIT from the newest posteriors",
    "iterations": "Iterations: Algorithm 1, all HITs of a round at once",
}
REGISTRIES: dict[str, Mapping[str, Any]] = {"design": DESIGNS, "update_law": ONLINE, "rule": RULES}
WORDS = {
    "string_too_short": "Please fill this in.",
    "missing": "Please fill this in.",
    "int_parsing": "Enter a whole number.",
    "int_parsing_size": "This number is too large.",
    "int_from_float": "Enter a whole number.",
    "float_parsing": "Enter a number.",
    "finite_number": "Enter a number.",
    "string_pattern_mismatch": "Only letters, digits, _ and - can be in this code, 64 at most.",
}


@dataclass(frozen=True)
class FieldGroup:
    """Fields under one heading; the advanced ones are folded away."""

    title: str
    plain: tuple[str, ...]
    advanced: tuple[str, ...] = ()


GROUPS = (
    FieldGroup(
        "What annotators see",
        ("name", "question", "instructions", "design", "low_label", "high_label", "items_per_hit"),
        ("middle_label", "show_numbers", "minutes_per_hit", "pay"),
    ),
    FieldGroup(
        "How much is asked, and of whom",
        ("judgments_per_item", "repeat_items", "hits_per_annotator", *OPEN_AFTER_LAUNCH),
        ("lease_minutes",),
    ),
    FieldGroup(
        "How answers become scores, and what is asked next",
        (),
        (
            *("update_law", "prior", "gamma", "epsilon", "tie_margin_points"),
            *("rule", "selection", "hits_per_iteration", "leaders_as_companions", "seed"),
        ),
    ),
)


@dataclass(frozen=True)
class FormField:
    """One field as it is shown. `kind`: line, area, whole, number, choice or switch; `value` is what stands in it."""

    name: str
    title: str
    description: str
    kind: str
    value: str
    required: bool
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Section:
    title: str
    plain: Sequence[FormField]
    advanced: Sequence[FormField]

    @property
    def open(self) -> bool:
        """Whether the folded fields must be seen at once."""
        return any(question.error for question in self.advanced)


def sections(values: Mapping[str, str], errors: Mapping[str, str] | None = None) -> list[Section]:
    """The whole form with `values` in it and `errors` beside their fields."""
    properties = CampaignSettings.model_json_schema()["properties"]
    asked = {name: question(name, properties[name], values, errors or {}) for name in properties}
    return [
        Section(
            group.title,
            [asked[name] for name in group.plain if is_asked(name)],
            [asked[name] for name in group.advanced if is_asked(name)],
        )
        for group in GROUPS
    ]


def is_asked(name: str) -> bool:
    """Whether there is anything to choose."""
    return len(REGISTRIES.get(name, "more")) > 1


def choices_of(name: str) -> dict[str, str]:
    """What people read for each value of a setting that is a choice."""
    if name == "selection":
        return SCHEDULES
    return {value: part.title for value, part in REGISTRIES.get(name, {}).items()}


def question(name: str, schema: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]) -> FormField:
    """How one setting is asked, as its JSON schema says."""
    rules = rules_of(schema)
    return FormField(
        name=name,
        title=schema["title"],
        description=schema["description"],
        kind=kind_of(name, rules),
        value=values.get(name, ""),
        required=rules is schema and name != "instructions",
        minimum=rules.get("minimum"),
        maximum=rules.get("maximum"),
        longest=rules.get("maxLength"),
        choices=choices_of(name),
        error=errors.get(name),
    )


def rules_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The type and limits of a setting's value; the schema of one that may be none has them a level down."""
    rules: Mapping[str, Any] = schema["anyOf"][0] if "anyOf" in schema else schema
    return rules


def kind_of(name: str, rules: Mapping[str, Any]) -> str:
    if "enum" in rules:
        return "choice"
    if name in AREAS:
        return "area"
    return {"boolean": "switch", "integer": "whole", "number": "number"}.get(rules["type"], "line")


def blank() -> dict[str, str]:
    """What stands in a new campaign's form."""
    fields = CampaignSettings.model_fields.items()
    return {name: shown(info.default) for name, info in fields if not info.is_required()}


def filled(settings: CampaignSettings) -> dict[str, str]:
    """What stands in the form of a campaign that exists."""
    return {name: shown(value) for name, value in settings.model_dump().items()}


def shown(value: object) -> str:
    """A switch that is off is empty, as in a browser's form."""
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def read(values: Mapping[str, str]) -> CampaignSettings:
    """Settings from a form. Raises Pydantic's ValidationError; `problems` turns it into words."""
    entered = {name: value_of(name, values) for name in CampaignSettings.model_fields if is_given(name, values)}
    return CampaignSettings.model_validate(entered)


def read_over(settings: CampaignSettings, values: Mapping[str, str]) -> CampaignSettings:
    """Settings with some of them from a form that asks for no others. Raises what `read` raises."""
    kept = {name: value for name, value in filled(settings).items() if value}
    return read({**kept, **values})


def is_given(name: str, values: Mapping[str, str]) -> bool:
    return is_switch(name) or name in values


def value_of(name: str, values: Mapping[str, str]) -> object:
    """A browser leaves a switch out that is off, and an empty field means none where none is possible."""
    if is_switch(name):
        return name in values
    optional = CampaignSettings.model_fields[name].default is None
    return values[name].strip() or (None if optional else "")


def is_switch(name: str) -> bool:
    return CampaignSettings.model_fields[name].annotation is bool


def problems(error: ValidationError) -> dict[str, str]:
    """A message for each field that is wrong; what is wrong with fields together is said at the first of them."""
    return {
        str(problem["loc"][0]) if problem["loc"] else "prior": in_words(problem["type"], problem["msg"])
        for problem in reversed(error.errors(include_url=False, include_input=False))
    }


def in_words(kind: str, message: str) -> str:
    plain = message.removeprefix("Value error, ").replace("Input should", "This should")
    return WORDS.get(kind, plain[0].upper() + plain[1:] + "." * (not plain.endswith(".")))
