"""What annotators are asked once before the start, and what they answer."""

from collections.abc import Mapping
from typing import Any

from app.crowd.platform import Platform
from app.designs.design import CONTROL
from app.errors import Invalid, listed, shortened
from app.visit.asked_once import LONGEST_ANSWER, EntryQuestion, of_lines
from app.visit.settings import VisitSettings
from app.visit.step import Step, Taken, VisitFacts

NAME = "questions"


def applies(settings: VisitSettings, platform: Platform) -> bool:
    return bool(settings.questions) and platform.has_page


def passed(_settings: VisitSettings, facts: VisitFacts) -> bool:
    """The launch fixes them, so whoever works has answered."""
    return facts.begun or bool(facts.of(NAME))


def take(sent: Mapping[str, str], settings: VisitSettings, _facts: VisitFacts) -> Taken:
    """Raises `Invalid`: `question_unanswered`, `answer_unknown`, `answer_too_long`; details: `question`."""
    answers = {one.name: answer_to(one, sent.get(one.field, "").strip()) for one in of_lines(settings.questions)}
    return Taken(NAME, 1, "passed", {name: answer for name, answer in answers.items() if answer})


def answer_to(question: EntryQuestion, said: str) -> str:
    """As it is kept; empty where it was left so."""
    name = question.name
    if not said and not question.optional:
        raise Invalid(
            f"Please answer “{shortened(question.question)}” too. What you entered is kept.",
            code="question_unanswered",
            question=name,
        )
    if said and question.choices and said not in question.choices:
        raise Invalid(
            f"The answer to “{shortened(question.question)}” must be one of {listed(question.choices)}.",
            code="answer_unknown",
            question=name,
        )
    if len(said) > LONGEST_ANSWER or CONTROL.search(said):
        raise Invalid(
            f"The answer to “{shortened(question.question)}” must have {LONGEST_ANSWER} characters at most, and none "
            "that cannot be seen.",
            code="answer_too_long",
            question=name,
        )
    return said


def shown(settings: VisitSettings, _facts: VisitFacts) -> dict[str, Any]:
    return {"questions": of_lines(settings.questions)}


STEP = Step(NAME, applies, passed, take, shown)
