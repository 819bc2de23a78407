"""Criteria: several questions about the same items, each with its own labels and posteriors.

A criterion of a campaign reads like a campaign with another question. So whoever reads a campaign's row, its design,
its law, its pages, takes `for_criterion` of it unchanged. A campaign without criteria has one that nobody names:
itself.
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
from app.designs.design import Design, plain_text
from app.designs.registry import design_of
from app.designs.remarks import COMMENT, FLAG
from app.designs.unjudged import FIELD as UNJUDGED
from app.designs.unjudged import refuse_unoffered
from app.errors import Invalid, NotFound, listed, shortened, some_of
from app.fields import OneLine

T = TypeVar("T")  # Python 3.11 has no other way

FEWEST, MOST = 2, 5
GRID = "grid"
MOST_IN_GRID = 10  # controls that are seen at once
EXTRA = "criteria_order"  # what `responses.extra` calls it: the names in the order in which they were asked
OF_ALL = (UNJUDGED, COMMENT, FLAG, "viewport")  # begins the fields of a form that are of no criterion alone

Plain = BeforeValidator(plain_text)
Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), Plain]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine, Plain]


class Criterion(TypedDict):
    """What is asked by one criterion. What it does not say is as the campaign says."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # where Pydantic looks for it

    name: Annotated[Name, Field(title="Name", description="In a word or two, such as: adequacy.")]
    question: Annotated[Question, Field(title="Question", description="What annotators are asked by it.")]
    low_label: NotRequired[Annotated[Name, Field(title="Label at 0", description="Empty: the campaign’s.")]]
    middle_label: NotRequired[Annotated[Name, Field(title="Label at 50", description="Empty: the campaign’s.")]]
    high_label: NotRequired[Annotated[Name, Field(title="Label at 100", description="Empty: the campaign’s.")]]
    design_settings: NotRequired[
        Annotated[
            dict[str, Any],
            Field(
                title="Settings of the way of asking",
                description="Those that differ from the campaign’s, by name, such as the labels of an ordinal scale.",
            ),
        ]
    ]


class OfCriterion:
    """A campaign's row, or its settings, with the question, the labels and the design's settings of one criterion.

    criterion: its number, from 0 on. criterion_name: what the researcher calls it.
    """

    def __init__(self, campaign: Any, criterion: int) -> None:
        self.campaign: Any = campaign.campaign if isinstance(campaign, OfCriterion) else campaign
        said = self.campaign.criteria[criterion]
        self.criterion, self.criterion_name = criterion, said["name"]
        self.question = said["question"]
        for label in ("low_label", "middle_label", "high_label"):
            if label in said:
                setattr(self, label, said[label])
        self.design_settings = {**self.campaign.design_settings, **said.get("design_settings", {})}

    def __getattr__(self, name: str) -> Any:
        """All else is the campaign's."""
        return getattr(self.campaign, name)


def criteria_of(campaign: Any) -> list[Any]:
    """A campaign by each of its criteria, in their order; of one without criteria, itself."""
    return [OfCriterion(campaign, number) for number in range(len(campaign.criteria))] or [campaign]


def for_criterion(campaign: Any, number: int) -> Any:
    """A campaign by one of its criteria."""
    return OfCriterion(campaign, number) if campaign.criteria else campaign


def number_of(campaign: Any) -> int:
    """Which of its criteria a campaign is read by; 0 for one that has none."""
    number: int = getattr(campaign, "criterion", 0)
    return number


def key_of(campaign: Any) -> tuple[int, int]:
    """Of a campaign, by the criterion by which it is read: what is kept of each is kept under it."""
    return campaign.id, number_of(campaign)


def names_of(campaign: Any) -> list[str]:
    """What the criteria are called, in their order; none where there are none."""
    return [criterion["name"] for criterion in campaign.criteria]


def asked_criterion(campaign: Any) -> int | None:
    """The number of the criterion that decides what is asked; None where all do together."""
    if not campaign.criteria:
        return 0
    return names_of(campaign).index(campaign.asked_by) if campaign.asked_by else None


