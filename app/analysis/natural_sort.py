"""The order of names of items, annotators and the like."""

import math
import re


def natural_sort_key(name: str) -> tuple[float, str]:
    """By this, names are sorted: whole numbers first and as numbers, then the others without regard to capitals."""
    return (float(name) if re.fullmatch(r"-?\d+", name) else math.inf, name.casefold())
