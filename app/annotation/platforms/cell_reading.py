"""Cells of answer files: numbers and times in the notations of any country, read in the context of the file. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from app.annotation.platforms.time_parsing import (
    DateOrderUnknownError,
    ParsedTime,
    is_day_first_or_none,
    parse_file_time_or_none,
)
from app.errors import Invalid, shorten_echo
from app.uploads import ReadOptions, raise_upload_refusal_at_line

DecimalMark: TypeAlias = Literal["", "point", "comma"]
DateOrder: TypeAlias = Literal["", "day_first", "month_first"]

# Files of the operating system beside the zones; what the first two mean differs from server to server.
NAMES_WITHOUT_ZONE = frozenset(("localtime", "posixrules", "Factory"))
MISSING_VALUE_WORDS = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"))
COMMA_DECIMAL_PATTERN = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
POINT_DECIMAL_PATTERN = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
PLAIN_NUMBER_PATTERN = re.compile(r"[0-9]+(\.[0-9]+)?")
AMBIGUOUS_NUMBER_PATTERN = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 can be 1.234 or 1234
PERCENT_CELL_PATTERN = re.compile(r"(.*\S)\s*%")
MAX_FIRST_CELLS = 1_000
CLOCK_SKEW = timedelta(days=1)  # how far another machine's clock may be ahead, including an unknown time zone


class FormatsUnknownError(Exception):
    """A cell cannot be read before the formats of the whole file are detected."""


@dataclass(frozen=True)
class ReadingOptions:
    """Options with which a file of answers is read.

    Attributes:
        columns: Column of the file by its role in Easel (`item`, `value`, ...); see `column_mapping`.
        decimal: Decimal mark; empty to detect it.
        date_order: Order of day and month in dates such as 1/2/2026; empty to detect it.
        time_zone: Name of the zone for times without one, from the time zone database.
        scale: Values of the file that mean the campaign's lowest and highest value; None if both have the same scale.
        count_rejected: Count answers that the platform's requester rejected.
        read_as: Encoding and quotation marks of the file.

    """

    columns: Mapping[str, str] = field(default_factory=dict)
    decimal: DecimalMark = ""
    date_order: DateOrder = ""
    time_zone: str = "UTC"
    scale: tuple[float, float] | None = None
    count_rejected: bool = False
    read_as: ReadOptions = field(default_factory=ReadOptions)


@dataclass
class ReadingNotes:
    """Notes on how a file was read, for the receipt.

    Attributes:
        rejected: Number of HITs left out because they were rejected, cancelled or ignored.
        missing: Number of values left out because their cells are empty or say NA.
        percent: Number of values written in percent.
        decimal_comma: True if numbers were read with decimal commas.
        date_order: Assumed order of day and month, if it mattered.
        time_zone: Assumed zone of times without one.
        columns: Mapping of roles to columns, if columns were mapped.
        passed_over: Columns that were not mapped.
        by_text: Number of items found by their text.
        rows: Number of rows of the file.
        lines: Number of lines of the file.
        file: Sentences about how the table was read.
        has_choices: True if the file has choices between two items, and no values.
        choice_repeats: Number of equal rows so far, for each choice.
        first_cells: First cells with values, by line and item.

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
    has_choices: bool = False
    choice_repeats: Counter[tuple[str, ...]] = field(default_factory=Counter)
    first_cells: dict[tuple[int, str], str] = field(default_factory=dict)

    @property
    def lacks_first_cells(self) -> bool:
        """Return whether more of the first cells are kept for a preview."""
        return len(self.first_cells) < MAX_FIRST_CELLS

    def remember_first_cell(self, line: int, item: str, cell: str) -> None:
        """Keep a cell with a value for a preview, if it is one of the first of the file."""
        if self.lacks_first_cells:
            self.first_cells.setdefault((line, item), cell)


@dataclass
class CellFormats:
    """Notation of the numbers and dates of a file; None if it makes no difference."""

    has_decimal_comma: bool | None = None
    has_day_first: bool | None = None


@dataclass
class CellReader:
    """Reader of cells by the formats of their file. Without `formats` it may raise `FormatsUnknownError`.

    Attributes:
        now: Time of the import; no answer can be later.
        options: The uploader's choices.
        formats: Formats of the file, once they are detected.
        notes: Notes on the reading, updated by each cell.

    """

    now: datetime
    options: ReadingOptions = field(default_factory=ReadingOptions)
    formats: CellFormats | None = None
    notes: ReadingNotes = field(default_factory=ReadingNotes)

    def normalise_number_notation(self, cell: str, *, accept_percent: bool) -> str:
        """Return a number in the notation of programs; other text unchanged.

        Args:
            cell: A number with a decimal point or comma, possibly with thousands separators.
            accept_percent: Read `35 %` as the number 35.

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

    def parse_time_cell_or_none(self, line: int, column: str, cell: str) -> ParsedTime | None:
        """Return the time in a cell, None if it is missing.

        Raises `Invalid` (`time_unreadable`, `time_in_future`).
        """
        if cell.lower() in MISSING_VALUE_WORDS:
            return None
        day_first = self.formats.has_day_first if self.formats else None
        try:
            parsed_time = parse_file_time_or_none(
                cell, day_first=day_first, zone=find_time_zone_or_refuse(self.options.time_zone)
            )
        except DateOrderUnknownError:
            if self.formats is None:
                raise FormatsUnknownError from None
            parsed_time = None
        if parsed_time is None:
            message = f"{column} is “{shorten_echo(cell)}”, not a time such as 2026-01-31T15:04:05Z."
            raise_upload_refusal_at_line("time_unreadable", line, message, column=column)
        self.refuse_future_time(line, column, cell, parsed_time.time)
        if parsed_time.is_naive:
            self.notes.time_zone = self.options.time_zone
        if day_first is not None:
            self.notes.date_order = "day_first" if day_first else "month_first"
        return parsed_time

    def refuse_future_time(self, line: int, column: str, cell: str, time: datetime) -> None:
        """Raise `Invalid` (`time_in_future`) for a time more than `CLOCK_SKEW` after now."""
        if time > self.now + CLOCK_SKEW:
            message = (
                f"{column} is “{shorten_echo(cell)}”, which is in the future. Check the year, the day and the month."
            )
            raise_upload_refusal_at_line("time_in_future", line, message, column=column)


def is_missing_value(cell: str, labels: Iterable[str]) -> bool:
    """Return whether a cell is empty or a word such as NA, and not one of the campaign's labels."""
    return cell.lower() in MISSING_VALUE_WORDS and cell not in labels


