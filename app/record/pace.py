"""How fast answers come in, and when the campaign will be done. Pure: counts per minute in, bars and words out.

A rate divides by the time in which its answers came: what begins with the first answer, or is not over yet, is not
counted as if it had been whole. `first` and `now` are seconds since 1970, of the first answer and of this moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

PACE_HOURS_SHOWN = 24
BAR_MINUTES = (1, 5, 15, 60)
MAX_PACE_BARS = 30
# The ends of the chart are often parts of a bar; from a smaller part no rate is made, it goes with its neighbour.
MIN_BAR_SHARE = 1 / 6
# A rate or a forecast from less is a guess.
MIN_HITS_FOR_RATE = 3
MIN_SECONDS_FOR_RATE = 10
MIN_SPAN_FOR_FORECAST = timedelta(minutes=1)
# After so long without an answer the last hour's rate is no longer that of what comes.
MIN_SILENT_MINUTES = 10


@dataclass(frozen=True)
class Pace:
    """HITs per hour in bars; the first begins `start_minute` minutes after 1970, the last ends now."""

    start_minute: int
    bar_minutes: int
    hits_per_hour: list[int]


def pace_bars(hits_by_minute: Mapping[int, int], first_answer_time: float, now: float) -> Pace:
    """Bars on the clock, from the first answer, or from 24 hours ago, until now. `per_minute`: HITs by minute."""
    begin = max(first_answer_time, now - PACE_HOURS_SHOWN * 3600)
    minutes = next((bar for bar in BAR_MINUTES if now // 60 - begin // 60 < bar * MAX_PACE_BARS), BAR_MINUTES[-1])
    width = minutes * 60
    start, end = int(begin // width), int(now // width)
    start += start < end and (start + 1) * width - begin < width * MIN_BAR_SHARE
    end -= start < end and now - end * width < width * MIN_BAR_SHARE
    counts = [0] * (end - start + 1)
    for minute, hits in hits_by_minute.items():
        if begin // 60 <= minute <= now // 60:
            counts[min(max(minute // minutes - start, 0), end - start)] += hits
    edges = [begin, *(bar * width for bar in range(start + 1, end + 1)), now]
    bars = [hits * 3600 / max(until - since, 1) for hits, (since, until) in zip(counts, pairwise(edges), strict=True)]
    if begin == first_answer_time:
        bars[0] = max(
            counts[0] * 3600 / max(width, edges[1] - first_answer_time),
            hourly_rate_after_first_hit(counts[0], edges[1] - first_answer_time),
        )
    return Pace(start * minutes, minutes, [round(hits) for hits in bars])


def hourly_rate_after_first_hit(hits: int, seconds: float) -> float:
    """HITs per hour of a time that begins with an answer: that one starts the clock and was not waited for."""
    return (hits - 1) * 3600 / seconds if seconds >= MIN_SECONDS_FOR_RATE else 0.0


def recent_hits_and_hourly_rate(
    hits_by_minute: Mapping[int, int], first_answer_time: float, now: float
) -> tuple[int, float] | None:
    """HITs in the last hour, or since the first answer if that is less long ago, and how many an hour that makes.

    None while there is too little to say.
    """
    begin = (now // 60 - 59) * 60
    hits = sum(count for minute, count in hits_by_minute.items() if begin // 60 <= minute <= now // 60)
    if first_answer_time < begin:
        return hits, hits * 3600 / (now - begin)
    if hits < MIN_HITS_FOR_RATE or now - first_answer_time < MIN_SECONDS_FOR_RATE:
        return None
    return hits, hourly_rate_after_first_hit(hits, now - first_answer_time)


def hours_to_completion(
    judgments_left: int, items_per_hit: int, recent_rate: tuple[int, float] | None, time_since_first_answer: timedelta
) -> float | None:
    """How many hours it takes at the recent rate; None when there is too little to say.

    span: the time since the first answer.
    """
    if (
        judgments_left <= 0
        or recent_rate is None
        or recent_rate[0] < MIN_HITS_FOR_RATE
        or time_since_first_answer < MIN_SPAN_FOR_FORECAST
    ):
        return None
    return judgments_left / items_per_hit / recent_rate[1]


def describe_silence(hits_by_minute: Mapping[int, int], now_minute: int) -> str | None:
    """How long nobody has answered, in words; None while answers come in."""
    minutes = now_minute - max(hits_by_minute, default=now_minute - PACE_HOURS_SHOWN * 60)
    if minutes < MIN_SILENT_MINUTES:
        return None
    return (
        f"no answer for {format_hours(minutes / 60)}"
        if minutes < PACE_HOURS_SHOWN * 60
        else "no answer for a day or more"
    )


def format_hours(hours: float) -> str:
    """Hours as a person would say them: `40 min`, `6 h`, `3 days`."""
    if hours < 1.5:
        return f"{max(1, round(hours * 60))} min"
    return f"{round(hours)} h" if hours < 48 else f"{round(hours / 24)} days"
