"""Questions step: the entry questions, asked once before the first HIT."""

from collections.abc import Mapping
from typing import Any

from app.annotation.onboarding.entry_questions import (
    MAX_ENTRY_ANSWER_CHARACTERS,
    MAX_NUMBER,
    EntryQuestion,
    NumberLimits,
    format_number,
    parse_question_lines,
)
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.designs.design import CONTROL_CHARACTER
from app.designs.number_parsing import parse_localized_decimal_or_refuse
from app.errors import Invalid, join_names, shorten_echo

QUESTIONS_STEP = "questions"


def has_entry_questions(settings: VisitSettings, platform: Platform) -> bool:
    return bool(settings.questions) and platform.has_page


def question_results_that_still_count(history: VisitHistory) -> list[StepResult]:
    """Return the results of this step, without those of a person who left, lost the place, and is asked again."""
    return [result for result in history.results_of_step(QUESTIONS_STEP) if result.outcome != "lapsed"]


def has_answered_questions(_settings: VisitSettings, history: VisitHistory) -> bool:
    """Return whether the annotator has answered and was not screened out, or has worked.

    The launch fixes the questions, so those who have worked were asked.
    """
    return history.has_worked or any(
        result.outcome == "passed" for result in question_results_that_still_count(history)
    )


def parse_questions_form_or_none_if_answered(
    form: Mapping[str, str], settings: VisitSettings, history: VisitHistory
) -> StepResult | None:
    """Return the answers, without empty ones; None if the annotator has answered already: the first answers count.

    What was entered for a question that the other answers leave out is ignored.

    Raises:
        Invalid: `question_unanswered`, `answer_unknown`, `answer_not_a_number`, `answer_out_of_range`,
            `answer_too_long`; details: `question`.

    """
    if question_results_that_still_count(history):
        return None
    questions = parse_question_lines(settings.questions)
    answers: dict[str, str] = {}
    for question in questions:
        is_asked = question.is_asked_after(answers)
        entered = form.get(question.field_name, "").strip()
        answers[question.name] = entry_answer_or_refuse(question, entered) if is_asked else ""
    is_screened_out = any(question.screens_out(answers[question.name]) for question in questions)
    return StepResult(
        QUESTIONS_STEP,
        history.last_result_version_or_zero(QUESTIONS_STEP) + 1,
        "failed" if is_screened_out else "passed",
        {name: answer for name, answer in answers.items() if answer},
    )


def entry_answer_or_refuse(question: EntryQuestion, text: str) -> str:
    """Return the answer to store; empty if an optional question was left open."""
    name = question.name
    if not text and not question.optional:
        raise Invalid(
            f"Please answer “{shorten_echo(question.question)}” too. What you entered is kept.",
            code="question_unanswered",
            question=name,
        )
    if text and question.choices and text not in question.choices:
        raise Invalid(
            f"The answer to “{shorten_echo(question.question)}” must be one of {join_names(question.choices)}.",
            code="answer_unknown",
            question=name,
        )
    if len(text) > MAX_ENTRY_ANSWER_CHARACTERS or CONTROL_CHARACTER.search(text):
        raise Invalid(
            f"The answer to “{shorten_echo(question.question)}” must have {MAX_ENTRY_ANSWER_CHARACTERS} characters at "
            "most, and none that cannot be seen.",
            code="answer_too_long",
            question=name,
        )
    if text and question.number is not None:
        return format_number(number_within_limits_or_refuse(question, question.number, text))
    return text


def number_within_limits_or_refuse(question: EntryQuestion, limits: NumberLimits, text: str) -> float:
    """Parse the number in an answer. Raises `Invalid` if it is no number or outside the question's limits."""
    name, asked = question.name, shorten_echo(question.question)
    try:
        number = parse_localized_decimal_or_refuse(text)
    except ValueError:
        message = f"The answer to “{asked}” must be a number. What you entered is kept."
        raise Invalid(message, code="answer_not_a_number", question=name) from None
    if not (abs(number) <= MAX_NUMBER and limits.contains(number)):
        message = f"The answer to “{asked}” must be {possible_numbers_in_words(limits)}. What you entered is kept."
        raise Invalid(message, code="answer_out_of_range", question=name)
    return number


def possible_numbers_in_words(limits: NumberLimits) -> str:
    """Return the possible numbers in words."""
    least = -MAX_NUMBER if limits.minimum is None else limits.minimum
    greatest = MAX_NUMBER if limits.maximum is None else limits.maximum
    return f"from {format_number(least)} to {format_number(greatest)}"


def questions_template_context(settings: VisitSettings, history: VisitHistory) -> dict[str, Any]:
    outcomes = {result.outcome for result in question_results_that_still_count(history)}
    return {
        "questions": parse_question_lines(settings.questions),
        "outcome": "screened_out" if "failed" in outcomes else "quota_full" if "full" in outcomes else None,
    }


def results_of_screened_out_annotator(settings: VisitSettings, _version: int) -> list[StepResult]:
    """Return the result of an annotator who cannot take part; none if no answer screens people out."""
    screens = any(question.has_screening_answer for question in parse_question_lines(settings.questions))
    return [StepResult(QUESTIONS_STEP, 1, "failed")] if screens else []


def results_of_annotator_over_quota(settings: VisitSettings, _version: int) -> list[StepResult]:
    """Return the result of an annotator who finds a quota full; none if there are no quotas."""
    return [StepResult(QUESTIONS_STEP, 1, "full")] if settings.quotas else []


STEP = VisitStep(
    QUESTIONS_STEP,
    has_entry_questions,
    has_answered_questions,
    parse_questions_form_or_none_if_answered,
    questions_template_context,
    {
        "Screened out by a question": results_of_screened_out_annotator,
        "Quota is full": results_of_annotator_over_quota,
    },
)
