"""Sentences that accompany a result, each with a stable code for programs and the numbered things that it mentions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.errors import shorten_echo

MAX_LISTED_MENTIONS = 10


@dataclass(frozen=True, slots=True)
class Mention:
    """One or more of the things that a result numbers.

    Attributes:
        noun: Singular noun for one of them, such as "item".
        names: Names of all things of that noun, by number, if they are known.

    """

    noun: str
    numbers: Sequence[int]
    names: Sequence[str] | None = None

    def format_text(self) -> str:
        """Return 'item 3', 'items 3 and 7' or '25 items (0, 1, ...)', with names instead of numbers if they are
        known.
        """
        listed_numbers = self.numbers[:MAX_LISTED_MENTIONS]
        listed_names = [str(k) if self.names is None else f"“{shorten_echo(self.names[k])}”" for k in listed_numbers]
        if len(self.numbers) > MAX_LISTED_MENTIONS:
            return f"{len(self.numbers):,} {self.noun}s ({', '.join(listed_names)}, ...)"
        *others, last = listed_names
        return f"{self.noun}s {', '.join(others)} and {last}" if others else f"{self.noun} {last}"


class Note(str):
    """A sentence with a code and mentions. It shows their numbers; `with_names` gives it their names.

    A code never changes once released, and exactly one place in the code gives it; the sentence may change.
    """

    __slots__ = ("code", "mentions", "template")

    code: str
    template: str
    mentions: tuple[Mention, ...]

    def __new__(cls, code: str, template: str, *mentions: Mention) -> Self:
        """Make a note from a template with {0}, {1}, ... for the mentions; without mentions it is the sentence
        itself.
        """
        note = super().__new__(cls, fill_template(template, [mention.format_text() for mention in mentions]))
        note.code, note.template, note.mentions = code, template, mentions
        return note

    @property
    def about(self) -> dict[str, list[str] | list[int]]:
        """Return the mentioned things by noun: names where they are known, else numbers."""
        mentions_by_noun: dict[str, Any] = {}
        for mention in self.mentions:
            mentions_by_noun.setdefault(mention.noun, []).extend(
                mention.numbers if mention.names is None else [mention.names[number] for number in mention.numbers]
            )
        return mentions_by_noun

    def with_names(self, names: Mapping[str, Sequence[str]]) -> "Note":
        """Return the note with names, given the names of all things by noun; other nouns keep their numbers."""
        return Note(self.code, self.template, *(replace(one, names=names.get(one.noun)) for one in self.mentions))


def fill_template(template: str, mention_texts: Sequence[str]) -> str:
    """Return the template with its placeholders filled and a capital first letter; unchanged without mentions."""
    if not mention_texts:
        return template
    text = template.format(*mention_texts)
    return text[:1].upper() + text[1:]


def make_mention(noun: str, numbers_or_mask: npt.ArrayLike) -> Mention:
    """Return a mention of things by number, whole numbers (n,) or a mask (N,)."""
    array = np.asarray(numbers_or_mask)
    return Mention(noun, (np.flatnonzero(array) if array.dtype == np.bool_ else array).tolist())


def joined_mention_placeholders_text(count: int, *, first_number: int = 0) -> str:
    """Return the placeholders of `count` mentions in a template, one after another."""
    return "; ".join(f"{{{place}}}" for place in range(first_number, first_number + count))


def notes_with_names(notes: Iterable[Note], names: Mapping[str, Sequence[str]]) -> tuple[Note, ...]:
    """Return the notes with names in their mentions."""
    return tuple(note.with_names(names) for note in notes)
