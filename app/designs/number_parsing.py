"""Parsers of numbers as people and programs write them."""

import re

SIGNS_TO_ASCII = str.maketrans(
    {start + digit: str(digit) for start in (0x660, 0x6F0, 0xFF10) for digit in range(10)}
    | {ord(other): sign for other, sign in zip("٫．，＋－", "..,+-", strict=True)}
)
THOUSANDS_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
DECIMAL_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WHOLE_NUMBER = re.compile(r"[0-9]{1,19}")
MAX_COUNT = 2**31 - 1  # of milliseconds or changes: what a column holds


def parse_strict_decimal(text: str) -> float:
    """Parse a number of ASCII digits, perhaps with a sign, a point, an exponent. Raises ValueError for other text.

    `float` alone also takes `1_0`, and digits of other scripts that look like other numbers.
    """
    if not DECIMAL_NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


class AmbiguousNumber(ValueError):
    """A number that can be read as two different numbers."""


def parse_localized_decimal_or_refuse(text: str) -> float:
    """Return a number as a person types it: with a point or a comma, in Latin, Arabic, Persian or full-width digits.

    Raises:
        AmbiguousNumber: The comma may group thousands, as in 1,000.
        ValueError: This is not a number.

    """
    ascii_text = text.translate(SIGNS_TO_ASCII)
    if THOUSANDS_GROUPED.fullmatch(ascii_text):
        raise AmbiguousNumber(text)
    return parse_strict_decimal(ascii_text.replace(",", ".", 1))


def parse_nonnegative_int_or_none(text: str | None, *, maximum: int = MAX_COUNT) -> int | None:
    """Return a non-negative integer up to `maximum`, or None."""
    if not WHOLE_NUMBER.fullmatch(text or ""):
        return None
    number = int(text or "")
    return number if number <= maximum else None
