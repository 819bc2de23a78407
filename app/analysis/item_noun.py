"""Word for what gets a score in sentences about answers: item or system."""

import re
from collections.abc import Iterable

from app.analysis.result_types import Answers
from app.inference.ground.notes import Note

ITEM_WORD = re.compile(r"\b([Ii])tem(s?)\b")


def noun_of_answers(answers: Answers) -> str:
    """Return `system` if the items are systems, else `item`."""
    return "system" if answers.items_are_systems else "item"


def text_with_noun(text: str, answers: Answers) -> str:
    """Return a text about items in the words for these answers."""
    if not answers.items_are_systems:
        return text
    return ITEM_WORD.sub(lambda match: ("S" if match[1] == "I" else "s") + "ystem" + match[2], text)


def notes_with_noun(notes: Iterable[Note], answers: Answers) -> tuple[Note, ...]:
    """Return notes about items in the words for these answers; codes stay."""
    return tuple(Note(note.code, text_with_noun(note.template, answers), *note.mentions) for note in notes)