def named(campaign: Any, name: str | None) -> Any:
    """A campaign by the criterion of this name, by the first where none is named. Raises `NotFound`
    (`criterion_not_found`).
    """
    if not name:
        return for_criterion(campaign, 0)
    names = names_of(campaign)
    if name not in names:
        there_are = f"Its criteria are {listed(names)}" if names else "It has no criteria"
        raise NotFound(
            f"“{campaign.name}” has no criterion “{shortened(name)}”. {there_are}.",
            code="criterion_not_found",
            criteria=some_of(names),
        )
    return for_criterion(campaign, names.index(name))


def order_for(campaign: Any, annotator: int) -> list[int]:
    """In which order an annotator, by their row's id, is asked by the criteria: always the same, of each another."""
    count = len(campaign.criteria)
    return np.random.default_rng([campaign.seed, annotator]).permutation(count).tolist() if count else [0]


def prefix_of(campaign: Any) -> str:
    """What the names of a form's fields begin with that are of the criterion by which a campaign is read."""
    return f"c{number_of(campaign)}-" if campaign.criteria else ""


def part_of(fields: Mapping[str, T], campaign: Any) -> Mapping[str, T]:
    """The fields of a form as if it asked by the criterion alone by which a campaign is read, with those of all."""
    if not campaign.criteria:
        return fields
    own = prefix_of(campaign)
    common = {name: value for name, value in fields.items() if name.startswith(OF_ALL)}
    return common | {name.removeprefix(own): value for name, value in fields.items() if name.startswith(own)}


class AskedBy(NamedTuple):
    """What a page asks by one criterion: the campaign as it reads by that, its design, and with what the names of its
    fields begin.
    """

    campaign: Any
    design: Design
    prefix: str

    def part(self, fields: Mapping[str, T]) -> Mapping[str, T]:
        """Of fields of a form, or of a draft, those of this criterion and of all, as if it asked by this alone."""
        return part_of(fields, self.campaign)


def asked_of(campaign: Any, annotator: int) -> list[AskedBy]:
    """What a page asks an annotator, by their row's id, in their order; once where there are no criteria."""
    views = [for_criterion(campaign, number) for number in order_for(campaign, annotator)]
    return [AskedBy(view, design_of(view), prefix_of(view)) for view in views]


# What is sent

Sent: TypeAlias = Answer | AnswerByCriterion | Form


def parts_of(sent: Sent, campaign: Any) -> list[Answer | Form]:
    """What was sent, by each criterion. Raises `Invalid` (`criteria_missing`, `criterion_unknown`)."""
    if isinstance(sent, Form):
        return [replace(sent, fields=part_of(sent.fields, view)) for view in criteria_of(campaign)]
    names = names_of(campaign)
    by_name = sent.by_name if isinstance(sent, AnswerByCriterion) else {}
    if unknown := by_name.keys() - set(names):
        known = f"Its criteria are {listed(names)}" if names else "This campaign has none"
        raise Invalid(
            f"There is no criterion “{shortened(min(unknown))}”. {known}. Nothing was stored.",
            code="criterion_unknown",
            criteria=some_of(names),
        )
    if missing := [name for name in names if name not in by_name]:
        raise Invalid(
            f"This campaign asks by {listed(names)}, and nothing is said by {listed(missing)}. Nothing was stored.",
            code="criteria_missing",
            criteria=some_of(missing),
        )
    if isinstance(sent, Answer):
        return [sent]
    refuse_judged_in_part(sent)
    return [sent.by_name[name] for name in names]


def answer_of(campaign: Any, sent: Answer | Form, items: Sequence[int]) -> tuple[Answer, list[float]]:
    """What was sent by the criterion that a campaign is read by, and the values of the items. Raises `Invalid`, which
    names the criterion.
    """
    design = design_of(campaign)
    try:
        answer = design.read(sent, items)
        refuse_unoffered(campaign, answer, items)
        return answer, design.values(answer, items)
    except Invalid as refusal:
        if not campaign.criteria:
            raise
        name = campaign.criterion_name
        raise Invalid(f"{name}: {refusal}", code=refusal.code, **refusal.details | {"criterion": name}) from refusal


