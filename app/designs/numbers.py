"""Numbers as people and programs write them."""

import re

DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[0-9]{1,19}")
LARGEST_COUNT = 2**31 - 1  # of milliseconds or changes: what a column holds


def decimal(text: str) -> float:
    """A number of ASCII digits, perhaps with a sign, a point, an exponent. Else ValueError.

    `float` alone also takes `1_0`, and digits of other scripts that look like other numbers.
    """
    if not DECIMAL.fullmatch(text):
        raise ValueError(text)
    return float(text)


def whole_number(raw: str | None, *, most: int = LARGEST_COUNT) -> int | None:
    """A non-negative integer up to `most`, or None."""
    if not WHOLE.fullmatch(raw or ""):
        return None
    number = int(raw or "")
    return number if number <= most else None
