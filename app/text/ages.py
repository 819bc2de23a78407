"""How long ago something happened, as pages show it."""

from datetime import datetime, timedelta

MAX_MINUTES, MAX_HOURS, MAX_DAYS = 90, 36, 14  # shown in minutes, hours or days; older moments are dates


def describe_age(moment: datetime, now: datetime) -> str:
    """Return how long ago a moment was, as `26 min ago`, `3 h ago` or `2 days ago`; the date if it is older."""
    age = max(timedelta(), now - moment)
    minutes, hours = age // timedelta(minutes=1), round(age / timedelta(hours=1))
    if minutes < 1:
        return "just now"
    if minutes < MAX_MINUTES:
        return f"{minutes} min ago"
    if hours < MAX_HOURS:
        return f"{hours} h ago"
    days = round(age / timedelta(days=1))
    return f"{days} days ago" if days <= MAX_DAYS else f"{moment:%Y-%m-%d}"
