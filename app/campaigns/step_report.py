"""Report on a step's form that was not saved: its problems, and how it differs from the stored settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.campaigns.form import FormField, FormSection
from app.campaigns.form_sections import NEED_FIELD, STEP_TITLES, StepName, step_of_field_or_none


@dataclass(frozen=True)
class StepProblem:
    """A wrong field.

    Attributes:
        step: The other step that has the field; None if it is on the page.

    """

    field: str
    title: str
    message: str
    step: StepName | None


@dataclass(frozen=True)
class Difference:
    """A setting that is stored with another value than was entered."""

    title: str
    stored: str
    entered: str


def problems_in_order_of_fields(
    sections: Sequence[FormSection], step: StepName, errors: Mapping[str, str]
) -> list[StepProblem]:
    """Return the problems of a form, in the order of its fields."""
    fields = {field.name: field for section in sections for field in section.all_fields}
    positions = {name: position for position, name in enumerate(fields)}

    def setting_of(field_name: str) -> str:
        return field_name.rpartition(".")[2] if field_name.startswith(f"{NEED_FIELD}.") else field_name

    problems = []
    for name in sorted(errors, key=lambda name: positions.get(setting_of(name), -1)):
        field, field_step = fields.get(setting_of(name)), step_of_field_or_none(name)
        is_here = field_step in (step, None)
        title = field.full_title if field else "What do you need?" if name == NEED_FIELD else name
        place = "" if is_here or field_step is None else f"{STEP_TITLES[field_step]}, "
        problems.append(StepProblem(name, place + title, errors[name], None if is_here else field_step))
    return problems


def differences_between_stored_and_entered(
    sections: Sequence[FormSection], step: StepName, stored_values: Mapping[str, str], entered_values: Mapping[str, str]
) -> list[Difference]:
    """Return the settings of a step that were entered with another value than the stored one."""
    return [
        Difference(field.full_title, field_value_in_words(field, before), field_value_in_words(field, after))
        for section in sections
        if section.step == step
        for field in section.all_fields
        if (before := stored_values.get(field.name, ""))
        != (after := entered_values.get(field.name, "").replace("\r\n", "\n"))
    ]


def field_value_in_words(field: FormField, value: str) -> str:
    """Return a field's value in words."""
    if field.kind == "switch":
        return "on" if value else "off"
    return field.choices.get(value, value) or "empty"
