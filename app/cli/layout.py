"""Words and tables on a terminal: as wide as it is, and nothing cut off but long texts."""

import shutil
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence

GAP = "  "
TOGETHER = "\u00a0"  # a space at which no line ends
NARROWEST = 24  # below it a table would be one word a line
NARROWEST_TEXT = 12  # of a column of texts

Cells = Sequence[Sequence[str]]


def terminal_width() -> int:
    """In characters; 80 where nobody can tell, such as in a file."""
    return max(NARROWEST, shutil.get_terminal_size().columns)


def wrapped(words: str, width: int, indent: str = "") -> list[str]:
    """Words as lines; an address that is longer than a line stays whole."""
    return textwrap.wrap(
        words, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def aligned(titles: Sequence[str], rows: Cells, *, right: Collection[int], width: int) -> Iterator[str]:
    """A table with its columns under each other, those of `right` aligned to the right.

    Where the columns are wider than the terminal, titles take several lines, then texts are shortened, and then the
    table goes on below: each further piece starts with the first column again, which is never shortened.
    """
    titles = [title.replace(" %", f"{TOGETHER}%") for title in titles]
    widths = widths_of(titles, rows, right, width)
    shown = [[shortened(cell, size) for cell, size in zip(row, widths, strict=True)] for row in rows]
    for number, columns in enumerate(pieces(widths, width)):
        yield from [""] * (number > 0)
        heads = [textwrap.wrap(titles[k], widths[k], break_long_words=False) or [""] for k in columns]
        deep = max(map(len, heads))
        heads = [[""] * (deep - len(head)) + head for head in heads]
        for line in (*zip(*heads, strict=True), *([row[k] for k in columns] for row in shown)):
            yield in_line(line, [widths[k] for k in columns], [k in right for k in columns]).replace(TOGETHER, " ")


def in_line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    sides = zip(cells, widths, right, strict=True)
    return GAP.join(cell.rjust(size) if number else cell.ljust(size) for cell, size, number in sides).rstrip()


def widths_of(titles: Sequence[str], rows: Cells, right: Collection[int], width: int) -> list[int]:
    """How wide each column is: as its widest cell and title, or where that is too much, its title's longest word."""
    cells = [max((len(row[k]) for row in rows), default=0) for k in range(len(titles))]
    whole = [max(size, len(title)) for size, title in zip(cells, titles, strict=True)]
    if total(whole) <= width:
        return whole
    least = [max(size, *map(len, title.split(" "))) for size, title in zip(cells, titles, strict=True)]
    room = max(NARROWEST_TEXT, (width - least[0]) // 2)
    texts = {k for k in range(1, len(titles)) if k not in right} if total(least) > width else ()
    return [min(size, room) if k in texts else size for k, size in enumerate(least)]


def total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def pieces(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Which columns stand beside each other; the first one in every piece."""
    columns = [0]
    for k in range(1, len(widths)):
        if len(columns) > 1 and total([widths[j] for j in (*columns, k)]) > width:
            yield columns
            columns = [0]
        columns.append(k)
    yield columns


def shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def paragraphs(sentences: Iterable[str], width: int) -> Iterator[str]:
    for sentence in sentences:
        yield from wrapped(sentence, width)
