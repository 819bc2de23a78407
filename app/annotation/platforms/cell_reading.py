"""Cells of answer files: numbers and times as people and programs of any country write them, read by what the whole
file tells of them. Pure.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from app.annotation.platforms.time_parsing import DateOrderUnknownError, ParsedTime, detect_day_first, parse_file_time
from app.errors import Invalid, shorten_echo
from app.uploads import ReadOptions, refuse_line

DecimalMark: TypeAlias = Literal["", "point", "comma"]
DateOrder: TypeAlias = Literal["", "day_first", "month_first"]

MISSING_VALUE_WORDS = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"))
COMMA_DECIMAL_PATTERN = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
POINT_DECIMAL_PATTERN = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
PLAIN_NUMBER_PATTERN = re.compile(r"[0-9]+(\.[0-9]+)?")
AMBIGUOUS_NUMBER_PATTERN = re.compile(
    r"[+-]?[1-9]\d{0,2},\d{3}"
)  # 1,234 is a little more than one, or more than a thousand
PERCENT_CELL_PATTERN = re.compile(r"(.*\S)\s*%")
CLOCK_SKEW = timedelta(days=1)  # how far ahead of ours another machine's clock may be, with its time zone unknown


class FormatsUnknownError(Exception):
    """A cell cannot be read before the whole file has been looked at."""


@dataclass(frozen=True)
class ReadingOptions:
    """Options with which a file of answers is read.

    Attributes:
        columns: By what Easel calls it (`item`, `value`, ...), the column of the file; see `crowd.columns`.
        decimal: How decimals are written; empty to see it in the file.
        date_order: What comes first in dates such as 1/2/2026; empty to see it in the file.
        time_zone: Zone of times that name none, as in the time zone database.
        count_rejected: Whether answers count that the platform's requester rejected.
        read_as: How the file is encoded, and what its quotation marks are.

    """

    columns: Mapping[str, str] = field(default_factory=dict)
    decimal: DecimalMark = ""
    date_order: DateOrder = ""
    time_zone: str = "UTC"
    count_rejected: bool = False
    read_as: ReadOptions = field(default_factory=ReadOptions)


@dataclass
class ReadingNotes:
    """How a file was read, for the receipt.

    Attributes:
        rejected: HITs left out, because they were rejected, cancelled or passed over.
        missing: Values left out, because their cells are empty or say NA.
        percent: Values that were written in percent.
        decimal_comma: Whether numbers were read with decimal commas.
        date_order: How dates were read whose order matters.
        time_zone: The zone that was assumed for times that name none.
        columns: What was read from which column, where they were mapped.
        passed_over: The other columns then.
        by_text: Items that were found by their text.
        rows: Rows of the file.
        lines: Lines of the file.
        file: Sentences about how the table was read.

    """

    rejected: int = 0
    missing: int = 0
    percent: int = 0
    decimal_comma: bool = False
    date_order: str = ""
    time_zone: str = ""
    columns: str = ""
    passed_over: str = ""
    by_text: int = 0
    rows: int = 0
    lines: int = 0
    file: str = ""


@dataclass
class CellFormats:
    """How the numbers and dates of a file are written; None where nothing tells, and nothing needs to."""

    has_decimal_comma: bool | None = None
    has_day_first: bool | None = None


@dataclass
class CellReader:
    """Reads cells by what is known of their file. Without `formats` it may raise `FormatsUnknownError`.

    Attributes:
        now: The time of the import, after which no answer was given.
        options: How the uploader wants the file read.
        formats: How its numbers and dates are written, once that is known.
        notes: What there is to tell of the reading.

    """

    now: datetime
    options: ReadingOptions = field(default_factory=ReadingOptions)
    formats: CellFormats | None = None
    notes: ReadingNotes = field(default_factory=ReadingNotes)

    def normalise_number(self, cell: str, *, accept_percent: bool) -> str:
        """Return a number as programs write it; other text as it is.

        Args:
            cell: A number with a decimal point or comma, perhaps with thousands apart.
            percent: Whether `35 %` is the number 35.

        """
        if PLAIN_NUMBER_PATTERN.fullmatch(cell) and not (self.formats and self.formats.has_decimal_comma):
            return cell
        if accept_percent and (match := PERCENT_CELL_PATTERN.fullmatch(cell)):
            self.notes.percent += 1
            cell = match[1]
        digits = re.sub(r"(?<=\d)[\s'’](?=\d{3})", "", cell)
        if "," not in digits and not (self.formats and self.formats.has_decimal_comma):
            return digits
        if not (COMMA_DECIMAL_PATTERN.fullmatch(digits) or POINT_DECIMAL_PATTERN.fullmatch(digits)):
            return cell
        if self.formats is None:
            raise FormatsUnknownError
        if self.formats.has_decimal_comma and (
            COMMA_DECIMAL_PATTERN.fullmatch(digits) or re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+", digits)
        ):
            self.notes.decimal_comma = True
            return digits.replace(".", "").replace(",", ".")
        if not self.formats.has_decimal_comma and POINT_DECIMAL_PATTERN.fullmatch(digits):
            return digits.replace(",", "")
        return digits if "," not in digits and "." not in digits else cell

    def parse_time_cell(self, line: int, column: str, cell: str) -> ParsedTime | None:
        """Return the time in a cell, None if it is missing.

        Raises `Invalid` (`time_unreadable`, `time_in_future`).
        """
        if cell.lower() in MISSING_VALUE_WORDS:
            return None
        day_first = self.formats.has_day_first if self.formats else None
        try:
            parsed_time = parse_file_time(cell, day_first=day_first, zone=load_time_zone(self.options.time_zone))
        except DateOrderUnknownError:
            if self.formats is None:
                raise FormatsUnknownError from None
            parsed_time = None
        if parsed_time is None:
            message = f"{column} is “{shorten_echo(cell)}”, not a time such as 2026-01-31T15:04:05Z."
            refuse_line("time_unreadable", line, message, column=column)
        self.check_passed(line, column, cell, parsed_time.time)
        if parsed_time.is_naive:
            self.notes.time_zone = self.options.time_zone
        if day_first is not None:
            self.notes.date_order = "day_first" if day_first else "month_first"
        return parsed_time

    def check_passed(self, line: int, column: str, cell: str, at: datetime) -> None:
        """Raise `Invalid` (`time_in_future`) for a time more than `CLOCK_SKEW` after now."""
        if at > self.now + CLOCK_SKEW:
            message = f"{column} is “{shorten_echo(cell)}”, a time that has not come yet. Check the year, the day and the month."
            refuse_line("time_in_future", line, message, column=column)


def is_missing_value(cell: str, labels: Iterable[str]) -> bool:
    """Whether a cell says that there is no value, and is no label of the campaign."""
    return cell.lower() in MISSING_VALUE_WORDS and cell not in labels


CellKind: TypeAlias = Literal["number", "time"]


def detect_cell_formats(cells: Iterable[tuple[int, CellKind, str]], options: ReadingOptions) -> CellFormats:
    """Return how the numbers and dates of a whole file are written, as the options or the cells tell.

    Args:
        cells: Those that hold numbers or times, each with its line.
        options: How the uploader wants the file read.

    Raises:
        Invalid: `decimal_unclear` or `date_order_unclear`: the cells tell nothing, or contradict each other.

    """
    numbers: dict[bool | None, tuple[int, str]] = {}  # by whether the comma is decimal, the first such cell
    orders: dict[bool | None, tuple[int, str]] = {}  # by whether the day is first
    for line, kind, cell in cells:
        if kind == "number":
            record_decimal_mark(numbers, line, cell)
        elif needs_date_order(cell):
            orders.setdefault(detect_day_first(cell), (line, cell))
    return CellFormats(decide_decimal_comma(numbers, options.decimal), decide_day_first(orders, options.date_order))


def record_decimal_mark(numbers: dict[bool | None, tuple[int, str]], line: int, cell: str) -> None:
    match = PERCENT_CELL_PATTERN.fullmatch(cell)
    digits = re.sub(r"(?<=\d)[\s'’](?=\d{3})", "", match[1] if match else cell)
    if AMBIGUOUS_NUMBER_PATTERN.fullmatch(digits):
        numbers.setdefault(None, (line, cell))
    elif "," in digits and COMMA_DECIMAL_PATTERN.fullmatch(digits):
        numbers.setdefault(True, (line, cell))
    elif ("," in digits or "." in digits) and POINT_DECIMAL_PATTERN.fullmatch(digits):
        numbers.setdefault(False, (line, cell))


def needs_date_order(cell: str) -> bool:
    try:
        parse_file_time(cell, day_first=None, zone=UTC)
    except DateOrderUnknownError:
        return True
    return False


def decide_decimal_comma(numbers: Mapping[bool | None, tuple[int, str]], chosen: DecimalMark) -> bool | None:
    """Whether numbers have decimal commas. Raises `Invalid` (`decimal_unclear`)."""
    if chosen:
        return chosen == "comma"
    if len(numbers.keys() - {None}) == 2:
        (line, comma), (other_line, point) = numbers[True], numbers[False]
        refuse_line(
            "decimal_unclear",
            max(line, other_line),
            f"“{comma}” on line {line} has a decimal comma, and “{point}” on line {other_line} a decimal point. Write all numbers one way, or say which with the option decimal (point or comma).",
        )
    if numbers.keys() == {None}:
        line, cell = numbers[None]
        refuse_line(
            "decimal_unclear",
            line,
            f"“{cell}” can be a number with a decimal comma, or one above a thousand. Say which with the option decimal (point or comma).",
        )
    return next((comma for comma in numbers if comma is not None), None)


def decide_day_first(orders: Mapping[bool | None, tuple[int, str]], chosen: DateOrder) -> bool | None:
    """Whether the day comes first. Raises `Invalid` (`date_order_unclear`)."""
    if chosen:
        return chosen == "day_first"
    if len(orders.keys() - {None}) == 2:
        (line, day), (other_line, month) = orders[True], orders[False]
        refuse_line(
            "date_order_unclear",
            max(line, other_line),
            f"“{day}” on line {line} has the day first, and “{month}” on line {other_line} the month. Write all dates one way, such as 2026-01-31.",
        )
    if orders.keys() == {None}:
        line, cell = orders[None]
        refuse_line(
            "date_order_unclear",
            line,
            f"no date of this file tells whether the day or the month comes first in “{shorten_echo(cell)}”. Say so with the option date_order (day_first or month_first).",
        )
    return next((day_first for day_first in orders if day_first is not None), None)


def load_time_zone(name: str) -> tzinfo:
    """Return a time zone. Raises `Invalid` (`time_zone_unknown`)."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Invalid(
            f"There is no time zone “{shorten_echo(name)}”. Name one such as Europe/Berlin or UTC. Nothing was imported.",
            code="time_zone_unknown",
        ) from None
