"""The table of how often bands of experiments with people hold the truth, in small."""

import numpy as np
import pytest

from benchmarks.bands_of_people import CHECKPOINTS, CheckpointFigures, Row, format_table_row, measure_experiment

pytestmark = pytest.mark.slow


def test_the_band_of_an_experiment_holds_its_figure_and_a_bootstrap_lies_below(monkeypatch):
    monkeypatch.setattr("benchmarks.bands_of_people.BOOTSTRAP_DRAWS", 5)
    found = measure_experiment(Row("da", 6), 1)
    assert found.figure.shape == (len(CHECKPOINTS),)
    assert ((found.low < found.figure) & (found.figure < found.high)).all()
    assert (found.bootstrap_high < found.figure).all()


def test_a_line_counts_the_bands_that_hold_the_mean():
    def band(figure, low):
        return CheckpointFigures(*(np.full(len(CHECKPOINTS), value) for value in (figure, 0.1, low, 0.9, 0.1, 0.2)))

    assert (
        format_table_row(Row("ra", 6), [band(0.5, 0.4), band(0.7, 0.65)], 0)
        == "| ra | 6 | 1 | 0.600 | 0.100 | 0.100 | 50% | 0% |"
    )
