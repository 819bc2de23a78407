from datetime import timedelta

import pytest

from app.record.pace import (
    Pace,
    build_bars_of_hits_per_hour,
    forecast_hours_to_completion_or_none,
    format_hours_in_words,
    recent_hit_count_and_hits_per_hour_or_none,
    text_on_time_without_answers_or_none,
)


def test_a_young_campaign_has_bars_of_a_minute():
    assert build_bars_of_hits_per_hour({100: 2, 102: 1}, 100 * 60, 103 * 60) == Pace(100, 1, [120, 0, 60])


def test_bars_widen_so_that_there_are_never_many():
    assert build_bars_of_hits_per_hour({}, 0, 29 * 60).bar_minutes == 1
    assert build_bars_of_hits_per_hour({}, 0, 30 * 60).bar_minutes == 5
    assert build_bars_of_hits_per_hour({}, 0, 150 * 60).bar_minutes == 15
    assert build_bars_of_hits_per_hour({}, 0, 450 * 60).bar_minutes == 60
    assert build_bars_of_hits_per_hour({}, 59, 30 * 60).bar_minutes == 5  # minutes of the clock, begun ones too


def test_bars_begin_on_the_clock_and_count_per_hour():
    drawn = build_bars_of_hits_per_hour({63: 1, 64: 2, 65: 4, 99: 1}, 60 * 60, 100 * 60 - 1)
    assert (drawn.start_minute, drawn.bar_minutes) == (60, 5)
    assert drawn.hits_per_hour == [36, 48, 0, 0, 0, 0, 0, 12]


def test_only_the_last_24_hours_are_shown():
    drawn = build_bars_of_hits_per_hour({10: 99, 1500: 3, 1560: 1}, 600, 3000 * 60)
    assert drawn.start_minute == 1560
    assert len(drawn.hits_per_hour) == 24
    assert sum(drawn.hits_per_hour) == 1


def test_the_rate_is_that_of_the_last_hour():
    hits, rate = recent_hit_count_and_hits_per_hour_or_none({939: 50, 941: 10, 1000: 21}, 0, 1000.5 * 60) or (0, 0.0)
    assert hits == 31
    assert rate == pytest.approx(31 * 60 / 59.5)


def test_the_rate_of_a_campaign_younger_than_an_hour_counts_from_its_first_answer():
    assert recent_hit_count_and_hits_per_hour_or_none({990: 6, 999: 5}, 990 * 60, 1000 * 60) == (11, 60.0)


STEADY = 12_000
FIRSTS = [60_000.0, 60_012.4, 60_037.0, 60_049.9, 60_058.5]


