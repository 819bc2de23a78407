"""Criteria: several questions about the same items, each with its own labels and posteriors.

A criterion of a campaign reads like a campaign with another question. So code that reads a campaign's row, its design,
its law or its pages takes a `criterion_view` unchanged. A campaign without criteria has one unnamed view: itself.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias, TypeVar

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from app.designs.answer import Answer, AnswerByCriterion, Form
from app.designs.design import Design, check_plain_text
from app.designs.field_flags import OneLine
from app.designs.registry import design_of
from app.designs.remarks import COMMENT_PREFIX, FLAG_PREFIX
from app.designs.unjudged import UNJUDGED_PREFIX as UNJUDGED
from app.designs.unjudged import refuse_unoffered_reasons
from app.errors import Invalid, NotFound, join_names, shorten_echo, shorten_names

T = TypeVar("T")  # Python 3.11 has no other way

MIN_CRITERIA, MAX_CRITERIA = 2, 5
GRID_LAYOUT = "grid"
MAX_GRID_CONTROLS = 10  # controls that are seen at once
CRITERIA_ORDER_KEY = (
    "criteria_order"  # what `responses.extra` calls it: the names in the order in which they were asked
)
SHARED_FIELD_PREFIXES = (
    UNJUDGED,
    COMMENT_PREFIX,
    FLAG_PREFIX,
    "viewport",
)  # begins the fields of a form that are of no criterion alone

PlainText = BeforeValidator(check_plain_text)
QuestionText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), PlainText]
CriterionLabel = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine, PlainText
]


class Criterion(TypedDict):
    """Settings of one criterion; the campaign's settings apply where it has none."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # where Pydantic looks for it

    name: Annotated[CriterionLabel, Field(title="Name", description="In a word or two, such as: adequacy.")]
    question: Annotated[QuestionText, Field(title="Question", description="What annotators are asked by it.")]
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
                title="Settings of the way of asking",
                description="Those that differ from the campaign’s, by name, such as the labels of an ordinal scale.",
            ),
        ]
    ]


class CampaignCriterion:
    """A campaign's row or settings, with the question, the labels and the design's settings of one criterion.

    Attributes:
        criterion: Its number, from 0.
        criterion_name: The researcher's name for it.

    """

    def __init__(self, campaign: Any, number: int) -> None:
        self.campaign: Any = campaign.campaign if isinstance(campaign, CampaignCriterion) else campaign
        settings = self.campaign.criteria[number]
        self.criterion, self.criterion_name = number, settings["name"]
        self.question = settings["question"]
        for label in ("low_label", "middle_label", "high_label"):
            if label in settings:
                setattr(self, label, settings[label])
        self.design_settings = {**self.campaign.design_settings, **settings.get("design_settings", {})}

    def __getattr__(self, name: str) -> Any:
        """Return the campaign's value for everything else."""
        return getattr(self.campaign, name)


def criterion_views(campaign: Any) -> list[Any]:
    """Return a campaign as seen by each of its criteria, in order; without criteria, the campaign itself."""
    return [CampaignCriterion(campaign, number) for number in range(len(campaign.criteria))] or [campaign]


def criterion_view(campaign: Any, number: int) -> Any:
    """Return a campaign as seen by one of its criteria."""
    return CampaignCriterion(campaign, number) if campaign.criteria else campaign


def criterion_number(campaign: Any) -> int:
    """Return the number of the criterion of this view; 0 for a campaign without criteria."""
    number: int = getattr(campaign, "criterion", 0)
    return number


def criterion_key(campaign: Any) -> tuple[int, int]:
    """Return the campaign's id and the number of the criterion, the key of everything stored per criterion."""
    return campaign.id, criterion_number(campaign)


def criterion_names(campaign: Any) -> list[str]:
    """Return the names of the criteria, in order; empty if there are none."""
    return [criterion["name"] for criterion in campaign.criteria]


def selecting_criterion(campaign: Any) -> int | None:
    """Return the number of the criterion that decides which items are asked; None where all do together."""
    if not campaign.criteria:
        return 0
    return criterion_names(campaign).index(campaign.asked_by) if campaign.asked_by else None