CellKind: TypeAlias = Literal["number", "time"]


def detect_number_and_date_formats(cells: Iterable[tuple[int, CellKind, str]], options: ReadingOptions) -> CellFormats:
    """Return the notation of numbers and dates in a whole file, from the options or the cells.

    Raises:
        Invalid: `decimal_unclear` or `date_order_unclear`: all cells are ambiguous, or they contradict each other.

    """
    # The first cell, with its line, for each notation: True, False, or None for an ambiguous cell.
    numbers: dict[bool | None, tuple[int, str]] = {}  # True: decimal comma
    orders: dict[bool | None, tuple[int, str]] = {}  # True: day first
    for line, kind, cell in cells:
        if kind == "number":
            remember_first_cell_of_decimal_mark(numbers, line, cell)
        elif is_date_order_ambiguous(cell):
            orders.setdefault(is_day_first_or_none(cell), (line, cell))
    return CellFormats(
        decide_decimal_commas_or_refuse(numbers, options.decimal),
        decide_day_first_or_refuse(orders, options.date_order),
    )


def remember_first_cell_of_decimal_mark(
    first_cell_by_comma_use: dict[bool | None, tuple[int, str]], line: int, cell: str
) -> None:
    match = PERCENT_CELL_PATTERN.fullmatch(cell)
    digits = re.sub(r"(?<=\d)[\s'’](?=\d{3})", "", match[1] if match else cell)
    if AMBIGUOUS_NUMBER_PATTERN.fullmatch(digits):
        first_cell_by_comma_use.setdefault(None, (line, cell))
    elif "," in digits and COMMA_DECIMAL_PATTERN.fullmatch(digits):
        first_cell_by_comma_use.setdefault(True, (line, cell))
    elif ("," in digits or "." in digits) and POINT_DECIMAL_PATTERN.fullmatch(digits):
        first_cell_by_comma_use.setdefault(False, (line, cell))


def is_date_order_ambiguous(cell: str) -> bool:
    try:
        parse_file_time_or_none(cell, day_first=None, zone=UTC)
    except DateOrderUnknownError:
        return True
    return False


def decide_decimal_commas_or_refuse(numbers: Mapping[bool | None, tuple[int, str]], chosen: DecimalMark) -> bool | None:
    """Return whether numbers have decimal commas. Raises `Invalid` (`decimal_unclear`)."""
    if chosen:
        return chosen == "comma"
    if len(numbers.keys() - {None}) == 2:
        (line, comma), (other_line, point) = numbers[True], numbers[False]
        raise_upload_refusal_at_line(
            "decimal_unclear",
            max(line, other_line),
            f"“{comma}” on line {line} has a decimal comma, and “{point}” on line {other_line} a decimal point. Write "
            "all numbers in the same way, or say which with the option decimal (point or comma).",
        )
    if numbers.keys() == {None}:
        line, cell = numbers[None]
        raise_upload_refusal_at_line(
            "decimal_unclear",
            line,
            f"“{cell}” can be a number with a decimal comma, or a whole number above a thousand. Say which with the "
            "option decimal (point or comma).",
        )
    return next((comma for comma in numbers if comma is not None), None)


def decide_day_first_or_refuse(orders: Mapping[bool | None, tuple[int, str]], chosen: DateOrder) -> bool | None:
    """Return whether the day comes first. Raises `Invalid` (`date_order_unclear`)."""
    if chosen:
        return chosen == "day_first"
    if len(orders.keys() - {None}) == 2:
        (line, day), (other_line, month) = orders[True], orders[False]
        raise_upload_refusal_at_line(
            "date_order_unclear",
            max(line, other_line),
            f"“{day}” on line {line} has the day first, and “{month}” on line {other_line} the month. Write all dates "
            "in the same way, such as 2026-01-31.",
        )
    if orders.keys() == {None}:
        line, cell = orders[None]
        raise_upload_refusal_at_line(
            "date_order_unclear",
            line,
            f"no date in this file shows whether the day or the month comes first in “{shorten_echo(cell)}”. Say so "
            "with the option date_order (day_first or month_first).",
        )
    return next((day_first for day_first in orders if day_first is not None), None)


def find_time_zone_or_refuse(name: str) -> tzinfo:
    """Return a time zone. Raises `Invalid` (`time_zone_unknown`)."""
    try:
        return UTC if name == "UTC" else ZoneInfo("" if name in NAMES_WITHOUT_ZONE else name)
    except (ValueError, OSError, KeyError):
        raise Invalid(
            f"There is no time zone “{shorten_echo(name)}”. Name one such as Europe/Berlin or UTC. "
            "Nothing was imported.",
            code="time_zone_unknown",
        ) from None
