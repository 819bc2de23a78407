"""Cells of answer files: numbers and times as people and programs of any country write them, read by what the whole
file tells of them. Pure.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from app.crowd.moments import OrderUnknownError, ReadMoment, order_in, read_moment
from app.errors import Invalid, shortened
from app.upload import ReadAs, refuse

Decimal: TypeAlias = Literal["", "point", "comma"]
DateOrder: TypeAlias = Literal["", "day_first", "month_first"]

MISSING = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"))
COMMA_DECIMAL = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
POINT_DECIMAL = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")
EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 is a little more than one, or more than a thousand
PERCENT = re.compile(r"(.*\S)\s*%")
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
    decimal: Decimal = ""
    date_order: DateOrder = ""
    time_zone: str = "UTC"
    count_rejected: bool = False
    read_as: ReadAs = field(default_factory=ReadAs)


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

    comma: bool | None = None
    day_first: bool | None = None


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

    def number(self, cell: str, *, percent: bool) -> str:
        """Return a number as programs write it; other text as it is.

        Args:
            cell: A number with a decimal point or comma, perhaps with thousands apart.
            percent: Whether `35 %` is the number 35.

        """
        if PLAIN.fullmatch(cell) and not (self.formats and self.formats.comma):
            return cell
        if percent and (match := PERCENT.fullmatch(cell)):
            self.notes.percent += 1
            cell = match[1]
        bare = re.sub(r"(?<=\d)[\s'’](?=\d{3})", "", cell)
        if "," not in bare and not (self.formats and self.formats.comma):
            return bare
        if not (COMMA_DECIMAL.fullmatch(bare) or POINT_DECIMAL.fullmatch(bare)):
            return cell
        if self.formats is None:
            raise FormatsUnknownError
        if self.formats.comma and (COMMA_DECIMAL.fullmatch(bare) or re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+", bare)):
            self.notes.decimal_comma = True
            return bare.replace(".", "").replace(",", ".")
        if not self.formats.comma and POINT_DECIMAL.fullmatch(bare):
            return bare.replace(",", "")
        return bare if "," not in bare and "." not in bare else cell

    def moment(self, line: int, column: str, cell: str) -> ReadMoment | None:
        """Return the time in a cell, None if it is missing.

        Raises `Invalid` (`time_unreadable`, `time_in_future`).
        """
        if cell.lower() in MISSING:
            return None
        day_first = self.formats.day_first if self.formats else None
        try:
            moment = read_moment(cell, day_first=day_first, zone=find_zone(self.options.time_zone))
        except OrderUnknownError:
            if self.formats is None:
                raise FormatsUnknownError from None
            moment = None
        if moment is None:
            said = f"{column} is “{shortened(cell)}”, not a time such as 2026-01-31T15:04:05Z."
            refuse("time_unreadable", line, said, column=column)
        self.check_passed(line, column, cell, moment.at)
        if moment.naive:
            self.notes.time_zone = self.options.time_zone
        if day_first is not None:
            self.notes.date_order = "day_first" if day_first else "month_first"
        return moment

    def check_passed(self, line: int, column: str, cell: str, at: datetime) -> None:
        """Raise `Invalid` (`time_in_future`) for a time more than `CLOCK_SKEW` after now."""
        if at > self.now + CLOCK_SKEW:
            said = (
                f"{column} is “{shortened(cell)}”, a time that has not come yet. Check the year, the day and the month."
            )
            refuse("time_in_future", line, said, column=column)


def is_missing(cell: str, labels: Iterable[str]) -> bool:
    """Whether a cell says that there is no value, and is no label of the campaign."""
    return cell.lower() in MISSING and cell not in labels


Kind: TypeAlias = Literal["number", "time"]


def find_formats(cells: Iterable[tuple[int, Kind, str]], options: ReadingOptions) -> CellFormats:
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
            note_number(numbers, line, cell)
        elif needs_order(cell):
            orders.setdefault(order_in(cell), (line, cell))
    return CellFormats(decide_comma(numbers, options.decimal), decide_order(orders, options.date_order))


def note_number(numbers: dict[bool | None, tuple[int, str]], line: int, cell: str) -> None:
    match = PERCENT.fullmatch(cell)
    bare = re.sub(r"(?<=\d)[\s'’](?=\d{3})", "", match[1] if match else cell)
    if EITHER.fullmatch(bare):
        numbers.setdefault(None, (line, cell))
    elif "," in bare and COMMA_DECIMAL.fullmatch(bare):
        numbers.setdefault(True, (line, cell))
    elif ("," in bare or "." in bare) and POINT_DECIMAL.fullmatch(bare):
        numbers.setdefault(False, (line, cell))


def needs_order(cell: str) -> bool:
    try:
        read_moment(cell, day_first=None, zone=UTC)
    except OrderUnknownError:
        return True
    return False


def decide_comma(numbers: Mapping[bool | None, tuple[int, str]], chosen: Decimal) -> bool | None:
    """Whether numbers have decimal commas. Raises `Invalid` (`decimal_unclear`)."""
    if chosen:
        return chosen == "comma"
    if len(numbers.keys() - {None}) == 2:
        (line, comma), (other, point) = numbers[True], numbers[False]
        refuse(
            "decimal_unclear",
            max(line, other),
            f"“{comma}” on line {line} has a decimal comma, and “{point}” on line {other} a decimal point. Write all "
            "numbers one way, or say which with the option decimal (point or comma).",
        )
    if numbers.keys() == {None}:
        line, cell = numbers[None]
        refuse(
            "decimal_unclear",
            line,
            f"“{cell}” can be a number with a decimal comma, or one above a thousand. Say which with the option "
            "decimal (point or comma).",
        )
    return next((comma for comma in numbers if comma is not None), None)


def decide_order(orders: Mapping[bool | None, tuple[int, str]], chosen: DateOrder) -> bool | None:
    """Whether the day comes first. Raises `Invalid` (`date_order_unclear`)."""
    if chosen:
        return chosen == "day_first"
    if len(orders.keys() - {None}) == 2:
        (line, day), (other, month) = orders[True], orders[False]
        refuse(
            "date_order_unclear",
            max(line, other),
            f"“{day}” on line {line} has the day first, and “{month}” on line {other} the month. Write all dates one "
            "way, such as 2026-01-31.",
        )
    if orders.keys() == {None}:
        line, cell = orders[None]
        refuse(
            "date_order_unclear",
            line,
            f"no date of this file tells whether the day or the month comes first in “{shortened(cell)}”. Say so with "
            "the option date_order (day_first or month_first).",
        )
    return next((day_first for day_first in orders if day_first is not None), None)


def find_zone(name: str) -> tzinfo:
    """Return a time zone. Raises `Invalid` (`time_zone_unknown`)."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Invalid(
            f"There is no time zone “{shortened(name)}”. Name one such as Europe/Berlin or UTC. Nothing was imported.",
            code="time_zone_unknown",
        ) from None