def find_criterion(campaign: Any, name: str | None) -> Any:
    """Return the view by the criterion of this name, the first one without a name.

    Raises `NotFound` (`criterion_not_found`).
    """
    if not name:
        return criterion_view(campaign, 0)
    names = criterion_names(campaign)
    if name not in names:
        known_names = f"Its criteria are {join_names(names)}" if names else "It has no criteria"
        raise NotFound(
            f"“{campaign.name}” has no criterion “{shorten_echo(name)}”. {known_names}.",
            code="criterion_not_found",
            criteria=shorten_names(names),
        )
    return criterion_view(campaign, names.index(name))


def criterion_order(campaign: Any, annotator_id: int) -> list[int]:
    """Return the order of the criteria for an annotator, by their row's id: always the same, and different between
    annotators.
    """
    count = len(campaign.criteria)
    return np.random.default_rng([campaign.seed, annotator_id]).permutation(count).tolist() if count else [0]


def criterion_field_prefix(campaign: Any) -> str:
    """Return the prefix of the form fields of this view's criterion."""
    return f"c{criterion_number(campaign)}-" if campaign.criteria else ""


def criterion_fields(fields: Mapping[str, T], campaign: Any) -> Mapping[str, T]:
    """Return the form fields of this view's criterion, without prefix, and the shared fields."""
    if not campaign.criteria:
        return fields
    prefix = criterion_field_prefix(campaign)
    shared = {name: value for name, value in fields.items() if name.startswith(SHARED_FIELD_PREFIXES)}
    return shared | {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}


class CriterionForm(NamedTuple):
    """One criterion's part of a page: the campaign's view, its design, and the prefix of its fields."""

    campaign: Any
    design: Design
    prefix: str

    def own_fields(self, fields: Mapping[str, T]) -> Mapping[str, T]:
        """Return the fields of this criterion, without prefix, and the shared ones, from those of a form or a draft."""
        return criterion_fields(fields, self.campaign)


def criterion_forms(campaign: Any, annotator_id: int) -> list[CriterionForm]:
    """Return the parts of an annotator's page, in their order; one part where there are no criteria."""
    views = [criterion_view(campaign, number) for number in criterion_order(campaign, annotator_id)]
    return [CriterionForm(view, design_of(view), criterion_field_prefix(view)) for view in views]


# What is sent

Submission: TypeAlias = Answer | AnswerByCriterion | Form


def split_submission(submission: Submission, campaign: Any) -> list[Answer | Form]:
    """Split a submission by criterion. Raises `Invalid` (`criteria_missing`, `criterion_unknown`)."""
    if isinstance(submission, Form):
        return [
            replace(submission, fields=criterion_fields(submission.fields, view)) for view in criterion_views(campaign)
        ]
    names = criterion_names(campaign)
    by_name = submission.by_name if isinstance(submission, AnswerByCriterion) else {}
    if unknown := by_name.keys() - set(names):
        known_names = f"Its criteria are {join_names(names)}" if names else "This campaign has none"
        raise Invalid(
            f"There is no criterion “{shorten_echo(min(unknown))}”. {known_names}. Nothing was stored.",
            code="criterion_unknown",
            criteria=shorten_names(names),
        )
    if missing := [name for name in names if name not in by_name]:
        raise Invalid(
            f"This campaign asks by {join_names(names)}, and there is no answer by {join_names(missing)}. "
            "Nothing was stored.",
            code="criteria_missing",
            criteria=shorten_names(missing),
        )
    if isinstance(submission, Answer):
        return [submission]
    refuse_partly_judged(submission)
    return [submission.by_name[name] for name in names]


def parse_criterion_answer(
    campaign: Any, submission: Answer | Form, items: Sequence[int]
) -> tuple[Answer, list[float]]:
    """Return the answer by this view's criterion, and the values of the items. Raises `Invalid`, which names the
    criterion.
    """
    design = design_of(campaign)
    try:
        answer = design.parse_answer(submission, items)
        refuse_unoffered_reasons(campaign, answer, items)
        return answer, design.validated_values(answer, items)
    except Invalid as refusal:
        if not campaign.criteria:
            raise
        name = campaign.criterion_name
        raise Invalid(f"{name}: {refusal}", code=refusal.code, **refusal.details | {"criterion": name}) from refusal


