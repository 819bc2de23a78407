from datetime import timedelta

import pytest

from app.dashboard.pace import Pace, duration, forecast, pace, recent_rate, silence


def test_a_young_campaign_has_bars_of_a_minute():
    assert pace({100: 2, 102: 1}, 100, 103) == Pace(100, 1, [120, 0, 60, 0])


def test_bars_widen_so_that_there_are_never_many():
    assert pace({}, 0, 29).bar_minutes == 1
    assert pace({}, 0, 30).bar_minutes == 5
    assert pace({}, 0, 150).bar_minutes == 15
    assert pace({}, 0, 450).bar_minutes == 60


def test_bars_begin_on_the_clock_and_count_per_hour():
    drawn = pace({63: 1, 64: 2, 65: 4, 99: 1}, 63, 99)
    assert (drawn.start_minute, drawn.bar_minutes) == (60, 5)
    assert drawn.hits_per_hour == [36, 48, 0, 0, 0, 0, 0, 12]


def test_only_the_last_24_hours_are_shown():
    drawn = pace({10: 99, 1500: 3}, 10, 3000)
    assert drawn.start_minute == 1560  # 24 hours before minute 3000, rounded down to the hour
    assert len(drawn.hits_per_hour) == 25
    assert sum(drawn.hits_per_hour) == 0


def test_the_rate_is_that_of_the_last_hour():
    assert recent_rate({939: 50, 941: 10, 1000: 21}, 0, 1000) == (31, 31.0)


def test_the_rate_of_a_campaign_younger_than_an_hour_counts_from_its_first_answer():
    assert recent_rate({990: 5, 999: 5}, 990, 999) == (10, 60.0)


def test_the_rate_of_a_campaign_that_has_just_begun_is_that_of_its_bars():
    just_begun = {1000: 200}, 1000, 1000
    assert recent_rate(*just_begun) == (200, 12_000.0)
    assert pace(*just_begun).hits_per_hour == [12_000]


HOUR = timedelta(hours=1)


def test_the_forecast_divides_what_is_left_by_the_rate():
    assert forecast(1088, 5, (31, 31.0), HOUR) == "7 h"


def test_there_is_no_forecast_during_the_first_minute():
    assert forecast(1088, 5, (31, 1860.0), timedelta(seconds=59)) is None
    assert forecast(1088, 5, (31, 1860.0), timedelta(seconds=60)) == "7 min"


@pytest.mark.parametrize(("left", "hits"), [(0, 31), (100, 2), (100, 0)])
def test_nothing_left_or_too_few_answers_give_no_forecast(left, hits):
    assert forecast(left, 5, (hits, float(hits)), HOUR) is None


@pytest.mark.parametrize(
    ("last", "words"),
    [(1000, None), (991, None), (990, "no answer for 10 min"), (700, "no answer for 5 h")],
)
def test_when_answers_stop_it_says_since_when(last, words):
    assert silence({600: 5, last: 3}, 1000) == words


def test_when_nobody_answered_for_a_day_it_says_that():
    assert silence({}, 5000) == "no answer for a day or more"


@pytest.mark.parametrize(
    ("hours", "words"),
    [(0.001, "1 min"), (0.5, "30 min"), (1.49, "89 min"), (6.4, "6 h"), (47.4, "47 h"), (72, "3 days")],
)
def test_durations_are_said_as_a_person_would(hours, words):
    assert duration(hours) == words
