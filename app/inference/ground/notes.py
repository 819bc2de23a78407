"""Sentences beside a result, each with a stable code for programs and the numbered things that it speaks of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.errors import shortened

MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class Mention:
    """Some of the things that a result numbers, at least one. noun: what one of them is called, such as "item".

    names: of all things of that noun, by number, if they are known.
    """

    noun: str
    numbers: Sequence[int]
    names: Sequence[str] | None = None

    def words(self) -> str:
        """'item 3', 'items 3 and 7' or '25 items (0, 1, ...)'; with names in the place of numbers, if there are."""
        some = self.numbers[:MOST_LISTED]
        called = [str(k) if self.names is None else f"“{shortened(self.names[k])}”" for k in some]
        if len(self.numbers) > MOST_LISTED:
            return f"{len(self.numbers):,} {self.noun}s ({', '.join(called)}, ...)"
        *others, last = called
        return f"{self.noun}s {', '.join(others)} and {last}" if others else f"{self.noun} {last}"


class Note(str):
    """A sentence with a code and mentions. It reads with their numbers, and `named` gives it their names.

    A code never changes once released, and one place alone gives it; the sentence may change.
    """

    __slots__ = ("code", "mentions", "template")

    code: str
    template: str
    mentions: tuple[Mention, ...]

    def __new__(cls, code: str, template: str, *mentions: Mention) -> Self:
        """template: has {0}, {1}, ... in the place of each mention; without any it is the sentence as it is."""
        note = super().__new__(cls, sentence(template, [mention.words() for mention in mentions]))
        note.code, note.template, note.mentions = code, template, mentions
        return note

    @property
    def about(self) -> dict[str, list[str] | list[int]]:
        """By noun what the note speaks of: names where they are known, else numbers."""
        told: dict[str, Any] = {}
        for one in self.mentions:
            told.setdefault(one.noun, []).extend(
                one.numbers if one.names is None else [one.names[number] for number in one.numbers]
            )
        return told

    def named(self, names: Mapping[str, Sequence[str]]) -> "Note":
        """names: of all things by their noun; those of other nouns keep their numbers."""
        return Note(self.code, self.template, *(replace(one, names=names.get(one.noun)) for one in self.mentions))


def sentence(template: str, words: Sequence[str]) -> str:
    """The template with words in its places, and a capital at its start; without words as it is."""
    if not words:
        return template
    text = template.format(*words)
    return text[:1].upper() + text[1:]


def mention(noun: str, numbers: npt.ArrayLike) -> Mention:
    """numbers: whole numbers (n,), or a mask (N,)."""
    array = np.asarray(numbers)
    return Mention(noun, (np.flatnonzero(array) if array.dtype == np.bool_ else array).tolist())


def listed(count: int, *, first: int = 0) -> str:
    """The places of so many mentions in a template, one after another."""
    return "; ".join(f"{{{place}}}" for place in range(first, first + count))


def named(notes: Iterable[Note], names: Mapping[str, Sequence[str]]) -> tuple[Note, ...]:
    """The notes with names in their mentions."""
    return tuple(note.named(names) for note in notes)
