"""Time at work: seconds from getting a HIT to its answer, without the time in which the HIT was only left open."""

import numpy as np
import numpy.typing as npt

MIN_OWN_TIMES = 5  # fewer HITs of an annotator do not show their usual time
LEFT_OPEN_FACTOR = 5.0  # times the usual time: too long to be work
LEFT_OPEN_SECONDS = 60.0  # shorter times always count as work, since short HITs vary more
MIN_USUAL_SECONDS = 1.0  # of a HIT; faster answers are a program's
MIN_SECONDS_PER_ITEM = 0.5  # to look at an item and choose between two known answers, with nothing to read
MIN_TASKS_FOR_HOURLY_PAY = 10  # the times of fewer, of a person or of a test, say little about pay per hour


def total_work_seconds(times: npt.ArrayLike, usual_seconds_in_campaign: float | None = None) -> float:
    """Return how long an annotator worked on HITs, in seconds.

    A HIT that took more than `LEFT_OPEN_FACTOR` times the usual time, and more than `LEFT_OPEN_SECONDS`, was left open:
    it counts as one of the usual time. Usual is the annotator's own median, the lower one of two; for fewer than
    `MIN_OWN_TIMES` HITs the campaign's where it is shorter.

    Args:
        times: Seconds from getting each HIT to its answer, (n,).
        usual_seconds_in_campaign: The median over all annotators, None if it is not known.

    """
    seconds = np.sort(np.maximum(np.asarray(times, np.float64), 0.0))
    if not len(seconds):
        return 0.0
    usual = float(seconds[(len(seconds) - 1) // 2])
    if len(seconds) < MIN_OWN_TIMES and usual_seconds_in_campaign is not None:
        usual = min(usual, usual_seconds_in_campaign)
    left_open = seconds > max(LEFT_OPEN_SECONDS, LEFT_OPEN_FACTOR * usual)
    return float(np.where(left_open, usual, seconds).sum())


def is_faster_than_reading(
    median_seconds: float | None, median_seconds_per_item: float | None, timed_hit_count: int
) -> bool:
    """Return whether an annotator usually answers faster than anyone can read and answer.

    Compares with no other annotator, so it also holds for the first one of a campaign.

    Args:
        median_seconds: Median seconds per HIT, None if unknown.
        median_seconds_per_item: Median seconds of a HIT per item that it shows, None if unknown.
        timed_hit_count: Number of HITs with a known time; fewer than `MIN_OWN_TIMES` show nothing.

    """
    if median_seconds is None or median_seconds_per_item is None or timed_hit_count < MIN_OWN_TIMES:
        return False
    return median_seconds < MIN_USUAL_SECONDS or median_seconds_per_item < MIN_SECONDS_PER_ITEM
