"""Periods of time that a text names, such as "30 days" or "10 Jahre", in the languages of annotators' pages."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Unit: the days that one of it can have, and its words in all languages.
DAYS_AND_WORDS_BY_UNIT = {
    "day": (1, 1, r"days?|Tage?n?|d[ií]as?|jours?|日|天|يوم\w*|أيام"),
    "week": (7, 7, r"weeks?|Wochen?|semanas?|semaines?|週|周|星期|أسابيع|أسبوع\w*"),
    "month": (28, 31, r"months?|Monate?n?|mes(?:es)?|mois|か月|ヶ月|カ月|个月|شهر\w*|أشهر"),
    "year": (365, 366, r"years?|Jahre?n?|años?|ans?|années?|年|سنوات|سنة|عام\w*|أعوام"),
}
THOUSANDS_SEPARATOR_PATTERN = re.compile(r"[.,\s]")

UNIT_GROUPS = "|".join(f"(?P<{unit}>(?:{words}))" for unit, (_, _, words) in DAYS_AND_WORDS_BY_UNIT.items())

# A number after a month in Japanese or Chinese is a date: 11月15日.
NUMBER_BEFORE_UNIT = r"(?<![\d.,月年])(\d{1,3}(?:[.,\s]\d{3})+|\d{1,5})\s*"
PERIOD_PATTERN = re.compile(rf"{NUMBER_BEFORE_UNIT}(?:{UNIT_GROUPS})(?![a-zà-ÿ])", re.IGNORECASE)


@dataclass(frozen=True)
class NamedPeriod:
    """A period that a text names; a month or a year can have several numbers of days."""

    unit: str
    min_days: int
    max_days: int

    def can_have_days(self, days: int) -> bool:
        return self.min_days <= days <= self.max_days


def find_named_periods(text: str) -> list[NamedPeriod]:
    """Return all periods that a text names with a number and a unit."""
    periods = []
    for match in PERIOD_PATTERN.finditer(text):
        number = int(THOUSANDS_SEPARATOR_PATTERN.sub("", match[1]))
        unit = str(match.lastgroup)
        min_days, max_days, _ = DAYS_AND_WORDS_BY_UNIT[unit]
        periods.append(NamedPeriod(unit, number * min_days, number * max_days))
    return periods


def days_not_named(day_counts: Iterable[int], periods: Iterable[NamedPeriod]) -> set[int]:
    """Return the numbers of days that none of these periods can have."""
    periods = [*periods]
    return {days for days in day_counts if not any(period.can_have_days(days) for period in periods)}
