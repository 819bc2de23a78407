"""Entry questions, asked once per annotator, such as the native language: a choice among several, or free text.

A researcher writes each on one line: `native_language: What is your native language? | English | German | another`.
Without choices the answer is free text. A question mark after the name makes the answer optional.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.designs.field_flags import is_blank
from app.errors import shorten_echo

QUESTION_FIELD_PREFIX = "question-"  # of form field names
QUESTION_LINE_PATTERN = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]{0,39})(?P<open>\?)?:\s+(?P<rest>\S.*)")
MAX_QUESTION_CHARACTERS = 500
MAX_ENTRY_ANSWER_CHARACTERS = 500
MAX_QUESTION_CHOICES = 50
MAX_RADIO_CHOICES = 7  # more choices are shown as a drop-down list


class EntryQuestion(NamedTuple):
    """Question asked once per annotator.

    Attributes:
        name: Name in files and exports.
        choices: Possible answers; empty for free text.
        optional: True if the answer may be empty.

    """

    name: str
    question: str
    choices: tuple[str, ...]
    optional: bool

    @property
    def field_name(self) -> str:
        return QUESTION_FIELD_PREFIX + self.name

    @property
    def has_radio_buttons(self) -> bool:
        return 0 < len(self.choices) <= MAX_RADIO_CHOICES


def parse_question_line(line: str) -> EntryQuestion:
    """Return the question that a line defines. Raises ValueError."""
    match = QUESTION_LINE_PATTERN.fullmatch(line.strip())
    if match is None:
        raise ValueError(
            f"“{shorten_echo(line)}” needs a name of letters, digits and _, a colon and a space, and the question"
        )
    question, *choices = [part.strip() for part in match["rest"].split("|")]
    if is_blank(question) or len(question) > MAX_QUESTION_CHARACTERS:
        raise ValueError(f"{match['name']}: the question needs 1 to {MAX_QUESTION_CHARACTERS} characters")
    if (
        len(choices) == 1
        or len(choices) > MAX_QUESTION_CHOICES
        or any(is_blank(choice) or len(choice) > MAX_ENTRY_ANSWER_CHARACTERS for choice in choices)
    ):
        raise ValueError(f"{match['name']}: give 2 to {MAX_QUESTION_CHOICES} choices, or none for free text")
    if len(set(choices)) < len(choices):
        raise ValueError(f"{match['name']}: give each choice only once")
    return EntryQuestion(match["name"], question, tuple(choices), bool(match["open"]))


def parse_questions_with_choices(lines: Sequence[str]) -> list[EntryQuestion]:
    """Return the questions whose answers form groups of annotators. Free text is left out: it may identify people."""
    return [question for question in parse_question_lines(lines) if question.choices]


def parse_question_lines(lines: Sequence[str]) -> list[EntryQuestion]:
    """Return the questions that the lines define. Raises ValueError, also if two have the same name."""
    questions = [parse_question_line(line) for line in lines]
    names = [question.name.casefold() for question in questions]
    if len(set(names)) < len(names):
        raise ValueError("each question needs a different name")
    return questions


def format_question_line(question: EntryQuestion) -> str:
    """Return the line that defines a question; `parse_question_line` reads it back."""
    mark = "?" if question.optional else ""
    return f"{question.name}{mark}: {' | '.join((question.question, *question.choices))}"


def find_question_line_errors(text: str) -> dict[str, str]:
    """Return the error of each wrong line of a text, by the line; a repeated name is an error of the later line."""
    errors: dict[str, str] = {}
    names: set[str] = set()
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            question = parse_question_line(line)
        except ValueError as error:
            errors[line.strip()] = str(error)
            continue
        if question.name.casefold() in names:
            errors[line.strip()] = f"{question.name}: another question has this name already"
        names.add(question.name.casefold())
    return errors