def refuse_judged_in_part(sent: AnswerByCriterion) -> None:
    """What cannot be judged by one criterion cannot by any. Raises `Invalid` (`judged_in_part`)."""
    if len({frozenset(answer.unjudged) for answer in sent.by_name.values()}) > 1:
        raise Invalid(
            "An item that cannot be judged has no value by any criterion. Nothing was stored.", code="judged_in_part"
        )


def order_said(campaign: Any, annotator: int) -> dict[str, list[str]]:
    """The order of the criteria, as it lies beside the values of an answer; nothing where there are none."""
    names = names_of(campaign)
    return {EXTRA: [names[number] for number in order_for(campaign, annotator)]} if names else {}


# What criteria can be


def settled(criteria: Sequence[Criterion], campaign: Any) -> list[Criterion]:
    """Criteria as they are stored. Raises ValueError for those that cannot be asked together."""
    if len(criteria) == 1:
        raise ValueError(f"one alone is the campaign’s question; name {FEWEST} to {MOST}, or none")
    names = [seen_as(criterion["name"]) for criterion in criteria]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise amiss(number, "name", "each criterion needs another name")
    return [settled_one(number, criterion, campaign) for number, criterion in enumerate(criteria)]


def seen_as(name: str) -> str:
    """What two names have in common that look alike."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


def amiss(number: int, name: str, words: str) -> PydanticCustomError:
    """What is wrong with one criterion, by its number, and with which of its settings."""
    return PydanticCustomError("criteria", "{words}", {"words": words, "number": number, "field": name})


def settled_one(number: int, criterion: Criterion, campaign: Any) -> Criterion:
    """With the settings of the way of asking as that understands them. Raises ValueError."""
    ends = [criterion.get(end, getattr(campaign, end, None)) for end in ("low_label", "high_label")]
    if ends[0] is not None and ends[0] == ends[1]:
        own_end = "high_label" if "high_label" in criterion else "low_label"
        raise amiss(number, own_end, f"{criterion['name']}: the two ends of the scale need different labels")
    if not (own := criterion.get("design_settings")):
        return stating(criterion, {})
    try:
        asked = design_with(campaign, criterion)
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong)
        raise amiss(number, f"design_settings.{wrong[0]['loc'][0]}", f"{criterion['name']}: {said}") from None
    if list(asked.always_shown) != list(design_of(campaign).always_shown):
        raise amiss(number, "name", f"{criterion['name']}: what every HIT shows is the same for all criteria")
    told = asked.model_dump(mode="json")
    return stating(criterion, {name: told[name] for name in own if told[name] != ""})


def stating(criterion: Criterion, design_settings: dict[str, Any]) -> Criterion:
    """With these settings of the way of asking; who states none has none."""
    stated = criterion.copy()
    stated.pop("design_settings", None)
    return {**stated, "design_settings": design_settings} if design_settings else stated


def design_with(campaign: Any, criterion: Criterion) -> Design:
    """The campaign's design as one of its criteria has it."""
    return type(design_of(campaign)).model_validate(
        {**campaign.design_settings, **criterion.get("design_settings", {})}
    )


def refuse_unlike_classes(campaign: Any) -> None:
    """Where a law counts classes, a prior has a number for each. Raises ValueError."""
    counts = {len(design_with(campaign, criterion).classes) for criterion in campaign.criteria}
    if counts - {len(design_of(campaign).classes)}:
        raise ValueError("this law counts labels, so every criterion needs as many labels as the campaign")


def refuse_grid(campaign: Any) -> None:
    """Raises ValueError where criteria cannot stand beside each other."""
    design = design_of(campaign)
    if not design.stands_in_grid:
        raise ValueError(f"“{design.title}” has no grid; ask in turn")
    controls = campaign.items_per_hit * len(campaign.criteria)
    if controls > MOST_IN_GRID:
        raise ValueError(
            f"a grid has room for {MOST_IN_GRID} controls, not {controls}; show fewer items, or ask in turn"
        )
