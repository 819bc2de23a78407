"""Comparisons that people made are read from a file, and judges of it answer at random."""

from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from app.cli.commands import easel as command
from app.errors import Invalid
from app.experiments.comparison_file import load_comparison_file
from app.experiments.otani_2016 import RandomJudgesExperiment

pytestmark = pytest.mark.slow

HEAD = "first,second,winner,judge,segment"


def rows(systems="abcde", judges=10, segments=3):
    """Every judge compares all pairs on all segments; who comes first in the alphabet wins, but sometimes."""
    rng = np.random.default_rng(1)
    return [
        f"{one},{other},{rng.choice([one, other, 'tie'], p=(0.6, 0.2, 0.2))},judge {judge},{segment}"
        for one, other in combinations(systems, 2)
        for judge in range(judges)
        for segment in range(segments)
    ]


def table(path, *lines):
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


def test_comparisons_of_a_table_are_read_as_they_stand(tmp_path):
    read = load_comparison_file(table(tmp_path / "pairs.csv", *rows()), "c", 100)
    assert read.names == [*"abcde"]
    assert (read.systems, read.judges, read.baseline, read.judgments) == (5, 10, 2, 100)
    first = [line.split(",") for line in rows()[:50]]
    told = {"a": 1, "b": -1, "tie": 0}
    assert read.pairs.outcome[:30].tolist() == [told[winner] for _, _, winner, _, _ in first[:30]]
    assert (np.diff(read.truth) < 0).all()


def test_without_a_baseline_it_is_the_system_that_is_compared_most(tmp_path):
    more = [row.replace("judge ", "another ") for row in rows() if row.startswith("b,d")]
    assert load_comparison_file(table(tmp_path / "pairs.csv", *rows(), *more), None, 100).baseline == 1


def test_a_run_draws_comparisons_with_the_baseline_or_any_and_none_twice(tmp_path):
    read = load_comparison_file(table(tmp_path / "pairs.csv", *rows()), "a", 10**6)
    crowd = read.draw_judges(np.random.default_rng(1))
    with_it, any_ = crowd.draw_comparisons(0, 0.0), crowd.draw_comparisons(None, 0.0)
    assert len(with_it.first) == len(any_.first) == read.judgments == 120
    assert {*with_it.first.tolist()} == {0}
    assert len({*zip(with_it.second.tolist(), with_it.judge.tolist(), with_it.segment.tolist(), strict=True)}) == 120


def test_other_comparisons_or_another_baseline_are_other_settings(tmp_path):
    path = table(tmp_path / "pairs.csv", *rows())
    one, again, other = (
        RandomJudgesExperiment(load_comparison_file(path, baseline, 200), 1).settings_json()
        for baseline in ("a", None, "b")
    )
    assert one == again != other
    fewer = table(tmp_path / "fewer.csv", *rows()[:-1])
    assert RandomJudgesExperiment(load_comparison_file(fewer, "a", 200), 1).settings_json() != one


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([row.rpartition(",")[0] for row in rows()], "ragged_row"),
        ([*rows(), "a,b,,judge 1,2"], "value_missing"),
        ([*rows(), "a,b,a, ,2"], "value_missing"),
        ([*rows(), "a,a,a,judge 1,2"], "same_system"),
        ([*rows(), "a,b,c,judge 1,2"], "not_a_winner"),
        (rows("abc", segments=5), "too_few_systems"),
        (rows(judges=9), "too_few_judges"),
        (rows(segments=2), "too_few_comparisons"),
        ([*rows(), "b,f,f,judge 1,2"], "not_compared"),
        ([], "too_few_systems"),
    ],
)
def test_a_table_that_says_too_little_is_refused(tmp_path, lines, code):
    with pytest.raises(Invalid) as refused:
        load_comparison_file(table(tmp_path / "pairs.csv", *lines), "a" if lines else None, 1600)
    assert refused.value.code == code


def test_a_table_without_a_column_or_the_baseline_is_refused(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("first,second,winner,judge\na,b,a,1\n")
    with pytest.raises(Invalid, match="no column “segment”"):
        load_comparison_file(path, None, 1600)
    with pytest.raises(Invalid, match="no system “z”"):
        load_comparison_file(table(path, *rows()), "z", 1600)


def test_the_command_makes_a_report_that_says_what_each_system_is_worth_as_a_baseline(tmp_path):
    path = table(tmp_path / "pairs.csv", *rows())
    told = ["--comparisons", str(path), "--baseline", "c", "--runs", "2", "--out", str(tmp_path)]
    said = CliRunner().invoke(command, ["experiment", "random-judges", *told])
    assert said.exit_code == 0, said.output
    page = (tmp_path / "random-judges.md").read_text()
    assert "300 comparisons of 5 systems by 10 judges, from a file" in page
    assert "--comparisons pairs.csv --baseline c" in page
    assert page.count("| Graded response (loses ") == 4
    assert [line[:3] for line in page.split("\n") if "The baseline won" in line] == ["| a", "| b", "| c", "| d", "| e"]
    assert (tmp_path / "random-judges-ndcg.svg").exists()


def test_more_comparisons_than_memory_holds_are_refused(tmp_path):
    told = ["--judgments", "99999999999999", "--out", str(tmp_path)]
    assert CliRunner().invoke(command, ["experiment", "random-judges", *told]).exit_code == 2


def test_a_baseline_without_a_file_is_refused(tmp_path):
    said = CliRunner().invoke(command, ["experiment", "random-judges", "--baseline", "a", "--out", str(tmp_path)])
    assert said.exit_code == 2
    assert "--comparisons" in said.output
