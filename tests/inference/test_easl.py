import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.online.easl import LAW, update
from app.inference.online.law import LawParameters

scores = st.floats(0, 1)
above_zero = st.floats(1e-3, 1e4)


def after(*judgments: float, prior: tuple[float, float] = (1.0, 1.0)) -> tuple[float, float]:
    a, b = prior
    for judgment in judgments:
        (a,), (b,) = update([a], [b], [judgment], LawParameters())
    return a, b


def test_a_score_is_added_to_alpha_and_its_rest_to_beta():
    assert update([1.0, 2.0], [1.0, 3.0], [0.75, 0.0], LawParameters()) == ([1.75, 2.0], [1.25, 4.0])


def test_an_item_alone_in_a_hit_is_updated():
    assert after(0.25) == (1.25, 1.75)


@given(st.lists(scores, min_size=1, max_size=30))
def test_from_the_flat_prior_the_mode_is_the_mean_of_the_scores(judgments):
    assert LAW.family.score(*after(*judgments)) == pytest.approx(np.mean(judgments), abs=1e-12)


def test_the_variance_does_not_see_disagreement():
    assert LAW.family.variance(*after(0, 0, 1, 1)) == LAW.family.variance(*after(0.5, 0.5, 0.5, 0.5))


def test_alpha_and_beta_do_not_fall_yet_the_variance_can_rise():
    a, b = after(0.9, prior=(1.0, 10.0))
    assert a == pytest.approx(1.9)
    assert b == pytest.approx(10.1)
    assert LAW.family.variance(1.0, 10.0) == pytest.approx(0.00689, abs=5e-6)
    assert LAW.family.variance(1.9, 10.0) == pytest.approx(0.01040, abs=5e-6)
    assert LAW.family.variance(a, b) > LAW.family.variance(1.0, 10.0)


@given(above_zero, above_zero, scores)
def test_a_mirrored_score_mirrors_the_posterior(a, b, score):
    forward, mirrored = after(score, prior=(a, b)), after(1 - score, prior=(b, a))
    assert mirrored == pytest.approx(forward[::-1], rel=1e-15)
