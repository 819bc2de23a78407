"""Parsing of times in the formats of programs and spreadsheets of any country. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

# PostgreSQL cannot store Python's earliest time with a zone, and no answer is older than this.
EARLIEST_TIME = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_UNITS_BY_DIGITS = {10: 1, 13: 1_000, 16: 1_000_000}  # units per second, by the digits of a time after 2001
EPOCH_PATTERN = re.compile(r"([0-9]{10}|[0-9]{13}|[0-9]{16})(\.[0-9]+)?")
CLOCK_PATTERN = (
    r"(?:[T,]?\s*(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?)?"
)
ZONE_PATTERN = r"(?:\s*(?P<zone>Z|UTC|GMT|Uhr|[+-]\d{2}:?\d{2}))?"
ENGLISH_MONTH_PREFIXES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH_NAME_PATTERN = f"(?P<name>(?:{'|'.join(ENGLISH_MONTH_PREFIXES)})[a-z]*)"
NUMERIC_DATE_PATTERN = re.compile(
    rf"(?P<a>\d{{1,4}})(?P<mark>[./-])(?P<b>\d{{1,2}})(?P=mark)(?P<c>\d{{4}}|\d{{1,2}})\s*{CLOCK_PATTERN}{ZONE_PATTERN}",
    re.ASCII | re.IGNORECASE,
)
DAY_FIRST_DATE_PATTERN = rf"(?P<day>\d{{1,2}})[ -]{MONTH_NAME_PATTERN}[.,]?[ -](?P<year>\d{{4}})"
MONTH_FIRST_DATE_PATTERN = rf"{MONTH_NAME_PATTERN}\.? (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})"
NAMED_DATE_PATTERNS = tuple(
    re.compile(rf"(?:[a-z]{{3,9}},?\s+)?{date}\s*{CLOCK_PATTERN}{ZONE_PATTERN}", re.ASCII | re.IGNORECASE)
    for date in (DAY_FIRST_DATE_PATTERN, MONTH_FIRST_DATE_PATTERN)
)
# Format of Mechanical Turk and of `date`: Tue Apr 10 12:04:05 PDT 2018.
UNIX_DATE_PATTERN = re.compile(
    rf"[a-z]{{3}} {MONTH_NAME_PATTERN} +(?P<day>\d{{1,2}}) (?P<hour>\d{{2}}):(?P<minute>\d{{2}}):(?P<second>\d{{2}}) "
    r"(?P<zone>PST|PDT|MST|MDT|CST|CDT|EST|EDT|UTC|GMT) (?P<year>\d{4})",
    re.ASCII | re.IGNORECASE,
)
HOURS_BY_ZONE = {"PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4}


class DateOrderUnknownError(Exception):
    """Day and month cannot be told apart without the other dates of the file."""


@dataclass(frozen=True)
class ParsedTime:
    """Parsed time. `is_naive` is true if the text names no zone, so that the assumed one was used."""

    time: datetime
    is_naive: bool = False


def parse_file_time_or_none(text: str, *, day_first: bool | None, zone: tzinfo) -> ParsedTime | None:
    """Return the time that a text names; None if it names none, or an impossible one.

    Args:
        text: ISO 8601, seconds or milliseconds since 1970, a date in numbers with the year last, or with an English
            month.
        day_first: True if the day comes before the month in numeric dates; None if that is not known.
        zone: Zone of times that name none.

    Raises:
        DateOrderUnknownError: The order matters and is not known.

    """
    try:
        time = (
            parse_epoch_time_or_none(text)
            or parse_iso_time_or_none(text)
            or parse_mturk_date_or_none(text)
            or parse_date_with_month_name_or_none(text)
            or parse_numeric_date_or_none_or_raise(text, day_first=day_first)
        )
        if time is None:
            return None
        is_naive = time.tzinfo is None
        moment = (time.replace(tzinfo=zone) if is_naive else time).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return ParsedTime(moment, is_naive) if moment >= EARLIEST_TIME else None


def parse_epoch_time_or_none(text: str) -> datetime | None:
    """Return the time given in seconds, milliseconds or microseconds since 1970."""
    match = EPOCH_PATTERN.fullmatch(text)
    return datetime.fromtimestamp(float(text) / EPOCH_UNITS_BY_DIGITS[len(match[1])], UTC) if match else None


def parse_iso_time_or_none(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def parse_mturk_date_or_none(text: str) -> datetime | None:
    """Return a time in Mechanical Turk's format. Raises ValueError."""
    match = UNIX_DATE_PATTERN.fullmatch(text)
    return time_of_date_and_clock_match(match, month_number_of_english_name(match["name"])) if match else None


def parse_date_with_month_name_or_none(text: str) -> datetime | None:
    """Return a date whose month has an English name."""
    match = next(filter(None, (pattern.fullmatch(text) for pattern in NAMED_DATE_PATTERNS)), None)
    return time_of_date_and_clock_match(match, month_number_of_english_name(match["name"])) if match else None


def parse_numeric_date_or_none_or_raise(text: str, *, day_first: bool | None) -> datetime | None:
    """Return a date in numbers. Raises `DateOrderUnknownError`."""
    match = NUMERIC_DATE_PATTERN.fullmatch(text)
    if match is None:
        return None
    first, second, last = (int(match[part]) for part in ("a", "b", "c"))
    if len(match["a"]) == 4:
        return time_of_date_and_clock_match(match, second, day=last, year=first)
    if len(match["a"]) > 2:
        return None
    if day_first is None:
        raise DateOrderUnknownError
    day, month = (first, second) if day_first else (second, first)
    return time_of_date_and_clock_match(match, month, day=day, year=last if len(match["c"]) == 4 else 2000 + last)


def time_of_date_and_clock_match(
    match: re.Match[str], month: int, *, day: int | None = None, year: int | None = None
) -> datetime:
    """Return a date with the clock and the zone of a match. Raises ValueError."""
    clock = match.groupdict()
    hour, minute, second = (int(clock.get(part) or 0) for part in ("hour", "minute", "second"))
    if half := (clock.get("half") or "").lower()[:1]:
        if not 1 <= hour <= 12:
            raise ValueError(match[0])
        hour = hour % 12 + 12 * (half == "p")
    year = int(match["year"]) if year is None else year
    day = int(match["day"]) if day is None else day
    time = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    zone = (clock.get("zone") or "").upper()
    return time if zone in ("", "UHR") else time.replace(tzinfo=parse_time_zone_offset(zone))


def parse_time_zone_offset(zone: str) -> timezone:
    if zone in ("Z", "UTC", "GMT"):
        return UTC
    if zone in HOURS_BY_ZONE:
        return timezone(timedelta(hours=HOURS_BY_ZONE[zone]))
    sign = -1 if zone[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])))


def month_number_of_english_name(name: str) -> int:
    return ENGLISH_MONTH_PREFIXES.index(name[:3].lower()) + 1


def is_day_first_or_none(text: str) -> bool | None:
    """Return whether a numeric date has its day first; None if it is ambiguous."""
    match = NUMERIC_DATE_PATTERN.fullmatch(text)
    if match is None or len(match["a"]) > 2:
        return None
    first, second = int(match["a"]), int(match["b"])
    if (first > 12) == (second > 12):
        return None
    return first > 12
