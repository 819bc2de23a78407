"""A question that is asked once, such as of a native language: one choice of several, or free text.

A researcher writes a question on a line: `native_language: What is your native language? | English | German | another`.
Without choices the answer is free text. A question mark behind the name lets people leave it empty.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.errors import shortened
from app.fields import is_blank

FIELD = "question-"  # begins the names of a form's fields
LINE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]{0,39})(?P<open>\?)?:\s+(?P<rest>\S.*)")
LONGEST_QUESTION = 500
LONGEST_ANSWER = 500
MOST_CHOICES = 50
FEW_CHOICES = 7  # are seen at once; of more one is chosen from a list


class EntryQuestion(NamedTuple):
    """name: what files call it. choices: none where the answer is free text. optional: whether it may be left empty."""

    name: str
    question: str
    choices: tuple[str, ...]
    optional: bool

    @property
    def field(self) -> str:
        return FIELD + self.name

    @property
    def seen_at_once(self) -> bool:
        return 0 < len(self.choices) <= FEW_CHOICES


def parsed(line: str) -> EntryQuestion:
    """A question from its line. Raises ValueError."""
    found = LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError(
            f"“{shortened(line)}” needs a name of letters, digits and _, a colon and a space, and the question"
        )
    question, *choices = [part.strip() for part in found["rest"].split("|")]
    if is_blank(question) or len(question) > LONGEST_QUESTION:
        raise ValueError(f"{found['name']}: the question needs 1 to {LONGEST_QUESTION} characters")
    if (
        len(choices) == 1
        or len(choices) > MOST_CHOICES
        or any(is_blank(one) or len(one) > LONGEST_ANSWER for one in choices)
    ):
        raise ValueError(f"{found['name']}: give 2 to {MOST_CHOICES} choices, or none for free text")
    if len(set(choices)) < len(choices):
        raise ValueError(f"{found['name']}: each choice can be there only once")
    return EntryQuestion(found["name"], question, tuple(choices), bool(found["open"]))


def with_choices(lines: Sequence[str]) -> list[EntryQuestion]:
    """Those that make groups of annotators: what people write in their own words may say who they are."""
    return [one for one in of_lines(lines) if one.choices]


def of_lines(lines: Sequence[str]) -> list[EntryQuestion]:
    """Several, each of another name. Raises ValueError."""
    found = [parsed(line) for line in lines]
    names = [one.name.casefold() for one in found]
    if len(set(names)) < len(names):
        raise ValueError("each question needs another name")
    return found
