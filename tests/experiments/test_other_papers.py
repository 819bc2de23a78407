"""Findings of other papers are found again, by one command each."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from app.cli.commands import easel as command
from app.experiments import passonneau_2014
from app.experiments.amidei_2020 import (
    NOISE_POINTS,
    ImpliedPairsExperiment,
    simulate_asked_and_wrong_shares,
    table_rows_of_paper_and_easel_kappa,
)
from app.experiments.judged_pairs import SCORING_METHODS, JudgedPairs
from app.experiments.otani_2016 import BaselineExperiment, RandomJudgesExperiment, SimulatedJudges, SimulatedJudging
from app.experiments.otani_2016_counts import (
    ARM_TITLES,
    ComparisonCountExperiment,
    easiest_and_hardest_segment_by_name,
)

pytestmark = pytest.mark.slow

FEW = SimulatedJudging(systems=6, judges=10, segments=20, judgments=600)


def by_experiment(*told):
    said = CliRunner().invoke(command, ["experiment", *told])
    assert said.exit_code == 0, said.output
    return said.output


# Transitivity


def test_annotators_of_the_paper_are_as_consistent_as_it_says_but_for_rounding():
    assert table_rows_of_paper_and_easel_kappa() == [
        ["A1", "3 / 3", "1", "1.000", "1.000"],
        ["A2", "2 / 3", ".34", "0.346", "0.357"],
        ["A3", "1 / 3", "−.28", "-0.288", "-0.286"],
    ]


def test_who_never_errs_is_asked_few_pairs_and_nothing_implied_is_wrong():
    asked, wrong = simulate_asked_and_wrong_shares(0.0, np.random.default_rng(1))
    assert asked < 0.3
    assert wrong == 0


def test_the_more_an_annotator_errs_the_more_implied_pairs_are_wrong():
    (course,) = ImpliedPairsExperiment(1).run(0)
    assert all(one <= other for one, other in pairwise(course.figures["wrong"]))


def test_the_report_on_transitivity_has_the_paper_and_real_annotators(tmp_path):
    by_experiment("transitivity", "--runs", "2", "--out", str(tmp_path))
    page = (tmp_path / "transitivity.md").read_text()
    assert "| all | 14,476 | 86.6% | 48.1% | 0.741 |" in page
    assert "| without a tie | 8,615 | 96.6% | 75.0% | 0.863 |" in page
    assert "| with a tie | 5,861 | 71.8% | 36.8% | 0.554 |" in page
    assert "3,638 pairs" in page
    assert (tmp_path / "transitivity.svg").exists()
    assert parquet.read_table(tmp_path / "transitivity.parquet").num_rows == 2 * len(NOISE_POINTS)


# Word senses


def test_a_majority_is_counted_by_sentences_and_shared_where_votes_tie():
    word = passonneau_2014.load_word_labels_with_fits("help-v")
    assert word.majority_shares.sum() == pytest.approx(1)
    assert word.sense_frequencies[0] == pytest.approx(0.510, abs=0.001)
    assert word.majority_shares[0] == pytest.approx(0.771, abs=0.02)


def test_the_named_annotators_of_help_overuse_the_senses_that_the_paper_says():
    word = passonneau_2014.load_word_labels_with_fits("help-v")
    assert {8, 9, 41} < {*passonneau_2014.drawn_annotator_numbers(word)}
    eight, nine, forty_one = (
        passonneau_2014.label_probabilities_of_each_known_sense(word, number) for number in (8, 9, 41)
    )
    assert eight[5, 0] > eight[5, 5]  # of sense 6, called sense 1
    assert forty_one[5, 1] > 0.5  # called sense 2
    assert nine[1, 2] > 0.5  # of sense 2, called sense 3
    assert np.isnan(eight[4]).all()  # no sentence has sense 5


def test_the_senses_of_four_words_are_as_the_paper_says(tmp_path):
    by_experiment("word-senses", "--out", str(tmp_path))
    page = (tmp_path / "word-senses.md").read_text()
    for row in (
        "| prevalence of sense 1 of add-v (Figure 4) | 0.51 | 0.51 | no difference |",
        "| sentences of date-n with a posterior of 0.99 or more (Figure 5) | 97% | 97% | no difference |",
        "| sentences of help-v with a posterior of 0.99 or more | 81% | 81% | no difference |",
        "| mean accuracy on senses 1 and 2 of add-v | 0.90, 0.79 | 0.90, 0.79 | no difference |",
        "| on senses 1 and 4 of help-v | 0.73, 0.64 | 0.73, 0.64 | no difference |",
        "| ask-v | 966 | 18,338 | 40 |",
        "| ask-v | 0.364 | 0.218 | 0.831 | 0.708 |",
        "| help-v | 0.356 | 0.264 | 0.809 | 0.781 |",
        "| add-v, in the paper | 0.90 | 0.79 |  |  |  | 0.29 | 0.19 |  |  |",
        "| add-v | 0.55 | 0.465 (0.4",
    ):
        assert row in page
    for name in passonneau_2014.SENSE_WORDS:
        assert (tmp_path / f"word-senses-{name}.svg").exists()
    for name in ("responses-add-v", "responses-help-v", "information"):
        assert f"](word-senses-{name}.svg)" in page
        assert (tmp_path / f"word-senses-{name}.svg").exists()
    shares = parquet.read_table(tmp_path / "word-senses.parquet").to_pylist()
    assert sum(row["prevalence"] for row in shares) == pytest.approx(4 * len(passonneau_2014.SENSE_WORDS))


# Annotators who answer at random


def test_all_comparisons_are_with_the_baseline_if_there_is_one_and_none_with_itself():
    for baseline in (None, 2):
        judged = SimulatedJudges(FEW, np.random.default_rng(1)).draw_comparisons(baseline, 0.0)
        assert (judged.first != judged.second).all()
        assert ({*judged.first.tolist()} == {2}) == (baseline == 2)
        assert {*judged.outcome.tolist()} == {-1, 0, 1}


def test_more_comparisons_agree_better_with_the_truth_by_every_method():
    results = ComparisonCountExperiment(FEW, 3, counts=(60, 2_000)).run(0)
    assert [result.arm for result in results] == [*ARM_TITLES]
    for result in results:
        few, many = result.figures["pearson"]
        assert many > max(few, 0.9)


def test_a_segment_tells_most_where_its_difficulties_are():
    difficulty = np.array([[-1.5, -1.0], [0.5, 1.0], [-0.2, 0.2], [5.0, 6.0]])
    segments = np.repeat([0, 1, 2, 3], [20, 20, 20, 3])
    assert easiest_and_hardest_segment_by_name(difficulty, segments) == {"easy segment": 0, "hard segment": 1}


def test_who_is_careless_with_a_small_share_is_so_with_a_large_one():
    share = [np.mean(SimulatedJudges(FEW, np.random.default_rng(1)).place < part) for part in (0.2, 0.5)]
    assert share == pytest.approx([0.2, 0.5])


def test_judges_at_random_change_their_own_answers_alone_and_to_each_as_often():
    rng = np.random.default_rng(1)
    judge = np.repeat([0, 1], 3000)
    zeros = np.zeros(6000, np.int64)
    found = (
        JudgedPairs(zeros, zeros + 1, judge, zeros, zeros + 1)
        .with_random_answers_of_judges(np.array([0.0, 0.5]), 0.5, rng)
        .outcome
    )
    assert (found[judge == 1] == 1).all()
    assert np.bincount(found[judge == 0] + 1) == pytest.approx([1000] * 3, abs=100)


def test_better_systems_score_higher_by_every_method_and_less_so_with_judges_at_random():
    found = [RandomJudgesExperiment(FEW, 1).run(k) for k in range(3)]
    for k, arm in enumerate(SCORING_METHODS):
        pearson = np.mean([run[k].figures["pearson"] for run in found], axis=0)
        assert [run[k].arm for run in found] == [arm] * 3
        assert pearson[0] > 0.9
        assert pearson[-1] < pearson[0]


def test_a_better_baseline_wins_more():
    (course,) = BaselineExperiment(FEW, 1).run(0)
    won, lost = course.figures["won"], course.figures["lost"]
    assert all(one > other for one, other in pairwise(won))
    assert won[0] > 2 * lost[0]
    assert lost[-1] > 2 * won[-1]


def test_the_report_on_judges_has_the_papers_table_beside_ours(tmp_path, monkeypatch):
    few = partial(SimulatedJudging, systems=6, judges=10, segments=20)  # a tenth of the time
    monkeypatch.setattr("app.experiments.otani_2016.SimulatedJudging", few)
    by_experiment("random-judges", "--runs", "2", "--judgments", "200", "--out", str(tmp_path))
    page = (tmp_path / "random-judges.md").read_text()
    assert "| Graded response (loses 0.122) | 0.929 | 0.917 | 0.900 | 0.879 | 0.849 | 0.807 |" in page
    for title in (method.title for method in SCORING_METHODS.values()):
        assert page.count(f"| {title} (loses ") >= 2
    for words in (
        "it is too strong to separate the weaker",
        "it wins and loses about equally",
        "it is too weak to separate",
    ):
        assert words in page
    for name in ("random-judges-pearson.svg", "random-judges-ndcg.svg", "baselines.svg"):
        assert f"({name})" in page
        assert (tmp_path / name).exists()
    assert parquet.read_table(tmp_path / "baselines.parquet").num_rows == 2 * 3
    assert "## If outputs of a system are alike" in page
    assert parquet.read_table(tmp_path / "alike-outputs.parquet").num_rows == 2 * 2 * len(SCORING_METHODS)
