"""Numbers as pages show them."""

import math

MISSING_VALUE_DASH = "–"


def format_with_places(value: float | None, places: int) -> str:
    """Return a number with a fixed number of decimals and a true minus sign, or a dash for a missing value."""
    if value is None or not math.isfinite(value):
        return MISSING_VALUE_DASH
    return replace_hyphen_by_minus_sign(f"{round(value, places) + 0.0:,.{places}f}")


def replace_hyphen_by_minus_sign(number: str) -> str:
    """Return a number in words with a true minus sign, not the hyphen of programs."""
    return number.replace("-", "−")
