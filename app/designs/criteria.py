"""Criteria: the questions that a campaign asks about each item, each with its own labels and posteriors.

Most campaigns have one criterion, without a name; others name two or more. `AskedCampaign` is what has criteria: the
base of `Campaign`, and of the rows in which the serving path reads a few columns of a campaign.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np

from app.designs.answer import TOUCH_PREFIXES, Answer, AnswerByCriterion, Form
from app.designs.criteria_settings import CriterionSettings
from app.designs.design import Design
from app.designs.playback import PLAYBACK_PREFIXES
from app.designs.registry import make_design
from app.designs.remarks import COMMENT_PREFIX, FLAG_PREFIX, CommentRequest, RemarkTarget
from app.designs.scale import MAX_POINTS
from app.designs.unjudged import UNJUDGED_PREFIX, refuse_unoffered_unjudged_reasons
from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows
from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online.law import Law, LawParameters
from app.inference.online.laws import ONLINE_LAWS

T = TypeVar("T")  # Python 3.11 has no other way

# What `responses.extra` calls the names of the criteria in the order in which they were asked.
CRITERIA_ORDER_KEY = "criteria_order"
# Prefixes of form fields that belong to all criteria together.
SHARED_FIELD_PREFIXES = (
    *(UNJUDGED_PREFIX, COMMENT_PREFIX, FLAG_PREFIX),
    *(*PLAYBACK_PREFIXES, *TOUCH_PREFIXES, "viewport"),
)


class AskedCampaign:
    """A campaign, as far as the format of its answers goes.

    Attributes:
        design_name: The name of its way of asking, a key of `DESIGNS`.
        criteria_settings: The settings of its criteria; empty for a campaign with one question.
        seed: The seed of the order in which an annotator is asked by the criteria.
        cannot_be_judged: Whether annotators may say that they cannot judge an item.
        unjudged_reasons: The reasons for that which they choose from; empty if none is asked for.

    """

    design_name: str
    design_settings: dict[str, Any]
    criteria_settings: list[CriterionSettings]
    seed: int
    cannot_be_judged: bool
    unjudged_reasons: list[str]

    @cached_property
    def design(self) -> Design:
        """Return the campaign's design, with its settings."""
        return make_design(self.design_name, self.design_settings)

    @cached_property
    def criteria(self) -> tuple["Criterion[Self]", ...]:
        """Return the criteria in order, one at least."""
        return tuple(Criterion(self, number) for number in range(max(1, len(self.criteria_settings))))

    @property
    def has_criteria(self) -> bool:
        """Return whether the campaign has several criteria, each with a name."""
        return bool(self.criteria_settings)

    @property
    def criterion_names(self) -> list[str]:
        """Return the names of the criteria, in order; empty for a campaign with one question."""
        return [settings["name"] for settings in self.criteria_settings]

    def shuffled_criteria_for_annotator(self, annotator_id: int) -> list["Criterion[Self]"]:
        """Return the criteria in the order for an annotator, by their row's id: always the same, and different between
        annotators.
        """
        if not self.has_criteria:
            return [*self.criteria]
        order = np.random.default_rng([self.seed, annotator_id]).permutation(len(self.criteria))
        return [self.criteria[number] for number in order]


class LabelledCampaign(AskedCampaign):
    """A campaign with the texts that annotators see, which a criterion may replace."""

    question: str
    low_label: str
    middle_label: str | None
    high_label: str
    items_per_hit: int


class CommentAskingCampaign(AskedCampaign):
    """A campaign with the settings that decide whether an answer needs a comment."""

    comment_on: RemarkTarget
    comment_request: CommentRequest | None
    comment_question: str | None


class ComparingCampaign(AskedCampaign):
    """A campaign with the settings that decide which of two items an answer prefers."""

    tie_margin_points: int


class LearningCampaign(ComparingCampaign):
    """A campaign with the settings of its update law."""

    update_law: str
    gamma: float
    epsilon: float


C_co = TypeVar("C_co", bound=AskedCampaign, covariant=True)


