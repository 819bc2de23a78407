"""Whether quotation marks enclose the cells of a table, or are part of its texts.

The rule, as docs/researchers/items.md tells it:

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

MAX_SHAPES_PER_COLUMN = 50  # remembered of a column
MAX_COLUMNS_EXAMINED = 50  # looked at
MAX_ROWS_REMEMBERED = 10_000  # remembered, to know ids again
MAX_CODE_CHARACTERS = 60  # characters of an id or another code
MAX_MULTILINE_ROWS = 1_000
MAX_LINES_PER_MULTILINE_ROW = 50
NEEDS_QUOTES_PATTERN = re.compile(r"[,;\t\r\n]|^\s|\s$")  # of a cell that programs enclose without need for it
ENCLOSED_CELL_PATTERN = re.compile(r'"(?:[^"]|"")*"')
DIGITS_PATTERN, LETTERS_PATTERN = re.compile(r"[0-9]+"), re.compile(r"[^\W\d_]+")


@dataclass
class ColumnShapes:
    """The looks of the cells of a column."""

    shapes: set[str] = field(default_factory=set)
    filled_count: int = 0
    enclosed_count: int = 0
    needlessly_enclosed_count: int = 0  # enclosed without need for it

    def add_shape(self, cell: str) -> None:
        if len(self.shapes) <= MAX_SHAPES_PER_COLUMN:
            self.shapes.add(cell_shape(cell))

    def count_quotes(self, source_cell: str) -> None:
        self.filled_count += bool(source_cell)
        if ENCLOSED_CELL_PATTERN.fullmatch(source_cell):
            inner = source_cell[1:-1]
            self.enclosed_count += 1
            self.needlessly_enclosed_count += bool(inner) and not NEEDS_QUOTES_PATTERN.search(inner)

    def is_code_column(self, row_count: int) -> bool:
        """Whether the column holds ids or other codes, which look alike and have no spaces."""
        return len(self.shapes) <= max(1, row_count // 3) and not any(" " in shape for shape in self.shapes)

    def is_similar_cell(self, source_cell: str) -> bool:
        """Whether a cell, as it is written, may be another one of this column."""
        if self.filled_count and self.enclosed_count == self.filled_count and not source_cell.startswith('"'):
            return False
        return cell_shape(source_cell.strip('"')) in self.shapes


class MultilineRow(NamedTuple):
    """A row over several lines, each with cells enough for the header; the column at `place` goes on over them."""

    first_line: int
    last_line: int
    column_position: int
    cells_by_line: list[list[str]]


@dataclass
class QuoteEvidence:
    """The looks of the quotation marks in a table, read as if they enclosed cells."""

    delimiter: str
    column_count: int
    columns: list[ColumnShapes] = field(default_factory=list)
    row_count: int = 0
    leading_cells: list[tuple[str, ...]] = field(default_factory=list)
    ids_by_positions: dict[tuple[int, ...], set[tuple[str, ...]]] = field(default_factory=dict)
    multiline_rows: list[MultilineRow] = field(default_factory=list)
    has_multiline_rows: bool = False
    stray_quote_count: int = 0  # cells with quotation marks that cannot enclose them
    doubled_quote_count: int = 0  # enclosed cells with a doubled quotation mark in them

    def __post_init__(self) -> None:
        self.columns = [ColumnShapes() for _ in range(min(self.column_count, MAX_COLUMNS_EXAMINED))]

    def add_row(self, first_line: int, cells: Sequence[str], lines: Sequence[str]) -> None:
        """Take in a row, which was read from these lines."""
        self.row_count += 1
        for column, cell in zip(self.columns, cells, strict=False):
            if "\n" not in cell:
                column.add_shape(cell)
        if len(self.leading_cells) < MAX_ROWS_REMEMBERED:
            self.leading_cells.append(tuple(cell[:MAX_CODE_CHARACTERS] for cell in cells[:MAX_COLUMNS_EXAMINED]))
        if len(lines) > 1:
            self.add_multiline_row(first_line, cells, lines)
        else:
            self.count_row_quotes(lines[0].rstrip("\r\n").split(self.delimiter))

    def add_multiline_row(self, first_line: int, cells: Sequence[str], lines: Sequence[str]) -> None:
        self.has_multiline_rows = True
        position = next((place for place, cell in enumerate(cells) if "\n" in cell), 0)
        filled_lines = [line for line in lines if line.strip()]
        # A text among them may have a comma more.
        has_full_lines = self.column_count > 1 and all(
            line.count(self.delimiter) >= self.column_count - 1 for line in filled_lines
        )
        if has_full_lines and len(self.multiline_rows) < MAX_MULTILINE_ROWS:
            cells_by_line = [
                line.rstrip("\r\n").split(self.delimiter) for line in filled_lines[:MAX_LINES_PER_MULTILINE_ROW]
            ]
            self.multiline_rows.append(MultilineRow(first_line, first_line + len(lines) - 1, position, cells_by_line))

    def count_row_quotes(self, source_cells: Sequence[str]) -> None:
        """Take in the cells of a row on one line, as they are written."""
        for column, cell in zip(self.columns, source_cells, strict=False):
            column.count_quotes(cell)
            if '"' in cell:
                enclosed = ENCLOSED_CELL_PATTERN.fullmatch(cell)
                self.stray_quote_count += not enclosed
                self.doubled_quote_count += bool(enclosed) and '""' in cell[1:-1]

    def first_row_of_swallowed_rows(self) -> MultilineRow | None:
        """The first row over several lines that look like rows of their own."""
        code_positions = [place for place, column in enumerate(self.columns) if column.is_code_column(self.row_count)]
        return next((span for span in self.multiline_rows if self.has_swallowed_rows(span, code_positions)), None)

    def has_swallowed_rows(self, multiline_row: MultilineRow, code_positions: Sequence[int]) -> bool:
        before, after = (
            [p for p in code_positions if p < multiline_row.column_position],
            [p for p in code_positions if p > multiline_row.column_position],
        )
        positions, lines = (
            (before, multiline_row.cells_by_line[1:]) if before else (after, multiline_row.cells_by_line[:-1])
        )
        ids = self.unique_ids(tuple(positions))
        for cells in lines:
            extra = 0 if before else len(cells) - self.column_count
            codes = [cells[place + extra] for place in positions]
            is_similar = all(
                self.columns[place].is_similar_cell(code) for place, code in zip(positions, codes, strict=True)
            )
            if not is_similar or tuple(code.strip('"') for code in codes) in ids:
                return False
        return True

    def unique_ids(self, positions: tuple[int, ...]) -> set[tuple[str, ...]]:
        """The codes of the rows in these columns, if no two rows have the same; they are ids then."""
        if positions not in self.ids_by_positions:
            distinct_codes = {tuple(codes[place] for place in positions) for codes in self.leading_cells}
            self.ids_by_positions[positions] = (
                distinct_codes if positions and len(distinct_codes) == len(self.leading_cells) else set()
            )
        return self.ids_by_positions[positions]

    def has_enclosing_quotes(self) -> bool:
        """Whether marks enclose cells where each line is a row in either way of reading."""
        has_needless_quotes = any(
            column.needlessly_enclosed_count and column.enclosed_count < column.filled_count for column in self.columns
        )
        return (
            self.doubled_quote_count >= self.stray_quote_count
            if self.doubled_quote_count
            else not (self.stray_quote_count or has_needless_quotes)
        )


def cell_shape(cell: str) -> str:
    """A cell with each run of digits as 0 and each run of letters as a."""
    return LETTERS_PATTERN.sub("a", DIGITS_PATTERN.sub("0", cell[:200]))
