"""Positions on the scale at which simulated annotators see gold and attention items."""

import pytest

from app.designs.ordinal import Ordinal
from app.designs.registry import DESIGNS
from app.quality.expected_answers import ExpectedAnswer, feedback_on_item
from app.simulation.annotators import Habits
from app.simulation.simulated_checks import habits_for_checks, share_of_expected_answer


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        (DESIGNS["slider"](), ExpectedAnswer(value=80, tolerance=1)),
        (Ordinal(), ExpectedAnswer(labels=("neutral",))),
        (Ordinal(), ExpectedAnswer(labels=("strongly agree",))),
        (DESIGNS["categories"](), ExpectedAnswer(labels=(DESIGNS["categories"]().classes[1],))),
    ],
)
def test_an_annotator_without_noise_gives_the_expected_answer(design, expected):
    [value] = design.simulate_answer_values([share_of_expected_answer(design, expected)])
    assert feedback_on_item(design, 0, expected, value).met


def test_a_ratio_is_seen_at_the_share_whose_odds_it_is():
    magnitude = DESIGNS["magnitude"]()
    share = share_of_expected_answer(magnitude, ExpectedAnswer(value=2.0))
    equal, double = magnitude.simulate_answer_values([0.5, share])
    assert double == pytest.approx(2 * equal, rel=0.05)


def test_items_with_a_better_place_are_seen_higher():
    shares = [share_of_expected_answer(DESIGNS["ranking"](), ExpectedAnswer(place=place)) for place in (1, 2, 3)]
    assert shares == sorted(shares, reverse=True)
    assert len({*shares}) == 3


def test_a_check_is_seen_without_bias_and_with_less_noise():
    calm = habits_for_checks(Habits(bias=0.2, noise=0.15, careless=None))
    assert calm.bias == 0.0
    assert calm.noise == pytest.approx(0.05)
