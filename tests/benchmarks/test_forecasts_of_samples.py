"""The table of how far forecasts of a sample are from those of all items, in small."""

import pytest

from benchmarks import forecasts_of_samples
from benchmarks.forecasts_of_samples import Row, forecast_judgments_per_item


def test_a_forecast_of_a_sample_says_about_as_much_as_one_of_all_items(monkeypatch):
    monkeypatch.setattr(forecasts_of_samples, "ITEMS", 200)
    sample, whole = (forecast_judgments_per_item(Row("halves", 0, size), 1) for size in (100, 200))
    assert sample[0] == pytest.approx(whole[0], rel=0.3)
    assert whole[1] <= whole[0] <= whole[2]
