"""Figures on real judgments of pairs: Habernal & Gurevych 2016, examples/data/ukp_convarg1."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from app.inference.ground import metrics
from app.inference.preferences import bradley_terry, transitivity

FOLDER = Path(__file__).parents[2] / "examples" / "data" / "ukp_convarg1"


class Arguments(NamedTuple):
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    annotators: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.int64]
    topics: npt.NDArray[Any]
    ranks: npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def arguments() -> Arguments:
    first, second, annotators, outcomes = np.loadtxt(
        FOLDER / "judgments.csv.gz", dtype=np.int64, delimiter=",", skiprows=1, unpack=True
    )
    with (FOLDER / "arguments.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    topics, ranks = np.array([row["topic"] for row in rows]), np.array([float(row["rank"]) for row in rows])
    return Arguments(first, second, annotators, outcomes, topics, ranks)


def test_annotators_are_transitive_as_often_as_published_data_say(arguments):
    fit = transitivity.fit(arguments.first, arguments.second, arguments.outcomes, arguments.annotators)
    assert fit.triads.sum() == 14_476
    assert fit.transitive.sum() == 14_476 - 1_947
    assert fit.pooled_kappa == pytest.approx(0.741, abs=0.0005)
    assert fit.triads_without_ties.sum() == 8_615
    assert fit.pooled_kappa_without_ties == pytest.approx(0.863, abs=0.0005)
    assert fit.estimable.sum() == 110


@pytest.mark.parametrize("method", [bradley_terry.fit, bradley_terry.fit_rao_kupper])
def test_scores_agree_with_the_published_ranking_in_every_topic(arguments, method):
    fit = method(arguments.first, arguments.second, arguments.outcomes, n_items=arguments.ranks.size)
    assert fit.estimable.all()
    assert fit.group.max() == 31
    topics = np.unique(arguments.topics, return_inverse=True)[1]
    # Pairs lie within topics, so topics are the groups; a low rank is a convincing argument.
    assert len(set(zip(topics.tolist(), fit.group.tolist(), strict=True))) == 32
    spearman = [metrics.spearman(-arguments.ranks[topics == k], fit.score[topics == k]) for k in range(32)]
    assert np.mean(spearman) == pytest.approx(0.909, abs=0.003)
    assert min(spearman) > 0.67
