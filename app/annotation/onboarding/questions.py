"""Questions step: the entry questions, asked once before the first HIT."""

from collections.abc import Mapping
from typing import Any

from app.annotation.onboarding.entry_questions import MAX_ENTRY_ANSWER_CHARACTERS, EntryQuestion, parse_question_lines
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.designs.design import CONTROL_CHARACTER
from app.errors import Invalid, join_names, shorten_echo

QUESTIONS_STEP = "questions"


def has_entry_questions(settings: VisitSettings, platform: Platform) -> bool:
    return bool(settings.questions) and platform.has_page


def has_answered_questions(_settings: VisitSettings, history: VisitHistory) -> bool:
    """Return whether the annotator has answered, or has worked: the launch fixes the questions, so they were asked."""
    return history.has_worked or bool(history.results_of_step(QUESTIONS_STEP))


def parse_questions_form(form: Mapping[str, str], settings: VisitSettings, _history: VisitHistory) -> StepResult:
    """Return the answers, without empty ones.

    Raises:
        Invalid: `question_unanswered`, `answer_unknown`, `answer_too_long`; details: `question`.

    """
    answers = {
        question.name: checked_entry_answer(question, form.get(question.field_name, "").strip())
        for question in parse_question_lines(settings.questions)
    }
    return StepResult(QUESTIONS_STEP, 1, "passed", {name: answer for name, answer in answers.items() if answer})


def checked_entry_answer(question: EntryQuestion, text: str) -> str:
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
    return text


def questions_context(settings: VisitSettings, _history: VisitHistory) -> dict[str, Any]:
    return {"questions": parse_question_lines(settings.questions)}


STEP = VisitStep(QUESTIONS_STEP, has_entry_questions, has_answered_questions, parse_questions_form, questions_context)