@dataclass(frozen=True)
class Criterion(Generic[C_co]):
    """One of the questions that a campaign asks about each item, by its number from 0."""

    campaign: C_co
    number: int

    @property
    def settings(self) -> CriterionSettings | None:
        """Return its own settings; None in a campaign with one question."""
        return self.campaign.criteria_settings[self.number] if self.campaign.has_criteria else None

    @property
    def name(self) -> str:
        """Return the researcher's name for it; empty in a campaign with one question."""
        return self.settings["name"] if self.settings else ""

    @cached_property
    def design(self) -> Design:
        """Return the campaign's design, with the criterion's own settings of it."""
        own_settings = self.settings.get("design_settings") if self.settings else None
        if not own_settings:
            return self.campaign.design
        return make_design(self.campaign.design_name, {**self.campaign.design_settings, **own_settings})

    @property
    def question(self: "Criterion[LabelledCampaign]") -> str:
        """Return what annotators are asked by it."""
        return self.settings["question"] if self.settings else self.campaign.question

    @property
    def low_label(self: "Criterion[LabelledCampaign]") -> str:
        """Return the label of the lower end of its scale."""
        own_label = self.settings.get("low_label") if self.settings else None
        return self.campaign.low_label if own_label is None else own_label

    @property
    def end_labels(self: "Criterion[LabelledCampaign]") -> tuple[str, str] | None:
        """Return the labels of both ends of its scale of points or ordered classes; None if it has no such scale."""
        if self.design.value_kind == "points":
            return self.low_label, self.high_label
        return (
            (self.design.classes[0], self.design.classes[-1]) if self.design.value_kind == "ordered_classes" else None
        )

    @property
    def middle_label(self: "Criterion[LabelledCampaign]") -> str | None:
        own_label = self.settings.get("middle_label") if self.settings else None
        return self.campaign.middle_label if own_label is None else own_label

    @property
    def high_label(self: "Criterion[LabelledCampaign]") -> str:
        """Return the label of the upper end of its scale."""
        own_label = self.settings.get("high_label") if self.settings else None
        return self.campaign.high_label if own_label is None else own_label

    @property
    def items_per_hit(self: "Criterion[LabelledCampaign]") -> int:
        """Return the number of items of a HIT, the same for all criteria."""
        return self.campaign.items_per_hit

    @property
    def law(self: "Criterion[LearningCampaign]") -> Law:
        """Return the campaign's update law, set up for the classes of the criterion's design if it has any."""
        law = ONLINE_LAWS[self.campaign.update_law]
        return law.law_with_class_count(len(self.design.classes)) if law.reads in CLASS_KINDS else law

    @property
    def tie_margin(self: "Criterion[ComparingCampaign]") -> float:
        """Return the distance of scores in [0, 1] up to which they are a tie. Only points have one: ranks are equal or
        not.
        """
        return self.campaign.tie_margin_points / MAX_POINTS if self.design.value_kind == "points" else 0.0

    @property
    def law_parameters(self: "Criterion[LearningCampaign]") -> LawParameters:
        """Return the parameters of the law."""
        campaign = self.campaign
        return LawParameters(campaign.gamma, campaign.epsilon, self.tie_margin, ties=self.design.equal_means == "tie")

    @property
    def field_prefix(self) -> str:
        """Return the prefix of its fields in a form; empty in a campaign with one question."""
        return f"c{self.number}-" if self.campaign.has_criteria else ""

    def own_unprefixed_and_shared_fields(self, fields: Mapping[str, T]) -> Mapping[str, T]:
        """Return its own fields of a form or a draft, without prefix, and the shared ones."""
        if not self.campaign.has_criteria:
            return fields
        prefix = self.field_prefix
        shared = {name: value for name, value in fields.items() if name.startswith(SHARED_FIELD_PREFIXES)}
        return shared | {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}

    def parse_answer(self, submission: Answer | Form, items: Sequence[int]) -> tuple[Answer, list[float]]:
        """Return the answer by this criterion, and the values of the items. Raises `Invalid`, which names the
        criterion.
        """
        try:
            answer = self.design.parse_answer(submission, items)
            refuse_unoffered_unjudged_reasons(self.campaign, answer, items)
            return answer, self.design.checked_values_in_item_order_or_refuse(answer, items)
        except Invalid as refusal:
            if not self.name or (self.design.ticks_criteria and isinstance(submission, Form)):
                raise  # a form asks about all labels at once
            message, details = f"{self.name}: {refusal}", refusal.details | {"criterion": self.name}
            raise Invalid(message, code=refusal.code, **details) from refusal


# What is sent

Submission: TypeAlias = Answer | AnswerByCriterion | Form


def submission_of_each_criterion_or_refuse(submission: Submission, campaign: AskedCampaign) -> list[Answer | Form]:
    """Split a submission by criterion. Raises `Invalid` (`criteria_missing`, `criterion_unknown`,
    `answer_impossible`).
    """
    if isinstance(submission, Form):
        prefixes = [criterion.field_prefix for criterion in campaign.criteria]
        fields = campaign.design.fields_with_unticked_labels(submission.fields, prefixes)
        return [
            replace(submission, fields=criterion.own_unprefixed_and_shared_fields(fields))
            for criterion in campaign.criteria
        ]
    names = campaign.criterion_names
    by_name = submission.by_name if isinstance(submission, AnswerByCriterion) else {}
    if unknown := by_name.keys() - set(names):
        known_names = f"Its criteria are {join_names(names)}" if names else "This campaign has none"
        raise Invalid(
            f"There is no criterion “{shorten_echo(min(unknown))}”. {known_names}. Nothing was stored.",
            code="criterion_unknown",
            criteria=shortened_names_that_message_shows(names),
        )
    if missing := [name for name in names if name not in by_name]:
        raise Invalid(
            f"This campaign asks about {join_names(names)}, but there is no answer for {join_names(missing)}. "
            "Nothing was stored.",
            code="criteria_missing",
            criteria=shortened_names_that_message_shows(missing),
        )
    if isinstance(submission, Answer):
        return [submission]
    refuse_items_judged_by_some_criteria(submission)
    return [submission.by_name[name] for name in names]


def refuse_items_judged_by_some_criteria(answers: AnswerByCriterion) -> None:
    """Raise `Invalid` (`judged_in_part`) if an item is unjudged by some criteria only."""
    if len({frozenset(answer.unjudged) for answer in answers.by_name.values()}) > 1:
        raise Invalid(
            "An item that cannot be judged has no value for any criterion. Nothing was stored.", code="judged_in_part"
        )


def criteria_order_extra_or_empty(campaign: AskedCampaign, annotator_id: int) -> dict[str, list[str]]:
    """Return the order of the criteria as it is stored with an answer; empty for a campaign with one question."""
    if not campaign.has_criteria:
        return {}
    return {
        CRITERIA_ORDER_KEY: [criterion.name for criterion in campaign.shuffled_criteria_for_annotator(annotator_id)]
    }
