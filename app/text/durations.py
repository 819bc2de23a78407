"""Durations as people read them."""

SECONDS_PER_MINUTE, SECONDS_PER_HOUR = 60, 3600
MAX_MINUTES_WITH_SECONDS = 10
MAX_HOURS_IN_MINUTES = 2


def format_duration(seconds: float | None) -> str:
    """Return a duration as `0:02`, `12 min` or `3 h 05 min`; a dash if it is unknown."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < MAX_MINUTES_WITH_SECONDS * SECONDS_PER_MINUTE:
        return f"{whole // SECONDS_PER_MINUTE}:{whole % SECONDS_PER_MINUTE:02}"
    minutes = round(seconds / SECONDS_PER_MINUTE)
    if minutes < MAX_HOURS_IN_MINUTES * SECONDS_PER_MINUTE:
        return f"{minutes} min"
    return f"{minutes // SECONDS_PER_MINUTE} h {minutes % SECONDS_PER_MINUTE:02} min"
