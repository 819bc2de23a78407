"""An answer as it was submitted, turned into the values of its HIT's items and checks by the campaign's criteria."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.annotation.hits import remarks
from app.annotation.hits.answer_parameters import AnswerableHit
from app.designs.answer import Answer, AnswerByCriterion, Form
from app.designs.criteria import (
    AskedCampaign,
    CommentAskingCampaign,
    Criterion,
    Submission,
    submission_of_each_criterion_or_refuse,
)
from app.designs.remarks import numbers_with_value, refuse_missing_comments
from app.quality.check_positions import PlacedCheck, shown_numbers_of_items_and_checks
from app.selection.segments import (
    items_of_hit_with_distinct_outputs,
    value_by_item_with_equal_outputs_filled_in,
    value_of_each_item_by_its_shown_item,
)


@dataclass(frozen=True)
class ParsedAnswers:
    """The answers to a HIT by each of the campaign's criteria.

    Attributes:
        answers: The answers about the HIT's items.
        item_values: Values of the HIT's items, by each criterion.
        shown_values: Values of all items and checks as shown, by each criterion; empty for a HIT without checks.

    """

    answers: Sequence[Answer]
    item_values: Sequence[list[float]]
    shown_values: Sequence[list[float]]

    @property
    def stored_values(self) -> list[float]:
        """The values of the items, one criterion after the other."""
        return [value for values in self.item_values for value in values]


def parse_answers_or_refuse(
    campaign: CommentAskingCampaign, hit: AnswerableHit, submitted: Submission, placed_checks: Sequence[PlacedCheck]
) -> ParsedAnswers:
    """Return the answers to a HIT's items and checks.

    Raises `Invalid`: what designs refuse, and `comment_missing`.
    """
    shown_values: list[list[float]] = []
    if placed_checks:
        submitted, shown_values = parse_answer_without_checks_and_shown_values(campaign, hit, submitted, placed_checks)
    parsed = parse_answers_and_values_of_all_criteria(campaign, hit, submitted)
    answers, item_values = [answer for answer, _ in parsed], [values for _, values in parsed]
    if placed_checks:
        judged = numbers_with_value(shown_numbers(hit, placed_checks), shown_values[0])
    else:
        judged = numbers_with_value(hit.hit_items, item_values[0])
    refuse_missing_comments(campaign, answers[0].remarks, judged)
    return ParsedAnswers(answers, item_values, shown_values)


def parse_answer_without_checks_and_shown_values(
    campaign: AskedCampaign, hit: AnswerableHit, submitted: Submission, placed_checks: Sequence[PlacedCheck]
) -> tuple[Answer | AnswerByCriterion, list[list[float]]]:
    """Return the answer on a HIT's items alone, and by each criterion the values of all items and checks as shown.

    Raises `Invalid`.
    """
    shown = shown_numbers(hit, placed_checks)
    parts = submission_of_each_criterion_or_refuse(submitted, campaign)
    parsed = [criterion.parse_answer(part, shown) for criterion, part in zip(campaign.criteria, parts, strict=True)]
    answers = [answer_without_placed_checks(hit, answer, placed_checks) for answer, _ in parsed]
    without_checks = (
        AnswerByCriterion(dict(zip(campaign.criterion_names, answers, strict=True)))
        if campaign.has_criteria
        else answers[0]
    )
    return without_checks, [values for _, values in parsed]


def answer_without_placed_checks(hit: AnswerableHit, answer: Answer, placed_checks: Sequence[PlacedCheck]) -> Answer:
    """Return an answer without its values of checks."""
    items = {*hit.hit_items}
    item_values = {number: value for number, value in answer.values.items() if number in items}
    unjudged_items = {number: reason for number, reason in answer.unjudged.items() if number in items}
    check_reasons = {
        check.check_number: answer.unjudged[check.shown_number]
        for check in placed_checks
        if check.shown_number in answer.unjudged
    }
    return replace(answer, values=item_values, unjudged=unjudged_items, unjudged_checks=check_reasons)


def shown_numbers(hit: AnswerableHit, placed_checks: Sequence[PlacedCheck]) -> list[int]:
    """Return the numbers under which the HIT shows its items and checks."""
    shown_items = items_of_hit_with_distinct_outputs(hit.hit_items, hit.shown_as)
    return shown_numbers_of_items_and_checks(shown_items, placed_checks)


def parse_answers_and_values_of_all_criteria(
    campaign: AskedCampaign, hit: AnswerableHit, submitted: Submission
) -> list[tuple[Answer, list[float]]]:
    """Return the answer and the values of the HIT's items, by each of the campaign's criteria. Raises `Invalid`."""
    parts = submission_of_each_criterion_or_refuse(submitted, campaign)
    if not hit.hit_items:  # a HIT of checks
        return [(part, []) for part in parts if isinstance(part, Answer)]
    return [
        parse_answer_and_values_of_criterion(criterion, hit, part)
        for criterion, part in zip(campaign.criteria, parts, strict=True)
    ]


def parse_answer_and_values_of_criterion(
    criterion: Criterion[AskedCampaign], hit: AnswerableHit, submitted: Answer | Form
) -> tuple[Answer, list[float]]:
    """Return the answer and the values of the HIT's items, by one criterion. Raises `Invalid`."""
    shown = items_of_hit_with_distinct_outputs(hit.hit_items, hit.shown_as)
    answer, values = criterion.parse_answer(submitted, shown)
    shown_values = dict(zip(shown, values, strict=True))
    if hit.shown_as:
        answer = replace(
            answer,
            unjudged=value_by_item_with_equal_outputs_filled_in(answer.unjudged, hit.hit_items, hit.shown_as),
            remarks=remarks.remarks_copied_to_equal_outputs(answer.remarks, hit.hit_items, hit.shown_as),
        )
    return answer, value_of_each_item_by_its_shown_item(shown_values, hit.hit_items, hit.shown_as)
