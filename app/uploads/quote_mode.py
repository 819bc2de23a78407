"""Use of quotation marks in a table: they enclose cells, or are part of texts.

The rule, also in docs/researchers/items.md:

1. Commas and semicolons: quotation marks enclose cells. A file that cannot be read this way is refused. So is a file in
   which a cell that opens with a quotation mark swallows lines that look like rows of their own.
2. Tabs: quotation marks are text if the file can only be read this way, or if lines within them look like rows of their
   own. They enclose cells if the header has them, if an enclosed cell has a tab or a line break, or if the marks are as
   programs write enclosing marks: doubled within, around cells that need it, or around all of a column.
3. An uploader can choose either of the two.

A line looks like a row if it has as many cells as the header or more, and its ids and other short codes look like
those of the other rows without being those of one of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_SHAPES_PER_COLUMN = 50
MAX_COLUMNS_EXAMINED = 50
MAX_ROWS_REMEMBERED = 10_000  # to recognise ids
MAX_CODE_CHARACTERS = 60  # of an id or another code
MAX_MULTILINE_ROWS = 1_000
MAX_LINES_PER_MULTILINE_ROW = 50
NEEDS_QUOTES_PATTERN = re.compile(r"[,;\t\r\n]|^\s|\s$")  # matches cells that programs must enclose
ENCLOSED_CELL_PATTERN = re.compile(r'"(?:[^"]|"")*"')
DIGITS_PATTERN, LETTERS_PATTERN = re.compile(r"[0-9]+"), re.compile(r"[^\W\d_]+")


@dataclass
class ColumnShapes:
    """The shapes of a column's cells, as `shape_of_cell_text` returns them, and counts of enclosed cells."""

    shapes: set[str] = field(default_factory=set)
    filled_count: int = 0
    enclosed_count: int = 0
    needlessly_enclosed_count: int = 0

    def add_shape_of_cell(self, cell: str) -> None:
        if len(self.shapes) <= MAX_SHAPES_PER_COLUMN:
            self.shapes.add(shape_of_cell_text(cell))

    def add_cell_to_quote_counts(self, source_cell: str) -> None:
        self.filled_count += bool(source_cell)
        if ENCLOSED_CELL_PATTERN.fullmatch(source_cell):
            inner = source_cell[1:-1]
            self.enclosed_count += 1
            self.needlessly_enclosed_count += bool(inner) and not NEEDS_QUOTES_PATTERN.search(inner)

    def is_column_of_codes(self, row_count: int) -> bool:
        """Return whether the column holds ids or other codes, which look alike and have no spaces."""
        return len(self.shapes) <= max(1, row_count // 3) and not any(" " in shape for shape in self.shapes)

    def looks_like_cell_of_this_column(self, source_cell: str) -> bool:
        """Return whether a cell, as written in the file, may belong to this column."""
        if self.filled_count and self.enclosed_count == self.filled_count and not source_cell.startswith('"'):
            return False
        return shape_of_cell_text(source_cell.strip('"')) in self.shapes


class MultilineRow(NamedTuple):
    """A row over several lines, each with enough cells for a row; the column at `column_position` spans them."""

    first_line: int
    last_line: int
    column_position: int
    cells_by_line: list[list[str]]


@dataclass
class QuoteEvidence:
    """Evidence about the quotation marks of a table, read as if they enclosed cells."""

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
        """Add a row that was read from these lines."""
        self.row_count += 1
        for column, cell in zip(self.columns, cells, strict=False):
            if "\n" not in cell:
                column.add_shape_of_cell(cell)
        if len(self.leading_cells) < MAX_ROWS_REMEMBERED:
            self.leading_cells.append(tuple(cell[:MAX_CODE_CHARACTERS] for cell in cells[:MAX_COLUMNS_EXAMINED]))
        if len(lines) > 1:
            self.add_multiline_row(first_line, cells, lines)
        else:
            self.add_row_to_quote_counts(lines[0].rstrip("\r\n").split(self.delimiter))

    def add_multiline_row(self, first_line: int, cells: Sequence[str], lines: Sequence[str]) -> None:
        self.has_multiline_rows = True
        position = next((column_position for column_position, cell in enumerate(cells) if "\n" in cell), 0)
        filled_lines = [line for line in lines if line.strip()]
        # A text cell may contain another comma.
        has_full_lines = self.column_count > 1 and all(
            line.count(self.delimiter) >= self.column_count - 1 for line in filled_lines
        )
        if has_full_lines and len(self.multiline_rows) < MAX_MULTILINE_ROWS:
            cells_by_line = [
                line.rstrip("\r\n").split(self.delimiter) for line in filled_lines[:MAX_LINES_PER_MULTILINE_ROW]
            ]
            self.multiline_rows.append(MultilineRow(first_line, first_line + len(lines) - 1, position, cells_by_line))

    def add_row_to_quote_counts(self, source_cells: Sequence[str]) -> None:
        """Count the quotation marks of a row on one line, whose cells are as written in the file."""
        for column, cell in zip(self.columns, source_cells, strict=False):
            column.add_cell_to_quote_counts(cell)
            if '"' in cell:
                enclosed = ENCLOSED_CELL_PATTERN.fullmatch(cell)
                self.stray_quote_count += not enclosed
                self.doubled_quote_count += bool(enclosed) and '""' in cell[1:-1]

    def first_row_that_contains_whole_rows_or_none(self) -> MultilineRow | None:
        """Return the first row over several lines that look like rows of their own."""
        code_positions = [
            position for position, column in enumerate(self.columns) if column.is_column_of_codes(self.row_count)
        ]
        return next(
            (span for span in self.multiline_rows if self.does_row_contain_whole_rows(span, code_positions)), None
        )

    def does_row_contain_whole_rows(self, multiline_row: MultilineRow, code_positions: Sequence[int]) -> bool:
        before, after = (
            [p for p in code_positions if p < multiline_row.column_position],
            [p for p in code_positions if p > multiline_row.column_position],
        )
        positions, lines = (
            (before, multiline_row.cells_by_line[1:]) if before else (after, multiline_row.cells_by_line[:-1])
        )
        ids = self.ids_of_rows_if_unique(tuple(positions))
        for cells in lines:
            extra = 0 if before else len(cells) - self.column_count
            codes = [cells[position + extra] for position in positions]
            is_similar = all(
                self.columns[position].looks_like_cell_of_this_column(code)
                for position, code in zip(positions, codes, strict=True)
            )
            if not is_similar or tuple(code.strip('"') for code in codes) in ids:
                return False
        return True

    def ids_of_rows_if_unique(self, positions: tuple[int, ...]) -> set[tuple[str, ...]]:
        """Return the codes of the rows in these columns if no two rows have the same; they are ids then."""
        if positions not in self.ids_by_positions:
            distinct_codes = {tuple(codes[position] for position in positions) for codes in self.leading_cells}
            self.ids_by_positions[positions] = (
                distinct_codes if positions and len(distinct_codes) == len(self.leading_cells) else set()
            )
        return self.ids_by_positions[positions]

    def has_enclosing_quotes(self) -> bool:
        """Return whether the marks enclose cells, for a file in which each line is a row in either way of reading."""
        has_needless_quotes = any(
            column.needlessly_enclosed_count and column.enclosed_count < column.filled_count for column in self.columns
        )
        return (
            self.doubled_quote_count >= self.stray_quote_count
            if self.doubled_quote_count
            else not (self.stray_quote_count or has_needless_quotes)
        )


def shape_of_cell_text(cell: str) -> str:
    """Return a cell with each run of digits as 0 and each run of letters as a."""
    return LETTERS_PATTERN.sub("a", DIGITS_PATTERN.sub("0", cell[:200]))
