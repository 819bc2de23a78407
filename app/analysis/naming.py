"""The names of items, annotators and the like: their order, and their place in notes.

The estimators' notes speak of item 3 and annotator 7 by their numbers; people know them by their names.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from app.errors import shortened

# Such as: item 3; Items 3, 7; items 0, 1 and 4 more; 25 items (0, 1, ...); items 0 and 1; 2 and 3; and 4 more.
NUMBERED = r"\b({nouns})(s? \(?)(\d+\b(?! more)(?:(?:, | and |; )\d+\b(?! more))*)"


def in_order(name: str) -> tuple[float, str]:
    """By this, names are sorted: whole numbers first and as numbers, then the others without regard to capitals."""
    return (float(name) if re.fullmatch(r"-?\d+", name) else math.inf, name.casefold())


def named(notes: Iterable[str], names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The notes with a name in the place of each number that follows one of the nouns, such as "item"."""
    pattern = re.compile(NUMBERED.format(nouns="|".join(names)), re.IGNORECASE)

    def with_names(found: re.Match[str]) -> str:
        noun, between, numbers = found.groups()
        of = names[noun.lower()]
        return noun + between + re.sub(r"\d+", lambda number: f"“{shortened(of[int(number[0])])}”", numbers)

    return tuple(pattern.sub(with_names, note) for note in notes)
