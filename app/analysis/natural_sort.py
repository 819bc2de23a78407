"""Sort order of names of items, annotators and the like."""

import math
import re


def natural_sort_key(name: str) -> tuple[float, str]:
    """Return a key that sorts whole numbers first and as numbers, then other names without regard to case."""
    return (float(name) if re.fullmatch(r"-?\d+", name) else math.inf, name.casefold())
