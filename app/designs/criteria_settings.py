"""Settings of criteria, several questions about the same items, and the checks of criteria that are asked together."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, cast

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from app.designs.design import Design, visible_text_without_controls_or_raise
from app.designs.field_flags import OneLine
from app.designs.label_names import lookalike_comparison_key
from app.designs.registry import DESIGNS, make_design
from app.designs.several_labels import MAX_LABELS, SeveralLabels

MIN_CRITERIA = 2
MAX_WRITTEN_CRITERIA = 5  # each costs annotators another pass through the items
MAX_CRITERIA = MAX_LABELS  # labels that are ticked
GRID_LAYOUT = "grid"
MAX_GRID_CONTROLS = 10  # controls that are seen at once

PlainText = BeforeValidator(visible_text_without_controls_or_raise)
QuestionText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), PlainText]
CriterionLabel = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine, PlainText
]


class CriterionSettings(TypedDict):
    """Settings of one criterion; the campaign's settings apply where it has none."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # where Pydantic looks for it

    name: Annotated[CriterionLabel, Field(title="Name", description="One or two words, such as adequacy.")]
    question: Annotated[
        QuestionText, Field(title="Question", description="What annotators are asked about this criterion.")
    ]
    low_label: NotRequired[Annotated[CriterionLabel, Field(title="Label at 0", description="Empty: the campaign’s.")]]
    middle_label: NotRequired[
        Annotated[CriterionLabel, Field(title="Label at 50", description="Empty: the campaign’s.")]
    ]
    high_label: NotRequired[
        Annotated[CriterionLabel, Field(title="Label at 100", description="Empty: the campaign’s.")]
    ]
    design_settings: NotRequired[
        Annotated[
            dict[str, Any],
            Field(
                title="Design settings",
                description="Only those that differ from the campaign’s, such as the labels of an ordinal scale.",
            ),
        ]
    ]


def compatible_criteria_or_raise(
    criteria: Sequence[CriterionSettings], campaign: Mapping[str, Any]
) -> list[CriterionSettings]:
    """Return criteria as they are stored. Raises ValueError for those that cannot be asked together.

    Args:
        criteria: The criteria as they were sent.
        campaign: The campaign's other settings by name, `design` and `design_settings` among them.

    """
    design = make_design(campaign["design"], campaign["design_settings"])
    if texts := design.criterion_texts_of_labels(campaign.get("question", "")):
        return criteria_of_labels_or_raise(texts, criteria)
    most = MAX_CRITERIA if design.ticks_criteria else MAX_WRITTEN_CRITERIA
    if len(criteria) == 1:
        raise ValueError(f"give {MIN_CRITERIA} to {most} criteria, or none to ask only the campaign’s question")
    if len(criteria) > most:
        raise ValueError(f"give at most {most} criteria; “{SeveralLabels.title}” takes up to {MAX_CRITERIA} labels")
    names = [lookalike_comparison_key(criterion["name"]) for criterion in criteria]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise criterion_error(number, "name", "each criterion needs a different name")
    return [valid_criterion_or_raise(number, criterion, campaign) for number, criterion in enumerate(criteria)]


def criteria_of_labels_or_raise(
    texts: Sequence[tuple[str, str]], criteria: Sequence[CriterionSettings]
) -> list[CriterionSettings]:
    """Return a criterion for each label. Raises ValueError for other criteria than those of the labels.

    Args:
        texts: The name and the question of each label's criterion.
        criteria: The criteria as they were sent: empty, or those of the labels, as a stored campaign has them.

    """
    if criteria and [criterion["name"] for criterion in criteria] != [name for name, _ in texts]:
        raise ValueError("Easel makes a criterion of each label, so leave the criteria empty")
    return [cast("CriterionSettings", {"name": name, "question": question}) for name, question in texts]


def criterion_error(number: int, field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("criteria", "{words}", {"words": message, "number": number, "field": field})


def valid_criterion_or_raise(
    number: int, criterion: CriterionSettings, campaign: Mapping[str, Any]
) -> CriterionSettings:
    """Return a criterion with the design's settings validated. Raises ValueError."""
    ends = [criterion.get(end, campaign.get(end)) for end in ("low_label", "high_label")]
    if ends[0] is not None and ends[0] == ends[1]:
        own_end = "high_label" if "high_label" in criterion else "low_label"
        raise criterion_error(number, own_end, f"{criterion['name']}: the two ends of the scale need different labels")
    if not (own_settings := criterion.get("design_settings")):
        return criterion_with_design_settings_replaced(criterion, {})
    if DESIGNS[campaign["design"]].ticks_criteria:
        message = f"{criterion['name']}: a label has no settings of its own"
        raise criterion_error(number, "name", message)
    try:
        design = make_design_of_criterion(campaign["design"], campaign["design_settings"], criterion)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        message = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in errors)
        raise criterion_error(
            number, f"design_settings.{errors[0]['loc'][0]}", f"{criterion['name']}: {message}"
        ) from None
    if list(design.always_shown) != list(make_design(campaign["design"], campaign["design_settings"]).always_shown):
        message = f"{criterion['name']}: the item shown in every task must be the same for all criteria"
        raise criterion_error(number, "name", message)
    stored = design.model_dump(mode="json")
    return criterion_with_design_settings_replaced(
        criterion, {name: stored[name] for name in own_settings if stored[name] != ""}
    )


def criterion_with_design_settings_replaced(
    criterion: CriterionSettings, design_settings: dict[str, Any]
) -> CriterionSettings:
    """Return the criterion with these design settings, or without any if they are empty."""
    changed = criterion.copy()
    changed.pop("design_settings", None)
    return {**changed, "design_settings": design_settings} if design_settings else changed


def make_design_of_criterion(name: str, settings: Mapping[str, Any], criterion: CriterionSettings) -> Design:
    """Return a campaign's design, by its name and settings, with the settings of one of its criteria."""
    return make_design(name, {**settings, **criterion.get("design_settings", {})})


def refuse_differing_class_counts(
    name: str, settings: Mapping[str, Any], criteria: Sequence[CriterionSettings]
) -> None:
    """Raise ValueError if criteria differ from the campaign in the number of classes of the design.

    Where a law counts classes, priors have one number for each.
    """
    counts = {len(make_design_of_criterion(name, settings, criterion).classes) for criterion in criteria}
    if counts - {len(make_design(name, settings).classes)}:
        raise ValueError("this law counts labels, so every criterion needs as many labels as the campaign")


def refuse_unsuitable_grid(design: Design, item_count: int, criterion_count: int) -> None:
    """Raise ValueError if the criteria of a HIT of so many items cannot be shown side by side."""
    if not design.fits_in_grid:
        raise ValueError(f"“{design.title}” has no grid; ask one criterion after another")
    controls = item_count * criterion_count
    if controls > MAX_GRID_CONTROLS:
        raise ValueError(
            f"a grid has room for {MAX_GRID_CONTROLS} controls, not {controls}; show fewer items, or ask one "
            "criterion after another"
        )
