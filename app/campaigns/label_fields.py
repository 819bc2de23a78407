"""Labels in the settings form: their lines, and the names of the criteria that follow from them or that are written."""

from collections.abc import Mapping

from app.campaigns.form_sections import CRITERIA_SETTING
from app.designs.criteria_settings import MAX_WRITTEN_CRITERIA
from app.designs.registry import DESIGNS
from app.designs.several_labels import names_and_descriptions_of_labels

LABELS_SETTING = "labels"  # of a design whose labels are its criteria
PLACEHOLDER_LABELS = "first label\nsecond label"


def needs_labels(values: Mapping[str, str]) -> bool:
    """Return whether a form has a design that makes a criterion of each label."""
    design = DESIGNS.get(values.get("design", ""))
    return design is not None and design.ticks_criteria


def label_lines_with_criteria(values: Mapping[str, str]) -> list[str]:
    """Return the labels in a form whose design makes a criterion of each; empty for other designs."""
    return values.get(labels_field(values), "").strip().splitlines() if needs_labels(values) else []


def criterion_names_in_form(values: Mapping[str, str]) -> list[str]:
    """Return the names of the criteria in a form, or of the labels of a design that makes a criterion of each."""
    if lines := label_lines_with_criteria(values):
        return [name for name, _ in names_and_descriptions_of_labels(lines)]
    return [values.get(f"{CRITERIA_SETTING}.{number}.name", "").strip() for number in range(MAX_WRITTEN_CRITERIA)]


def labels_field(values: Mapping[str, str]) -> str:
    return f"{values['design']}.{LABELS_SETTING}"


def values_with_placeholder_labels(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of a form whose design needs labels with two of them, to be replaced."""
    return {**values, labels_field(values): PLACEHOLDER_LABELS}
