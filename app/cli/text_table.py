"""Text and tables for a terminal: as wide as it is, and only long texts are shortened."""

import shutil
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence

import click

COLUMN_GAP = "  "
NO_BREAK_SPACE = "\u00a0"  # a space at which no line ends
MIN_TABLE_CHARACTERS = 24  # below it a table would be one word a line
MIN_TEXT_COLUMN_CHARACTERS = 12  # of a column of texts

TextRows = Sequence[Sequence[str]]


def terminal_width() -> int:
    """Return the width in characters; 80 if it is unknown, such as in a file."""
    return max(MIN_TABLE_CHARACTERS, shutil.get_terminal_size().columns)


def wrap_text_into_lines(text: str, width: int, indent: str = "") -> list[str]:
    """Return text as lines; an address that is longer than a line stays whole."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def iterate_text_table_lines(
    titles: Sequence[str], rows: TextRows, *, right_columns: Collection[int], width: int
) -> Iterator[str]:
    """Yield a table with aligned columns; `right_columns` are aligned to the right.

    If the columns are wider than the terminal, titles take several lines first. Then texts are shortened, and then the
    table continues below: each further piece starts with the first column again, which is never shortened.
    """
    titles = [title.replace(" %", f"{NO_BREAK_SPACE}%") for title in titles]
    widths = fit_column_widths(titles, rows, right_columns, width)
    shown = [[shorten_cell_text(cell, size) for cell, size in zip(row, widths, strict=True)] for row in rows]
    for number, columns in enumerate(iterate_column_groups_repeating_first(widths, width)):
        yield from [""] * (number > 0)
        heads = [textwrap.wrap(titles[k], widths[k], break_long_words=False) or [""] for k in columns]
        title_lines = max(map(len, heads))
        heads = [[""] * (title_lines - len(head)) + head for head in heads]
        for line in (*zip(*heads, strict=True), *([row[k] for k in columns] for row in shown)):
            yield format_aligned_table_line(
                line, [widths[k] for k in columns], [k in right_columns for k in columns]
            ).replace(NO_BREAK_SPACE, " ")


def print_text_table(titles: Sequence[str], rows: TextRows, *, right_columns: Collection[int]) -> None:
    """Print a table of `iterate_text_table_lines` as wide as the terminal."""
    click.echo("\n".join(iterate_text_table_lines(titles, rows, right_columns=right_columns, width=terminal_width())))


def format_aligned_table_line(cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    sides = zip(cells, widths, is_right, strict=True)
    return COLUMN_GAP.join(cell.rjust(size) if number else cell.ljust(size) for cell, size, number in sides).rstrip()


def fit_column_widths(titles: Sequence[str], rows: TextRows, right_columns: Collection[int], width: int) -> list[int]:
    """Return the width of each column: its widest cell and title, or if that is too much, its title's longest word."""
    cells = [max((len(row[k]) for row in rows), default=0) for k in range(len(titles))]
    full_widths = [max(size, len(title)) for size, title in zip(cells, titles, strict=True)]
    if sum_of_column_and_gap_widths(full_widths) <= width:
        return full_widths
    min_widths = [max(size, *map(len, title.split(" "))) for size, title in zip(cells, titles, strict=True)]
    max_text_width = max(MIN_TEXT_COLUMN_CHARACTERS, (width - min_widths[0]) // 2)
    texts = (
        {k for k in range(1, len(titles)) if k not in right_columns}
        if sum_of_column_and_gap_widths(min_widths) > width
        else ()
    )
    return [min(size, max_text_width) if k in texts else size for k, size in enumerate(min_widths)]


def sum_of_column_and_gap_widths(widths: Sequence[int]) -> int:
    return sum(widths) + len(COLUMN_GAP) * (len(widths) - 1)


def iterate_column_groups_repeating_first(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns of each piece; the first column is in every piece."""
    columns = [0]
    for k in range(1, len(widths)):
        if len(columns) > 1 and sum_of_column_and_gap_widths([widths[j] for j in (*columns, k)]) > width:
            yield columns
            columns = [0]
        columns.append(k)
    yield columns


def shorten_cell_text(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"


def iterate_wrapped_lines_of_sentences(sentences: Iterable[str], width: int) -> Iterator[str]:
    for sentence in sentences:
        yield from wrap_text_into_lines(sentence, width)
