"""Rate of incoming answers and forecast of the end. Pure: counts per minute in, bars and words out.

A rate divides by the time in which its answers came: a bar that begins with the first answer, or is not over yet,
counts only its elapsed part. `first_answer_time` and `now` are in seconds since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

PACE_HOURS_SHOWN = 24
BAR_MINUTES = (1, 5, 15, 60)
MAX_PACE_BARS = 30
# The first and last bar of the chart are often partial; a part smaller than this is merged with its neighbour.
MIN_BAR_SHARE = 1 / 6
# A rate or a forecast from fewer answers is a guess.
MIN_HITS_FOR_RATE = 3
MIN_SECONDS_FOR_RATE = 10
MIN_SPAN_FOR_FORECAST = timedelta(minutes=1)
# After this much silence the rate of the last hour no longer predicts the next one.
MIN_SILENT_MINUTES = 10


@dataclass(frozen=True)
class Pace:
    """HITs per hour in bars; the first begins `start_minute` minutes after the start of 1970, the last ends now."""

    start_minute: int
    bar_minutes: int
    hits_per_hour: list[int]


def build_bars_of_hits_per_hour(hits_by_minute: Mapping[int, int], first_answer_time: float, now: float) -> Pace:
    """Return bars aligned to the clock, from the first answer, but at most 24 hours ago, until now."""
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
            hits_per_hour_without_first_hit(counts[0], edges[1] - first_answer_time),
        )
    return Pace(start * minutes, minutes, [round(hits) for hits in bars])


def hits_per_hour_without_first_hit(hit_count: int, seconds: float) -> float:
    """Return HITs per hour in a time that begins with an answer, which starts the clock and is not counted."""
    return (hit_count - 1) * 3600 / seconds if seconds >= MIN_SECONDS_FOR_RATE else 0.0


def recent_hit_count_and_hits_per_hour_or_none(
    hits_by_minute: Mapping[int, int], first_answer_time: float, now: float
) -> tuple[int, float] | None:
    """Return the HITs of the last hour, or since a later first answer, and the rate per hour.

    None while there are too few answers.
    """
    begin = (now // 60 - 59) * 60
    hits = sum(count for minute, count in hits_by_minute.items() if begin // 60 <= minute <= now // 60)
    if first_answer_time < begin:
        return hits, hits * 3600 / (now - begin)
    if hits < MIN_HITS_FOR_RATE or now - first_answer_time < MIN_SECONDS_FOR_RATE:
        return None
    return hits, hits_per_hour_without_first_hit(hits, now - first_answer_time)


def forecast_hours_to_completion_or_none(
    judgments_left: int,
    judgments_per_hit: float,
    recent_rate: tuple[int, float] | None,
    time_since_first_answer: timedelta,
) -> float | None:
    """Return how many hours the rest takes at the recent rate, or None if there is too little to forecast from.

    Args:
        judgments_left: Judgments still wanted.
        judgments_per_hit: Judgments per HIT.
        recent_rate: Result of `recent_hit_count_and_hits_per_hour_or_none`.
        time_since_first_answer: No forecast is made from less than `MIN_SPAN_FOR_FORECAST`.

    """
    if (
        judgments_left <= 0
        or recent_rate is None
        or recent_rate[0] < MIN_HITS_FOR_RATE
        or time_since_first_answer < MIN_SPAN_FOR_FORECAST
    ):
        return None
    return judgments_left / judgments_per_hit / recent_rate[1]


def text_on_time_without_answers_or_none(hits_by_minute: Mapping[int, int], now_minute: int) -> str | None:
    """Return how long no answer came, in words, or None while answers come in."""
    minutes = now_minute - max(hits_by_minute, default=now_minute - PACE_HOURS_SHOWN * 60)
    if minutes < MIN_SILENT_MINUTES:
        return None
    return (
        f"no answer for {format_hours_in_words(minutes / 60)}"
        if minutes < PACE_HOURS_SHOWN * 60
        else "no answer for a day or more"
    )


def format_hours_in_words(hours: float) -> str:
    """Return hours in words: `40 min`, `6 h`, `3 days`."""
    if hours < 1.5:
        return f"{max(1, round(hours * 60))} min"
    return f"{round(hours)} h" if hours < 48 else f"{round(hours / 24)} days"
