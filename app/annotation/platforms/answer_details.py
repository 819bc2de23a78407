"""Comments, flags and telemetry of a row in an export of responses. Pure: from the cells of a row to plain values."""

import re
from collections.abc import Collection, Mapping
from typing import NoReturn, TypeAlias

from app.annotation.platforms.cell_reading import CellReader
from app.designs.answer import INPUT_KINDS, MAX_VIEWPORT_CHARACTERS
from app.designs.number_parsing import MAX_COUNT
from app.designs.playback import MAX_SECONDS
from app.designs.remarks import MAX_COMMENT_CHARS, MAX_FLAG_CHARS, text_without_control_characters
from app.errors import join_names, shorten_echo
from app.uploads import raise_upload_refusal_at_line

FLAG_COLUMNS = ("flag", "hit_flag")
HIT_DETAIL_COLUMNS = ("hit_flag", "hit_comment", "viewport")
COUNT_COLUMNS = ("first_touch_ms", "changes", "plays", "switches")
ANSWER_DETAIL_COLUMNS = ("flag", "comment", *COUNT_COLUMNS, "input_kind", "seconds_heard", *HIT_DETAIL_COLUMNS)
TEXT_LIMIT_BY_COLUMN = {
    "flag": MAX_FLAG_CHARS,
    "hit_flag": MAX_FLAG_CHARS,
    "comment": MAX_COMMENT_CHARS,
    "hit_comment": MAX_COMMENT_CHARS,
    "viewport": MAX_VIEWPORT_CHARACTERS,
}
COUNT_PATTERN = re.compile(r"([0-9]{1,10})(?:\.0{1,10})?")  # programs write 3.0 in a column with empty cells

AnswerDetails: TypeAlias = tuple[str | int | float | None, ...]
"""Values of `ANSWER_DETAIL_COLUMNS`, None where there is none. A tuple, because the garbage collector does not track
those of plain values.
"""
NO_DETAILS: AnswerDetails = (None,) * len(ANSWER_DETAIL_COLUMNS)


def read_answer_details_or_refuse(
    line: int, cells: Mapping[str, str], reader: CellReader, flags_without_reason: Collection[str]
) -> AnswerDetails:
    """Return what an export says of an item besides its value.

    Args:
        line: Line of the row.
        cells: Its cells.
        reader: Reader of numbers.
        flags_without_reason: Columns of flags that the row has, although their cells are empty.

    Raises:
        Invalid: `detail_unusable`.

    """
    if not (flags_without_reason or any(map(cells.get, ANSWER_DETAIL_COLUMNS))):
        return NO_DETAILS
    return tuple(
        "" if name in flags_without_reason else detail_of_cell_or_none(line, name, cells.get(name, ""), reader)
        for name in ANSWER_DETAIL_COLUMNS
    )


def detail_of_cell_or_none(line: int, column: str, cell: str, reader: CellReader) -> str | int | float | None:
    """Return the value of a column, None if its cell is empty. Raises `Invalid` (`detail_unusable`)."""
    if not cell:
        return None
    if limit := TEXT_LIMIT_BY_COLUMN.get(column):
        text = text_without_control_characters(cell)
        if len(text) > limit:
            refuse_detail_at_line(line, column, cell, f"a text of at most {limit} characters")
        return text or None
    if column in COUNT_COLUMNS:
        match = COUNT_PATTERN.fullmatch(cell)
        if not match or int(match[1]) > MAX_COUNT:
            refuse_detail_at_line(line, column, cell, "a whole number from 0 on")
        return int(match[1])
    if column == "input_kind":
        if cell not in INPUT_KINDS:
            refuse_detail_at_line(line, column, cell, f"one of {join_names(INPUT_KINDS)}")
        return cell
    try:
        seconds = float(reader.normalise_number_notation(cell, accept_percent=False))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        refuse_detail_at_line(line, column, cell, "a number from 0 on")
    return seconds


def refuse_detail_at_line(line: int, column: str, cell: str, allowed: str) -> NoReturn:
    raise_upload_refusal_at_line("detail_unusable", line, f"the {column} “{shorten_echo(cell)}” is not {allowed}.")
