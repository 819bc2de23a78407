"""Sentences beside a result, and the numbered things that they speak of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from app.errors import shortened

MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class Mention:
    """Some of the things that a result numbers, at least one. noun: what one of them is called, such as "item"."""

    noun: str
    numbers: Sequence[int]

    def words(self, names: Sequence[str] | None = None) -> str:
        """'item 3', 'items 3 and 7' or '25 items (0, 1, ...)'; with names in the place of numbers, if there are."""
        some = self.numbers[:MOST_LISTED]
        called = [str(number) if names is None else f"“{shortened(names[number])}”" for number in some]
        if len(self.numbers) > MOST_LISTED:
            return f"{len(self.numbers):,} {self.noun}s ({', '.join(called)}, ...)"
        *others, last = called
        return f"{self.noun}s {', '.join(others)} and {last}" if others else f"{self.noun} {last}"


class Note(str):
    """A sentence with mentions. It reads with their numbers, and `named` gives it their names."""

    __slots__ = ("mentions", "template")

    template: str
    mentions: tuple[Mention, ...]

    def __new__(cls, template: str, *mentions: Mention) -> Self:
        """template: has {0}, {1}, ... in the place of each mention."""
        note = super().__new__(cls, sentence(template, [mention.words() for mention in mentions]))
        note.template, note.mentions = template, mentions
        return note

    def named(self, names: Mapping[str, Sequence[str]]) -> str:
        """names: of all things by their noun; those of other nouns keep their numbers."""
        return sentence(self.template, [mention.words(names.get(mention.noun)) for mention in self.mentions])


def sentence(template: str, words: Iterable[str]) -> str:
    """The template with words in its places, and a capital at its start."""
    text = template.format(*words)
    return text[:1].upper() + text[1:]


def mention(noun: str, numbers: npt.ArrayLike) -> Mention:
    """numbers: whole numbers (n,), or a mask (N,)."""
    array = np.asarray(numbers)
    return Mention(noun, (np.flatnonzero(array) if array.dtype == np.bool_ else array).tolist())


def listed(count: int, *, first: int = 0) -> str:
    """The places of so many mentions in a template, one after another."""
    return "; ".join(f"{{{place}}}" for place in range(first, first + count))


def named(notes: Iterable[str], names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The notes with names in their mentions."""
    return tuple(note.named(names) if isinstance(note, Note) else note for note in notes)
