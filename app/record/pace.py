"""How fast answers come in, and when the campaign will be done. Pure: counts per minute in, bars and words out.

A rate divides by the time in which its answers came: what begins with the first answer, or is not over yet, is not
counted as if it had been whole. `first` and `now` are seconds since 1970, of the first answer and of this moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

HOURS_SHOWN = 24
BAR_MINUTES = (1, 5, 15, 60)
MOST_BARS = 30
# The ends of the chart are often parts of a bar; from a smaller part no rate is made, it goes with its neighbour.
LEAST_OF_A_BAR = 1 / 6
# A rate or a forecast from less is a guess.
FEWEST_HITS = 3
SHORTEST_SECONDS = 10
SHORTEST_SPAN = timedelta(minutes=1)
# After so long without an answer the last hour's rate is no longer that of what comes.
QUIET_MINUTES = 10


@dataclass(frozen=True)
class Pace:
    """HITs per hour in bars; the first begins `start_minute` minutes after 1970, the last ends now."""

    start_minute: int
    bar_minutes: int
    hits_per_hour: list[int]


def pace(per_minute: Mapping[int, int], first: float, now: float) -> Pace:
    """Bars on the clock, from the first answer, or from 24 hours ago, until now. `per_minute`: HITs by minute."""
    begin = max(first, now - HOURS_SHOWN * 3600)
    minutes = next((bar for bar in BAR_MINUTES if now // 60 - begin // 60 < bar * MOST_BARS), BAR_MINUTES[-1])
    width = minutes * 60
    start, end = int(begin // width), int(now // width)
    start += start < end and (start + 1) * width - begin < width * LEAST_OF_A_BAR
    end -= start < end and now - end * width < width * LEAST_OF_A_BAR
    counts = [0] * (end - start + 1)
    for minute, hits in per_minute.items():
        if begin // 60 <= minute <= now // 60:
            counts[min(max(minute // minutes - start, 0), end - start)] += hits
    edges = [begin, *(bar * width for bar in range(start + 1, end + 1)), now]
    bars = [hits * 3600 / max(until - since, 1) for hits, (since, until) in zip(counts, pairwise(edges), strict=True)]
    if begin == first:
        bars[0] = max(counts[0] * 3600 / max(width, edges[1] - first), since_first(counts[0], edges[1] - first))
    return Pace(start * minutes, minutes, [round(hits) for hits in bars])


def since_first(hits: int, seconds: float) -> float:
    """HITs per hour of a time that begins with an answer: that one starts the clock and was not waited for."""
    return (hits - 1) * 3600 / seconds if seconds >= SHORTEST_SECONDS else 0.0


def recent_rate(per_minute: Mapping[int, int], first: float, now: float) -> tuple[int, float] | None:
    """HITs in the last hour, or since the first answer if that is less long ago, and how many an hour that makes.

    None while there is too little to say.
    """
    begin = (now // 60 - 59) * 60
    hits = sum(count for minute, count in per_minute.items() if begin // 60 <= minute <= now // 60)
    if first < begin:
        return hits, hits * 3600 / (now - begin)
    if hits < FEWEST_HITS or now - first < SHORTEST_SECONDS:
        return None
    return hits, since_first(hits, now - first)


def forecast(
    judgments_left: int, items_per_hit: int, recent: tuple[int, float] | None, span: timedelta
) -> float | None:
    """How many hours it takes at the recent rate; None when there is too little to say.

    span: the time since the first answer.
    """
    if judgments_left <= 0 or recent is None or recent[0] < FEWEST_HITS or span < SHORTEST_SPAN:
        return None
    return judgments_left / items_per_hit / recent[1]


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