def refuse_partly_judged(answers: AnswerByCriterion) -> None:
    """Raise `Invalid` (`judged_in_part`) if an item is unjudged by some criteria only."""
    if len({frozenset(answer.unjudged) for answer in answers.by_name.values()}) > 1:
        raise Invalid(
            "An item that cannot be judged has no value by any criterion. Nothing was stored.", code="judged_in_part"
        )


def criterion_order_extra(campaign: Any, annotator_id: int) -> dict[str, list[str]]:
    """Return the order of the criteria as it is stored with an answer; empty where there are none."""
    names = criterion_names(campaign)
    return {CRITERIA_ORDER_KEY: [names[number] for number in criterion_order(campaign, annotator_id)]} if names else {}


# What criteria can be


def normalise_criteria(criteria: Sequence[Criterion], campaign: Any) -> list[Criterion]:
    """Return criteria as they are stored. Raises ValueError for those that cannot be asked together."""
    if len(criteria) == 1:
        raise ValueError(f"one alone is the campaign’s question; name {MIN_CRITERIA} to {MAX_CRITERIA}, or none")
    names = [comparable_name(criterion["name"]) for criterion in criteria]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise criterion_error(number, "name", "each criterion needs another name")
    return [normalise_criterion(number, criterion, campaign) for number, criterion in enumerate(criteria)]


def comparable_name(name: str) -> str:
    """Return a form of the name that is equal for names that look alike."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


def criterion_error(number: int, field: str, message: str) -> PydanticCustomError:
    """Return the error of one setting of a criterion, by its number."""
    return PydanticCustomError("criteria", "{words}", {"words": message, "number": number, "field": field})


def normalise_criterion(number: int, criterion: Criterion, campaign: Any) -> Criterion:
    """Return a criterion with the design's settings validated. Raises ValueError."""
    ends = [criterion.get(end, getattr(campaign, end, None)) for end in ("low_label", "high_label")]
    if ends[0] is not None and ends[0] == ends[1]:
        own_end = "high_label" if "high_label" in criterion else "low_label"
        raise criterion_error(number, own_end, f"{criterion['name']}: the two ends of the scale need different labels")
    if not (own_settings := criterion.get("design_settings")):
        return with_design_settings(criterion, {})
    try:
        design = criterion_design(campaign, criterion)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        message = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in errors)
        raise criterion_error(
            number, f"design_settings.{errors[0]['loc'][0]}", f"{criterion['name']}: {message}"
        ) from None
    if list(design.always_shown) != list(design_of(campaign).always_shown):
        raise criterion_error(number, "name", f"{criterion['name']}: what every HIT shows is the same for all criteria")
    stored = design.model_dump(mode="json")
    return with_design_settings(criterion, {name: stored[name] for name in own_settings if stored[name] != ""})


def with_design_settings(criterion: Criterion, design_settings: dict[str, Any]) -> Criterion:
    """Return the criterion with these design settings, or without any if they are empty."""
    changed = criterion.copy()
    changed.pop("design_settings", None)
    return {**changed, "design_settings": design_settings} if design_settings else changed


def criterion_design(campaign: Any, criterion: Criterion) -> Design:
    """Return the campaign's design with the settings of one of its criteria."""
    return type(design_of(campaign)).model_validate(
        {**campaign.design_settings, **criterion.get("design_settings", {})}
    )


def refuse_differing_class_counts(campaign: Any) -> None:
    """Raise ValueError if criteria differ in the number of classes where a law counts classes: priors have one number
    each.
    """
    counts = {len(criterion_design(campaign, criterion).classes) for criterion in campaign.criteria}
    if counts - {len(design_of(campaign).classes)}:
        raise ValueError("this law counts labels, so every criterion needs as many labels as the campaign")


def refuse_unsuitable_grid(campaign: Any) -> None:
    """Raise ValueError if the criteria cannot be shown side by side."""
    design = design_of(campaign)
    if not design.fits_in_grid:
        raise ValueError(f"“{design.title}” has no grid; ask in turn")
    controls = campaign.items_per_hit * len(campaign.criteria)
    if controls > MAX_GRID_CONTROLS:
        raise ValueError(
            f"a grid has room for {MAX_GRID_CONTROLS} controls, not {controls}; show fewer items, or ask in turn"
        )
