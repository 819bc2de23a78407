"""One row of the palette."""

from dataclasses import dataclass

MAX_ENTRIES_PER_GROUP = 6


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A title and the address that it opens.

    Attributes:
        group: Heading of the rows among which it is listed.
        detail: Words that tell rows of equal titles apart; may be empty.

    """

    group: str
    title: str
    detail: str
    url: str
