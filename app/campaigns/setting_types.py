"""Types of campaign settings, with their limits, and which designs, update laws and selection rules go together."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from app.designs.content import CONTENT_KINDS
from app.designs.design import Design
from app.designs.registry import DEFAULT_DESIGN, DESIGNS, make_design
from app.http.languages.catalogue import BROWSER_LANGUAGE, LANGUAGES
from app.inference.observations.judgment_kinds import can_law_read_answers
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from app.selection.rule import Rule

MAX_CAMPAIGN_NAME_CHARACTERS = 500
MIN_COMPARISONS_FOR_PAIRS_RULE = 8  # of each item
EASEL_1_PRIOR_SETTINGS = ("prior_a", "prior_b")


def type_of_registry_keys(registry: Mapping[str, Any]) -> Any:
    """Return the type of texts that are keys of the registry when they are validated."""

    def require_registered(key: str) -> str:
        if key not in registry:
            raise PydanticCustomError(
                "literal_error", "Input should be {expected}", {"expected": " or ".join(registry)}
            )
        return key

    def add_enum_of_keys(schema: dict[str, Any]) -> None:
        schema["enum"] = list(registry)

    return Annotated[str, AfterValidator(require_registered), Field(json_schema_extra=add_enum_of_keys)]


RequiredText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CAMPAIGN_NAME_CHARACTERS)
]
ScaleLabel = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
# Beyond these limits, squares and their ratios leave the range of floats, and a campaign could select no item.
PositiveWidth = Annotated[float, Field(ge=0.0001, le=1_000_000, allow_inf_nan=False)]
FinitePriorNumber = Annotated[float, Field(allow_inf_nan=False)]
DesignName: Any = type_of_registry_keys(DESIGNS)
UpdateLaw: Any = type_of_registry_keys(ONLINE_LAWS)
RuleName: Any = type_of_registry_keys(SELECTION_RULES)
Selection = Literal["streaming", "iterations"]
ContentKind: Any = type_of_registry_keys(CONTENT_KINDS)
LanguageName: Any = Literal[(BROWSER_LANGUAGE, *LANGUAGES)]
ColumnName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CAMPAIGN_NAME_CHARACTERS)
]
Differences = Literal["none", "reference", "pair"]
CriteriaShown = Literal["in turn", "grid"]


def can_law_read_design(design: Design, law: Law) -> bool:
    """Return whether a law can read a design's answers."""
    return can_law_read_answers(law.reads, design.value_kind, len(design.classes))


def can_law_serve_rule(rule: Rule, law: Law) -> bool:
    """Return whether a law keeps what a selection rule reads."""
    labels = law.family.counts_classes
    if rule.reads_comparisons and law.reads != "order":
        return False
    if rule.reads_labels or rule.needs_ordered_scores:
        return labels == rule.reads_labels and (not rule.needs_bounded_scores or law.family.support == (0.0, 1.0))
    return True


def is_pairs_rule_best(
    design_name: str, update_law: str, selection: str, judgments_per_item: int, *, has_criteria: bool
) -> bool:
    """Return whether the rule `pairs` orders the items of a campaign better than rules that ask evenly.

    Measured for tasks of two items by `python -m benchmarks.pairs`: with 8 or more comparisons of each item.
    """
    return (
        design_name == "pairwise"
        and can_law_serve_rule(SELECTION_RULES["pairs"], ONLINE_LAWS[update_law])
        and selection == "streaming"
        and judgments_per_item >= MIN_COMPARISONS_FOR_PAIRS_RULE
        and not has_criteria
    )


def is_rule_for_one_question(rule: Rule) -> bool:
    """Return whether a rule reads the answers to one question, and so chooses one HIT at a time."""
    return rule.reads_labels or rule.reads_comparisons


def settings_with_repeats(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that say whether items are shown again: as given, otherwise as usual for the design."""
    design = DESIGNS.get(str(values.get("design", DEFAULT_DESIGN)))
    return {"repeat_items": design is not None and design.repeats_items, **values}


def repeats_items_under_new_design(old_design: type[Design], new_design: type[Design], *, repeats_items: bool) -> bool:
    """Return whether items are shown again after another design is chosen, if `repeats_items` says it for the old one.

    It follows what is usual for the designs, unless someone chose otherwise before.
    """
    return new_design.repeats_items if repeats_items == old_design.repeats_items else repeats_items


def settings_with_changes(current_settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings after some are changed. Another design may also change whether items are shown again, and
    criteria that follow from labels follow from the new ones.
    """
    current_settings = settings_without_criteria_of_labels(current_settings)
    old_design, new_design = (DESIGNS.get(str(settings.get("design"))) for settings in (current_settings, changes))
    repeats_items = current_settings.get("repeat_items")
    if old_design is None or new_design is None or repeats_items is None:
        return {**current_settings, **changes}
    repeats_items = repeats_items_under_new_design(old_design, new_design, repeats_items=repeats_items)
    return {**current_settings, "repeat_items": repeats_items, **changes}


def settings_without_criteria_of_labels(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return valid settings without the criteria that follow from the labels of their design."""
    design = design_of_valid_settings_or_none(settings)
    has_labels = design is not None and design.criterion_texts_of_labels("")
    return {name: value for name, value in settings.items() if name != "criteria"} if has_labels else settings


def settings_with_prior_as_list(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the prior as a list.

    It may be one text with commas, or the two settings of Easel 1, which may also be given alone.
    """
    new_values = {name: value for name, value in values.items() if name not in EASEL_1_PRIOR_SETTINGS}
    if new_values.keys() != values.keys():
        law = ONLINE_LAWS.get(str(values.get("update_law")), ONLINE_LAWS["easl"])
        has_list = isinstance(new_values.get("prior"), list)
        default_numbers = new_values["prior"] if has_list else law.family.default_prior
        new_values["prior"] = [
            values.get(name, number) for name, number in zip(EASEL_1_PRIOR_SETTINGS, default_numbers, strict=False)
        ]
    if isinstance(prior := new_values.get("prior"), str):
        new_values["prior"] = [number.strip() for number in prior.split(",")] if prior.strip() else None
    return new_values


def design_of_valid_settings_or_none(settings: Mapping[str, Any]) -> Design | None:
    """Return the design of the settings that are valid so far; None if it is not among them."""
    can_make = {"design", "design_settings"} <= settings.keys()
    return make_design(settings["design"], settings["design_settings"]) if can_make else None
