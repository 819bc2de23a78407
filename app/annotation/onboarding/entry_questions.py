"""A question that is asked once, such as of a native language: one choice of several, or free text.

A researcher writes a question on a line: `native_language: What is your native language? | English | German | another`.
Without choices the answer is free text. A question mark behind the name lets people leave it empty.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.errors import shorten_echo
from app.field_flags import is_blank

QUESTION_FIELD_PREFIX = "question-"  # begins the names of a form's fields
QUESTION_LINE_PATTERN = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]{0,39})(?P<open>\?)?:\s+(?P<rest>\S.*)")
MAX_QUESTION_CHARACTERS = 500
MAX_ENTRY_ANSWER_CHARACTERS = 500
MAX_QUESTION_CHOICES = 50
MAX_RADIO_CHOICES = 7  # are seen at once; of more one is chosen from a list


class EntryQuestion(NamedTuple):
    """name: what files call it. choices: none where the answer is free text. optional: whether it may be left empty."""

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
    """A question from its line. Raises ValueError."""
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
        or any(is_blank(one) or len(one) > MAX_ENTRY_ANSWER_CHARACTERS for one in choices)
    ):
        raise ValueError(f"{match['name']}: give 2 to {MAX_QUESTION_CHOICES} choices, or none for free text")
    if len(set(choices)) < len(choices):
        raise ValueError(f"{match['name']}: each choice can be there only once")
    return EntryQuestion(match["name"], question, tuple(choices), bool(match["open"]))


def questions_with_choices(lines: Sequence[str]) -> list[EntryQuestion]:
    """Those that make groups of annotators: what people write in their own words may say who they are."""
    return [one for one in parse_question_lines(lines) if one.choices]


def parse_question_lines(lines: Sequence[str]) -> list[EntryQuestion]:
    """Several, each of another name. Raises ValueError."""
    questions = [parse_question_line(line) for line in lines]
    names = [one.name.casefold() for one in questions]
    if len(set(names)) < len(names):
        raise ValueError("each question needs another name")
    return questions
