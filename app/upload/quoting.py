"""Whether quotation marks enclose the cells of a table, or are part of its texts.

The rule, as docs/items.md tells it:

1. Commas and semicolons: quotation marks enclose cells. A file that cannot be read so is refused. So is one in which a
   cell that opens with a quotation mark takes in lines that look like rows of their own.
2. Tabs: quotation marks are text if the file can only be read so, or if lines within them look like rows of their own.
   They enclose cells if the header has them, if a cell between them has a tab or a line break, or if the marks are as
   programs write them that enclose cells: doubled within, around cells that need it, or around all of a column.
3. An uploader can say which of the two it is.

A line looks like a row if it has as many cells as the header or more, and its ids and other short codes look like
those of the other rows without being those of one of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_SHAPES = 50  # remembered of a column
MOST_COLUMNS = 50  # looked at
MOST_ROWS = 10_000  # remembered, to know ids again
LONGEST_CODE = 60  # characters of an id or another code
MOST_SPANS = 1_000
MOST_LINES_OF_SPAN = 50
NEEDS_MARKS = re.compile(r"[,;\t\r\n]|^\s|\s$")  # of a cell that programs enclose without need for it
ENCLOSED = re.compile(r'"(?:[^"]|"")*"')
DIGITS, LETTERS = re.compile(r"[0-9]+"), re.compile(r"[^\W\d_]+")


@dataclass
class WrittenColumn:
    """The looks of the cells of a column."""

    shapes: set[str] = field(default_factory=set)
    filled: int = 0
    enclosed: int = 0
    unneeded: int = 0  # enclosed without need for it

    def note(self, cell: str) -> None:
        if len(self.shapes) <= MOST_SHAPES:
            self.shapes.add(shape_of(cell))

    def note_written(self, cell: str) -> None:
        self.filled += bool(cell)
        if ENCLOSED.fullmatch(cell):
            inner = cell[1:-1]
            self.enclosed += 1
            self.unneeded += bool(inner) and not NEEDS_MARKS.search(inner)

    def regular(self, rows: int) -> bool:
        """Whether the column holds ids or other codes, which look alike and have no spaces."""
        return len(self.shapes) <= max(1, rows // 3) and not any(" " in shape for shape in self.shapes)

    def suits(self, written: str) -> bool:
        """Whether a cell, as it is written, may be another one of this column."""
        if self.filled and self.enclosed == self.filled and not written.startswith('"'):
            return False
        return shape_of(written.strip('"')) in self.shapes


class Span(NamedTuple):
    """A row over several lines, each with cells enough for the header; the column at `place` goes on over them."""

    first_line: int
    last_line: int
    place: int
    lines: list[list[str]]


@dataclass
class Evidence:
    """The looks of the quotation marks in a table, read as if they enclosed cells."""

    delimiter: str
    width: int
    columns: list[WrittenColumn] = field(default_factory=list)
    rows: int = 0
    codes: list[tuple[str, ...]] = field(default_factory=list)
    ids: dict[tuple[int, ...], set[tuple[str, ...]]] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    has_spans: bool = False
    bare: int = 0  # cells with quotation marks that cannot enclose them
    doubled: int = 0  # enclosed cells with a doubled quotation mark in them

    def __post_init__(self) -> None:
        self.columns = [WrittenColumn() for _ in range(min(self.width, MOST_COLUMNS))]

    def note(self, first_line: int, cells: Sequence[str], lines: Sequence[str]) -> None:
        """Take in a row, which was read from these lines."""
        self.rows += 1
        for column, cell in zip(self.columns, cells, strict=False):
            if "\n" not in cell:
                column.note(cell)
        if len(self.codes) < MOST_ROWS:
            self.codes.append(tuple(cell[:LONGEST_CODE] for cell in cells[:MOST_COLUMNS]))
        if len(lines) > 1:
            self.note_span(first_line, cells, lines)
        else:
            self.note_marks(lines[0].rstrip("\r\n").split(self.delimiter))

    def note_span(self, first_line: int, cells: Sequence[str], lines: Sequence[str]) -> None:
        self.has_spans = True
        place = next((place for place, cell in enumerate(cells) if "\n" in cell), 0)
        filled = [line for line in lines if line.strip()]
        # A text among them may have a comma more.
        wide = self.width > 1 and all(line.count(self.delimiter) >= self.width - 1 for line in filled)
        if wide and len(self.spans) < MOST_SPANS:
            own = [line.rstrip("\r\n").split(self.delimiter) for line in filled[:MOST_LINES_OF_SPAN]]
            self.spans.append(Span(first_line, first_line + len(lines) - 1, place, own))

    def note_marks(self, written: Sequence[str]) -> None:
        """Take in the cells of a row on one line, as they are written."""
        for column, cell in zip(self.columns, written, strict=False):
            column.note_written(cell)
            if '"' in cell:
                enclosed = ENCLOSED.fullmatch(cell)
                self.bare += not enclosed
                self.doubled += bool(enclosed) and '""' in cell[1:-1]

    def swallowing(self) -> Span | None:
        """The first row over several lines that look like rows of their own."""
        regular = [place for place, column in enumerate(self.columns) if column.regular(self.rows)]
        return next((span for span in self.spans if self.holds_rows(span, regular)), None)

    def holds_rows(self, span: Span, regular: Sequence[int]) -> bool:
        before, after = ([p for p in regular if p < span.place], [p for p in regular if p > span.place])
        places, lines = (before, span.lines[1:]) if before else (after, span.lines[:-1])
        ids = self.ids_in(tuple(places))
        for cells in lines:
            extra = 0 if before else len(cells) - self.width
            codes = [cells[place + extra] for place in places]
            suited = all(self.columns[place].suits(code) for place, code in zip(places, codes, strict=True))
            if not suited or tuple(code.strip('"') for code in codes) in ids:
                return False
        return True

    def ids_in(self, places: tuple[int, ...]) -> set[tuple[str, ...]]:
        """The codes of the rows in these columns, if no two rows have the same; they are ids then."""
        if places not in self.ids:
            found = {tuple(codes[place] for place in places) for codes in self.codes}
            self.ids[places] = found if places and len(found) == len(self.codes) else set()
        return self.ids[places]

    def encloses_cells(self) -> bool:
        """Whether marks enclose cells where each line is a row in either way of reading."""
        unneeded = any(column.unneeded and column.enclosed < column.filled for column in self.columns)
        return self.doubled >= self.bare if self.doubled else not (self.bare or unneeded)


def shape_of(cell: str) -> str:
    """A cell with each run of digits as 0 and each run of letters as a."""
    return LETTERS.sub("a", DIGITS.sub("0", cell[:200]))
