"""Times as programs and spreadsheets of any country write them. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

# PostgreSQL has no zone for the first moment that Python knows, and nobody answered before this one.
FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_UNITS = {10: 1, 13: 1_000, 16: 1_000_000}  # parts of a second, by the digits of a time after 2001
EPOCH = re.compile(r"([0-9]{10}|[0-9]{13}|[0-9]{16})(\.[0-9]+)?")
CLOCK = (
    r"(?:[T,]?\s*(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?)?"
)
ZONE = r"(?:\s*(?P<zone>Z|UTC|GMT|Uhr|[+-]\d{2}:?\d{2}))?"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NAME = f"(?P<name>(?:{'|'.join(MONTHS)})[a-z]*)"
NUMERIC = re.compile(
    rf"(?P<a>\d{{1,4}})(?P<mark>[./-])(?P<b>\d{{1,2}})(?P=mark)(?P<c>\d{{4}}|\d{{1,2}})\s*{CLOCK}{ZONE}",
    re.ASCII | re.IGNORECASE,
)
DAY_NAMED = rf"(?P<day>\d{{1,2}})[ -]{NAME}[.,]?[ -](?P<year>\d{{4}})"
MONTH_NAMED = rf"{NAME}\.? (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})"
NAMED = tuple(
    re.compile(rf"(?:[a-z]{{3,9}},?\s+)?{date}\s*{CLOCK}{ZONE}", re.ASCII | re.IGNORECASE)
    for date in (DAY_NAMED, MONTH_NAMED)
)
# How Mechanical Turk and `date` write them: Tue Apr 10 12:04:05 PDT 2018.
UNIX = re.compile(
    rf"[a-z]{{3}} {NAME} +(?P<day>\d{{1,2}}) (?P<hour>\d{{2}}):(?P<minute>\d{{2}}):(?P<second>\d{{2}}) "
    r"(?P<zone>PST|PDT|MST|MDT|CST|CDT|EST|EDT|UTC|GMT) (?P<year>\d{4})",
    re.ASCII | re.IGNORECASE,
)
HOURS = {"PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4}


class OrderUnknownError(Exception):
    """Day and month cannot be told apart without the other dates of the file."""


@dataclass(frozen=True)
class ReadMoment:
    """A time. naive: the text names no zone, so the assumed one was taken."""

    at: datetime
    naive: bool = False


def read_moment(text: str, *, day_first: bool | None, zone: tzinfo) -> ReadMoment | None:
    """Return the time that a text names; None if it names none, or one that cannot be.

    Args:
        text: ISO 8601, seconds or milliseconds since 1970, a date in numbers with the year last, or with an English
            month.
        day_first: Whether the day comes before the month where both are numbers; None if that is not known.
        zone: Zone of times that name none.

    Raises:
        OrderUnknownError: The order matters and is not known.

    """
    try:
        at = (
            read_epoch(text)
            or read_iso(text)
            or read_unix_time(text)
            or read_named_date(text)
            or read_numeric_date(text, day_first=day_first)
        )
        if at is None:
            return None
        naive = at.tzinfo is None
        moment = (at.replace(tzinfo=zone) if naive else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return ReadMoment(moment, naive) if moment >= FIRST_MOMENT else None


def read_epoch(text: str) -> datetime | None:
    """Return the time that is given in seconds, or parts of seconds, since the beginning of 1970."""
    match = EPOCH.fullmatch(text)
    return datetime.fromtimestamp(float(text) / EPOCH_UNITS[len(match[1])], UTC) if match else None


def read_iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def read_unix_time(text: str) -> datetime | None:
    """Return a time as Mechanical Turk writes it. Raises ValueError."""
    match = UNIX.fullmatch(text)
    return moment_in_zone(match, month_number(match["name"])) if match else None


def read_named_date(text: str) -> datetime | None:
    """Return a date whose month has an English name."""
    match = next(filter(None, (pattern.fullmatch(text) for pattern in NAMED)), None)
    return moment_in_zone(match, month_number(match["name"])) if match else None


def read_numeric_date(text: str, *, day_first: bool | None) -> datetime | None:
    """Return a date in numbers. Raises `OrderUnknownError`."""
    match = NUMERIC.fullmatch(text)
    if match is None:
        return None
    first, second, last = (int(match[part]) for part in ("a", "b", "c"))
    if len(match["a"]) == 4:
        return moment_in_zone(match, second, day=last, year=first)
    if len(match["a"]) > 2:
        return None
    if day_first is None:
        raise OrderUnknownError
    day, month = (first, second) if day_first else (second, first)
    return moment_in_zone(match, month, day=day, year=last if len(match["c"]) == 4 else 2000 + last)


def moment_in_zone(match: re.Match[str], month: int, *, day: int | None = None, year: int | None = None) -> datetime:
    """Return a date with the clock and the zone of a match. Raises ValueError."""
    clock = match.groupdict()
    hour, minute, second = (int(clock.get(part) or 0) for part in ("hour", "minute", "second"))
    if half := (clock.get("half") or "").lower()[:1]:
        if not 1 <= hour <= 12:
            raise ValueError(match[0])
        hour = hour % 12 + 12 * (half == "p")
    at = datetime(year or int(match["year"]), month, day or int(match["day"]), hour, minute, second)  # noqa: DTZ001
    zone = (clock.get("zone") or "").upper()
    return at if zone in ("", "UHR") else at.replace(tzinfo=zone_of_abbreviation(zone))


def zone_of_abbreviation(zone: str) -> timezone:
    if zone in ("Z", "UTC", "GMT"):
        return UTC
    if zone in HOURS:
        return timezone(timedelta(hours=HOURS[zone]))
    sign = -1 if zone[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])))


def month_number(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1


def order_in(text: str) -> bool | None:
    """Whether a date in numbers has its day first; None if they do not tell."""
    match = NUMERIC.fullmatch(text)
    if match is None or len(match["a"]) > 2:
        return None
    first, second = int(match["a"]), int(match["b"])
    if (first > 12) == (second > 12):
        return None
    return first > 12
