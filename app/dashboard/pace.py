"""How fast answers come in, and when the campaign will be done. Pure: counts per minute in, bars and words out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

HOURS_SHOWN = 24
BAR_MINUTES = (1, 5, 15, 60)
MOST_BARS = 30
# A forecast from less is a guess.
FEWEST_HITS = 3
SHORTEST_SPAN = timedelta(minutes=1)
# After so long without an answer the last hour's rate is no longer that of what comes.
QUIET_MINUTES = 10


@dataclass(frozen=True)
class Pace:
    """HITs per hour in bars; the first begins `start_minute` minutes after 1970, the last still fills."""

    start_minute: int
    bar_minutes: int
    hits_per_hour: list[int]


def pace(per_minute: Mapping[int, int], first_minute: int, now_minute: int) -> Pace:
    """Bars from the first answer, or from 24 hours ago, until now. `per_minute`: HITs by minute since 1970."""
    begin = max(first_minute, now_minute - HOURS_SHOWN * 60 + 1)
    bar = next((width for width in BAR_MINUTES if now_minute - begin < width * MOST_BARS), BAR_MINUTES[-1])
    start = begin - begin % bar
    counts = [0] * ((now_minute - start) // bar + 1)
    for minute, hits in per_minute.items():
        if start <= minute <= now_minute:
            counts[(minute - start) // bar] += hits
    return Pace(start, bar, [hits * 60 // bar for hits in counts])


def recent_rate(per_minute: Mapping[int, int], first_minute: int, now_minute: int) -> tuple[int, float]:
    """HITs in the last hour (or since the first answer, if that is less long ago), and how many an hour that makes.

    It counts whole minutes, as the bars do, so that both say the same of a campaign that has just begun.
    """
    hits = sum(count for minute, count in per_minute.items() if now_minute - 60 < minute <= now_minute)
    minutes = min(60, now_minute - first_minute + 1)
    return hits, hits * 60 / minutes


def forecast(judgments_left: int, items_per_hit: int, recent: tuple[int, float], span: timedelta) -> str | None:
    """How long it takes at the recent rate, in words; None when there is too little to say.

    span: the time since the first answer.
    """
    hits, per_hour = recent
    if judgments_left <= 0 or hits < FEWEST_HITS or span < SHORTEST_SPAN:
        return None
    return duration(judgments_left / items_per_hit / per_hour)


def silence(per_minute: Mapping[int, int], now_minute: int) -> str | None:
    """How long nobody has answered, in words; None while answers come in."""
    minutes = now_minute - max(per_minute, default=now_minute - HOURS_SHOWN * 60)
    if minutes < QUIET_MINUTES:
        return None
    return f"no answer for {duration(minutes / 60)}" if minutes < HOURS_SHOWN * 60 else "no answer for a day or more"


def duration(hours: float) -> str:
    """Hours as a person would say them: `40 min`, `6 h`, `3 days`."""
    if hours < 1.5:
        return f"{max(1, round(hours * 60))} min"
    return f"{round(hours)} h" if hours < 48 else f"{round(hours / 24)} days"
