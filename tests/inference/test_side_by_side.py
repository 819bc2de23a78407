import numpy as np
import pytest
from scipy import stats

from app.inference.agreement.score_comparison import IntervalEstimate, correlate_with_intervals
from app.inference.ground import metrics, weighted_correlation
from app.inference.ground.inestimable import Inestimable

NAMES = ("pearson", "spearman", "kendall", "ndcg")


def rng(seed=1):
    return np.random.default_rng(seed)


def noisy(items=60, noise=0.2, seed=2):
    reference = rng(seed).random(items)
    return reference, reference + rng(seed + 1).normal(0, noise, items)


def test_the_values_are_those_of_the_metrics():
    reference, score = noisy()
    found, plain = (
        correlate_with_intervals(reference, score, draws=50, rng=rng()),
        metrics.correlate_scores(reference, score),
    )
    for name in NAMES:
        figure = getattr(found, name)
        assert figure.value == getattr(plain, name)
        assert figure.low < figure.value < figure.high


def test_the_interval_is_that_of_the_metric_over_items_drawn_again():
    reference, score = noisy()
    found = correlate_with_intervals(reference, score, draws=400, rng=rng())
    drawn = rng(9).integers(60, size=(400, 60))
    for name in NAMES:
        gain = reference - reference.min() if name == "ndcg" else reference
        values = [getattr(metrics, name)(gain[items], score[items]) for items in drawn]
        figure = getattr(found, name)
        width = figure.high - figure.low
        assert (figure.low, figure.high) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.25 * width)


def test_items_without_a_score_on_one_side_are_left_out():
    reference, score = noisy()
    gaps = np.append(reference, [0.5, np.nan]), np.append(score, [np.nan, 0.5])
    plain, found = (
        correlate_with_intervals(reference, score, draws=50, rng=rng()),
        correlate_with_intervals(*gaps, draws=50, rng=rng()),
    )
    assert (found.n, found.pearson, found.ndcg) == (60, plain.pearson, plain.ndcg)
    assert "2 items" in found.notes[0]


def test_equal_scores_have_no_correlation_and_no_interval():
    found = correlate_with_intervals([0.1, 0.5, 0.9], [0.5, 0.5, 0.5], draws=50, rng=rng())
    assert np.isnan([found.kendall.value, found.kendall.low, found.kendall.high]).all()
    assert np.isfinite(found.ndcg.value)
    assert "equal" in found.notes[0]


def test_draws_without_a_figure_are_counted():
    found = correlate_with_intervals([0.1] * 6 + [0.9], [0.2, 0.3, 0.2, 0.1, 0.3, 0.25, 0.8], draws=100, rng=rng())
    assert found.kendall.low <= found.kendall.value
    assert any("draws of the items have no Kendall" in note for note in found.notes)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_few_items_that_agree_are_no_certainty(n):
    found = correlate_with_intervals(np.arange(n), np.arange(n), rng=rng())
    assert [getattr(found, name).value for name in NAMES] == pytest.approx([1.0] * 4)
    assert np.isnan([[getattr(found, name).low, getattr(found, name).high] for name in NAMES]).all()
    assert found.notes == (f"There is no interval: it comes from resampling items, and {n} items are too few.",)


def test_where_every_draw_has_the_same_value_the_interval_is_not_a_point():
    found = correlate_with_intervals(np.arange(40), np.arange(40) ** 3, draws=50, rng=rng())
    assert np.isnan([found.spearman.low, found.spearman.high]).all()
    assert found.pearson.low < found.pearson.high
    assert found.notes[0].startswith(
        "Spearman, Kendall, nDCG: There is no interval: the value is the same for every draw of the items"
    )


def test_where_no_figure_has_an_interval_for_one_reason_it_is_said_once():
    found = correlate_with_intervals(np.arange(40), np.arange(40), draws=50, rng=rng())
    assert found.notes == (
        "There is no interval: the value is the same for every draw of the items, so its error is unknown.",
    )


def test_an_interval_is_optional():
    found = correlate_with_intervals(*noisy(), draws=0, rng=rng())
    assert isinstance(found.pearson, IntervalEstimate)
    assert np.isnan(found.pearson.low)
    assert found.notes == ()


def test_one_item_cannot_be_compared():
    with pytest.raises(Inestimable):
        correlate_with_intervals([0.5], [0.5], rng=rng())


@pytest.mark.parametrize("options", [{"level": 2.0}, {"draws": -1}])
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ValueError, match=r"level|draws"):
        correlate_with_intervals(*noisy(), **options, rng=rng())


@pytest.mark.parametrize("values", [20, 1000], ids=["many ties", "hardly a tie"])
def test_kendall_of_draws_at_once_is_that_of_each_draw(values):
    x, y = (rng(seed).integers(values, size=40).astype(float) for seed in (1, 2))
    weights = rng(3).multinomial(40, np.full(40, 1 / 40), size=30).astype(float)
    copied = [np.repeat(np.arange(40), row.astype(int)) for row in weights]
    expected = [stats.kendalltau(x[items], y[items]).statistic for items in copied]
    assert weighted_correlation.weighted_kendall(x, y, weights) == pytest.approx(expected, abs=1e-12)


def test_kendall_of_a_draw_of_one_item_does_not_exist():
    assert np.isnan(
        weighted_correlation.weighted_kendall(np.arange(3.0), np.arange(3.0), np.array([[3.0, 0.0, 0.0]]))
    ).all()


def test_a_thousand_items_and_more_have_the_same_kendall(monkeypatch):
    reference, score = noisy(items=50)
    at_once = correlate_with_intervals(reference, score, draws=100, rng=rng()).kendall
    monkeypatch.setattr("app.inference.agreement.score_comparison.MAX_ITEMS_PAIRED_AT_ONCE", 10)
    one_by_one = correlate_with_intervals(reference, score, draws=100, rng=rng()).kendall
    assert (at_once.low, at_once.high) == pytest.approx((one_by_one.low, one_by_one.high), abs=1e-12)
