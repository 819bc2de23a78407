"""The table of how often intervals of models hold the truth can be made."""

import numpy as np
import pytest

from benchmarks.coverage import CROWDS
from benchmarks.coverage_of_models import COVERAGE_FUNCTIONS_BY_INTERVAL, Case, coverage_by_interval

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def in_small(monkeypatch):
    """Where most of the time goes: the fit to graded responses, and agreement on very many items."""
    for name, fewer in {"SYSTEMS": 4, "SEGMENTS": 20, "TRUTH_ITEMS": 1_000, "BOOTSTRAP_DRAWS": 100}.items():
        monkeypatch.setattr(f"benchmarks.coverage_of_models.{name}", fewer)


def test_every_interval_has_a_share_that_holds_the_truth_and_a_width():
    crowd, at_random = CROWDS["the same, 15 % random"]
    found = coverage_by_interval(crowd, at_random, 20, 0)
    assert [*found] == [*COVERAGE_FUNCTIONS_BY_INTERVAL]
    for held, width, *_ in found.values():
        assert 0 <= held <= 1
        assert width > 0
    assert np.mean([held for held, *_ in found.values()]) > 0.8


@pytest.mark.parametrize("name", ["Bradley-Terry", "best-worst counts", "Krippendorff's alpha"])
def test_a_campaign_is_decided_by_its_number(name):
    case = Case(*CROWDS["biases .15"], 5, 1)
    assert (
        COVERAGE_FUNCTIONS_BY_INTERVAL[name](case)
        == COVERAGE_FUNCTIONS_BY_INTERVAL[name](case)
        != COVERAGE_FUNCTIONS_BY_INTERVAL[name](case._replace(seed=2))
    )