def answers_by_minute(first: float, now: float, per_hour: float) -> dict[int, int]:
    """Return counts by minute of answers at equal intervals, the first one at `first`."""
    counts: dict[int, int] = {}
    for k in range(int((now - first) * per_hour / 3600 + 1e-6) + 1):
        minute = int((first + k * 3600 / per_hour) // 60)
        counts[minute] = counts.get(minute, 0) + 1
    return counts


def test_a_steady_pace_is_one_rate_and_level_bars_from_the_first_seconds_on(subtests):
    for age in (10, 17, 45, 61, 70, 130, 3_000, 4_000):
        for first in FIRSTS:
            with subtests.test(age=age, first=first):
                now = first + age
                counts = answers_by_minute(first, now, STEADY)
                _, rate = recent_hit_count_and_hits_per_hour_or_none(counts, first, now) or (0, 0.0)
                assert rate == pytest.approx(STEADY, rel=0.02)
                assert all(
                    bar == pytest.approx(STEADY, rel=0.05)
                    for bar in build_bars_of_hits_per_hour(counts, first, now).hits_per_hour
                )


def test_from_a_few_seconds_or_two_answers_no_rate_is_made():
    assert recent_hit_count_and_hits_per_hour_or_none({1000: 200}, 60_000, 60_009) is None
    assert recent_hit_count_and_hits_per_hour_or_none({1000: 2}, 60_000, 60_600) is None


def test_a_single_answer_is_one_in_its_bar():
    assert build_bars_of_hits_per_hour({1000: 1}, 60_040, 60_041).hits_per_hour == [60]
    assert build_bars_of_hits_per_hour({1000: 1}, 60_040, 60_061).hits_per_hour == [60]


HOUR = timedelta(hours=1)


def test_the_forecast_divides_what_is_left_by_the_rate():
    assert forecast_hours_to_completion_or_none(1088, 5, (31, 34.0), HOUR) == pytest.approx(6.4)


def test_there_is_no_forecast_during_the_first_minute():
    assert forecast_hours_to_completion_or_none(1088, 5, (31, 1860.0), timedelta(seconds=59)) is None
    assert forecast_hours_to_completion_or_none(1088, 5, (31, 1860.0), timedelta(seconds=60)) is not None
    assert forecast_hours_to_completion_or_none(1088, 5, None, HOUR) is None


@pytest.mark.parametrize(("left", "hits"), [(0, 31), (100, 2), (100, 0)])
def test_nothing_left_or_too_few_answers_give_no_forecast(left, hits):
    assert forecast_hours_to_completion_or_none(left, 5, (hits, float(hits)), HOUR) is None


def test_when_answers_stop_it_says_since_when(subtests):
    for last, words in ((1000, None), (991, None), (990, "no answer for 10 min"), (700, "no answer for 5 h")):
        with subtests.test(last=last, words=words):
            assert text_on_time_without_answers_or_none({600: 5, last: 3}, 1000) == words


def test_when_nobody_answered_for_a_day_it_says_that():
    assert text_on_time_without_answers_or_none({}, 5000) == "no answer for a day or more"


def test_durations_are_said_as_a_person_would(subtests):
    for hours, words in (
        (0.001, "1 min"),
        (0.5, "30 min"),
        (1.49, "89 min"),
        (6.4, "6 h"),
        (47.4, "47 h"),
        (72, "3 days"),
    ):
        with subtests.test(hours=hours, words=words):
            assert format_hours_in_words(hours) == words


def test_three_answers_in_ten_seconds_are_enough_for_a_rate_and_a_forecast():
    assert recent_hit_count_and_hits_per_hour_or_none({1000: 3}, 60_000, 60_010) == (3, 720.0)
    assert forecast_hours_to_completion_or_none(10, 5, (3, 2.0), HOUR) == 1.0
    assert forecast_hours_to_completion_or_none(1, 5, (31, 2.0), HOUR) == 0.1


def test_the_last_hour_begins_59_minutes_before_the_present_one():
    counts = {940: 50, 941: 10, 1000: 20, 1001: 40}
    assert recent_hit_count_and_hits_per_hour_or_none(counts, 940 * 60, 1000.5 * 60) == (30, 30 * 60 / 59.5)
    assert recent_hit_count_and_hits_per_hour_or_none(counts, 941 * 60, 1000.5 * 60) == (30, 29 * 60 / 59.5)


def test_a_bar_at_an_end_of_less_than_a_sixth_joins_its_neighbour():
    for first, now, start_minute, count in (
        (250, 3050, 0, 11),
        (251, 3050, 5, 10),
        (250, 3049, 0, 10),
        (251, 3049, 5, 9),
    ):
        drawn = build_bars_of_hits_per_hour({4: 2, 50: 3}, first, now)
        assert (drawn.start_minute, len(drawn.hits_per_hour)) == (start_minute, count)
    merged = build_bars_of_hits_per_hour({4: 2, 50: 3}, 251, 3049)
    assert merged.hits_per_hour == [21, 0, 0, 0, 0, 0, 0, 0, 31]


def test_answers_of_minutes_that_are_not_shown_are_in_no_bar():
    assert build_bars_of_hits_per_hour({99: 7, 100: 2, 101: 1, 102: 1, 103: 7}, 6000, 6150) == Pace(
        100, 1, [120, 60, 120]
    )


def test_a_silence_is_said_in_hours_until_a_day_is_over():
    assert text_on_time_without_answers_or_none({600: 1}, 600 + 24 * 60 - 1) == "no answer for 24 h"
    assert text_on_time_without_answers_or_none({600: 1}, 600 + 24 * 60) == "no answer for a day or more"


@pytest.mark.parametrize(
    ("hours", "words"),
    [(1 / 60, "1 min"), (1.5, "2 h"), (47.9, "48 h"), (48, "2 days"), (60, "2 days"), (61, "3 days")],
)
def test_durations_change_their_unit_at_an_hour_and_a_half_and_two_days(hours, words):
    assert format_hours_in_words(hours) == words


def test_answers_that_do_not_count_are_in_no_bar_from_the_first_seconds_on():
    for seconds in (1, 9, 10, 30):
        assert build_bars_of_hits_per_hour({}, 60_000, 60_000 + seconds).hits_per_hour == [0]
