"""Experiments come out the same wherever they are run, and go on where they were stopped."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from app.cli.commands import easel as command
from app.errors import Conflict, Invalid
from app.experiments import figures
from app.experiments.runs import (
    figure_array_by_arm,
    final_score_arrays_by_arm,
    judgments_to_match_arm_with_band,
    judgments_until_mean_reaches_goal,
    load_runs,
    run_missing_and_iterate_finished_counts,
)
from app.experiments.sakaguchi_2018 import (
    load_lexical_frequency_material,
    load_or_simulate_political_material,
    load_texts_with_shares_of_scale,
)
from app.experiments.simulated_arms import (
    ALL_SCALE_ARMS,
    ITEM_CHECKPOINTS,
    SCALE_ARMS,
    ScaleExperiment,
    share_of_best_items_on_top,
    share_on_right_side_of_median,
)
from app.imports.demo import DEMO_ITEMS_FILE
from app.simulation.annotators import population_with_random_bias_only

pytestmark = pytest.mark.slow

SMALL = ScaleExperiment("small", tuple(np.linspace(0, 1, 15).tolist()), population_with_random_bias_only(0.15), 0.0, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the results of three runs."""
    made = tmp_path_factory.mktemp("experiment")
    assert list(run_missing_and_iterate_finished_counts(SMALL, made, 3)) == [0, 1, 2, 3]
    return made


@pytest.fixture(scope="module")
def courses():
    return SMALL.run(0)


def test_a_run_says_of_every_arm_how_it_went_look_by_look(courses):
    assert [course.arm for course in courses] == [arm.name for arm in ALL_SCALE_ARMS]
    for course in courses:
        assert {*course.figures} == {"spearman", "pearson", "best", "sides"}
        assert all(len(values) == len(ITEM_CHECKPOINTS) for values in course.figures.values())
        assert course.figures["spearman"][-1] > course.figures["spearman"][0] - 0.1
        assert len(course.scores) == 15


def test_runs_in_other_processes_find_what_a_run_here_finds(folder, courses):
    assert load_runs(SMALL, folder, 3) == [courses, SMALL.run(1), SMALL.run(2)]


def test_what_is_there_is_not_done_again_and_a_line_that_was_cut_off_is(folder, tmp_path):
    path = tmp_path / "small.jsonl"
    lines = (folder / "small.jsonl").read_text().split("\n")
    known = json.loads(lines[1])
    known["found"][0]["figures"]["spearman"][0] = 0.123  # to be told from what it would find
    path.write_text("\n".join([lines[0], json.dumps(known), lines[2][:40]]) + "\n")
    assert list(run_missing_and_iterate_finished_counts(SMALL, tmp_path, 3)) == [1, 2, 3]
    assert load_runs(SMALL, tmp_path, 3)[known["run"]][0].figures["spearman"][0] == 0.123


def test_what_was_stopped_before_its_first_run_ended_is_begun_again(tmp_path, courses):
    (tmp_path / "small.jsonl").write_text(SMALL.settings_json() + "\n")
    assert list(run_missing_and_iterate_finished_counts(SMALL, tmp_path, 1)) == [0, 1]
    assert load_runs(SMALL, tmp_path, 1) == [courses]


def test_results_of_other_settings_are_not_mixed_in(folder):
    with pytest.raises(Conflict) as refused:
        list(run_missing_and_iterate_finished_counts(replace(SMALL, seed=4), folder, 3))
    assert refused.value.code == "other_experiment"


def test_a_context_effect_makes_answers_better(folder):
    of_two = load_runs(SMALL, folder, 3)[:2], [replace(SMALL, context=0.9).run(k) for k in range(2)]
    lost = [1 - np.mean([*figure_array_by_arm(courses, "spearman").values()]) for courses in of_two]
    assert lost[1] < 0.8 * lost[0]


def test_judgments_between_two_looks_lie_on_a_line():
    values = np.array([[0.1, 0.5, 0.9], [0.3, 0.7, 0.9]])
    assert judgments_until_mean_reaches_goal((1, 2, 3), values, 0.4) == pytest.approx(1.5)
    assert judgments_until_mean_reaches_goal((10, 20, 30), values, 0.1) == 10
    assert judgments_until_mean_reaches_goal((1, 2, 3), values, 0.95) == np.inf
    assert judgments_to_match_arm_with_band((1, 2, 3), values, values[:, 1]) == (2, 2, 2)


def test_only_the_arms_of_an_experiment_take_part(courses):
    two = replace(SMALL, arms=("da", "easl")).run(0)
    assert two == [one for one in courses if one.arm in {"da", "easl"}]


def test_the_best_are_found_by_hand_and_ties_count_in_the_mean_of_all_orders():
    truth = np.linspace(0, 1, 20)  # of which two are the best
    assert share_of_best_items_on_top(truth, truth) == 1
    assert share_of_best_items_on_top(-truth, truth) == 0
    assert share_of_best_items_on_top(np.zeros(20), truth) == pytest.approx(0.1)
    assert share_of_best_items_on_top(np.where(truth > 0.94, 1.0, 0.0) + (truth == 0.0), truth) == pytest.approx(2 / 3)


def test_sides_are_those_of_the_median():
    truth = np.array([0.1, 0.2, 0.8, 0.9])
    assert share_on_right_side_of_median(truth, truth) == 1
    assert share_on_right_side_of_median(np.array([0.9, 0.2, 0.8, 0.9]), truth) == 0.75


def test_a_drawing_is_the_same_to_the_byte(tmp_path):
    values = {"One": np.array([[0.1, 0.5], [0.2, 0.7]]), "Another": np.array([[0.3, 0.5], [0.1, 0.7]])}
    for name in ("a.svg", "b.svg"):
        figures.plot_run_means_with_bands(tmp_path / name, (1, 2), values, x_title="judgments", y_title="Spearman")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    words = {text.text for text in ET.parse(tmp_path / "a.svg").getroot().iter("{http://www.w3.org/2000/svg}text")}
    assert {"One", "Another", "judgments", "Spearman"} <= words


@pytest.fixture
def few_verbs(tmp_path, monkeypatch):
    """Every sixth verb alone, which is a sixth of the time."""
    head, *rows = DEMO_ITEMS_FILE.read_text().splitlines()
    path = tmp_path / "verbs.csv"
    path.write_text("\n".join([head, *rows[::6]]) + "\n")
    monkeypatch.setattr("app.experiments.sakaguchi_2018.DEMO_ITEMS_FILE", path)


def test_the_command_makes_a_report_with_figures_and_tables(tmp_path, few_verbs):
    verbs = load_lexical_frequency_material()
    said = CliRunner().invoke(
        command, ["experiment", "lexical-frequency", "--out", str(tmp_path), "--runs", "2", "--like", "mlqe-ro-en"]
    )
    assert said.exit_code == 0, said.output
    assert said.output.rstrip().endswith("lexical-frequency.md")
    page = (tmp_path / "lexical-frequency.md").read_text()
    for title in ("Without a context effect", "With a context effect of 50%", "Range of the scores", "Match quality"):
        assert f"## {title}" in page
    assert "seed 2018, 2 runs" in page
    shown = [line.split("](")[1].rstrip(")") for line in page.split("\n") if line.startswith("![")]
    assert len(shown) == len({*shown}) == 8
    for name in shown:
        ET.parse(tmp_path / name)
    rows = [line for line in page.split("\n") if line.startswith("| 10 |")]
    assert {row.count("|") for row in rows} == {len(SCALE_ARMS) + 2, len(SCALE_ARMS) + 1}
    most_frequent = max(zip(verbs.truth, verbs.names, strict=True))[1]
    assert sum(line.startswith(f"| {most_frequent} |") for line in page.split("\n")) == 1
    table = parquet.read_table(tmp_path / "lexical-frequency.parquet")
    assert table.num_rows == 2 * len(ITEM_CHECKPOINTS) * (len(ALL_SCALE_ARMS) + len(SCALE_ARMS) + 5 * 2)
    assert table.column_names[:4] == ["experiment", "run", "arm", "judgments"]
    assert b"context-0.25" in table.schema.metadata
    scores = parquet.read_table(tmp_path / "lexical-frequency-scores.parquet")
    assert scores.num_rows == 25 * 2 * (len(ALL_SCALE_ARMS) + len(SCALE_ARMS) + 5 * 2)


def test_without_the_extra_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("app.cli.experiments.find_spec", lambda _name: None)
    said = CliRunner().invoke(command, ["experiment", "lexical-frequency", "--out", str(tmp_path / "new")])
    assert said.exit_code == 1
    assert "easel[experiments]" in said.output
    assert not (tmp_path / "new").exists()


def test_scores_are_those_after_the_last_look(folder):
    courses = load_runs(SMALL, folder, 3)
    for arm, scores in final_score_arrays_by_arm(courses).items():
        assert scores.shape == (3, 15)
        best = [share_of_best_items_on_top(one, np.array(SMALL.truth)) for one in scores]
        assert best == figure_array_by_arm(courses, "best")[arm][:, -1].tolist()


def test_verbs_are_those_of_the_demo():
    verbs = load_lexical_frequency_material()
    assert len(verbs.names) == len(verbs.truth) == 150
    assert (min(verbs.truth), max(verbs.truth)) == (0, 1)


def test_statements_are_read_from_a_table_and_put_between_its_ends(tmp_path):
    path = tmp_path / "statements.csv"
    path.write_text("text,value\n" + "".join(f"statement {k},{k / 5 - 2}\n" for k in range(21)))
    rows = load_texts_with_shares_of_scale(path, "text", "value", (-2.0, 2.0))
    assert [name for name, _ in rows][:2] == ["statement 0", "statement 1"]
    assert [value for _, value in rows] == pytest.approx(np.linspace(0, 1, 21).tolist())
    made = load_or_simulate_political_material(rows, 1)
    assert made.names[10] == "statement 10"


def test_of_many_statements_150_take_part_and_the_seed_says_which():
    rows = [(f"statement {k}", k / 1000) for k in range(1000)]
    one, again, other = (load_or_simulate_political_material(rows, seed) for seed in (1, 1, 2))
    assert len(one.names) == 150
    assert one == again
    assert one.names != other.names


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("text,score\n" + "a,1\n" * 20, "column_missing"),
        ("text,value\n" + "a,1\n" * 9, "too_few_items"),
        ("text,value\n" + "a,1\n" * 9 + "b,3\n", "not_a_value"),
        ("text,value\n" + "a,1\n" * 9 + "b,many\n", "not_a_value"),
        ("text,value\n" + "a,1\n" * 9 + "b,nan\n", "not_a_value"),
        ("text,value\n" + "a,1\n" * 9 + ",1\n", "value_missing"),
    ],
)
def test_a_table_that_says_no_values_is_refused(tmp_path, table, code):
    path = tmp_path / "statements.csv"
    path.write_text(table)
    with pytest.raises(Invalid) as refused:
        load_texts_with_shares_of_scale(path, "text", "value", (-2.0, 2.0))
    assert refused.value.code == code


def test_of_objects_null_is_no_text_and_true_is_no_number(tmp_path):
    path = tmp_path / "statements.jsonl"
    for said, code in (({"text": None, "value": 1}, "value_missing"), ({"text": "a", "value": True}, "not_a_value")):
        path.write_text(f"{json.dumps(said)}\n" * 10)
        with pytest.raises(Invalid) as refused:
            load_texts_with_shares_of_scale(path, "text", "value", (-2.0, 2.0))
        assert refused.value.code == code


def test_statements_that_are_all_alike_are_refused_in_a_line(tmp_path):
    path = tmp_path / "statements.csv"
    path.write_text("text,value\n" + "a,1\n" * 10)
    told = ["--items", str(path), "--out", str(tmp_path), "--runs", "2"]
    said = CliRunner().invoke(command, ["experiment", "political-spectrum", *told])
    assert (said.exit_code, said.stderr[-11:]) == (1, "(constant)\n")


def test_a_context_that_is_no_number_is_refused(tmp_path):
    told = ["--context", "nan", "--out", str(tmp_path)]
    assert CliRunner().invoke(command, ["experiment", "political-spectrum", *told]).exit_code == 2


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "a file").write_text("")
    said = CliRunner().invoke(command, ["experiment", "word-senses", "--out", str(tmp_path / "a file" / "below")])
    assert (said.exit_code, said.stderr[-19:]) == (1, "(file_not_written)\n")


def test_ends_that_are_none_are_refused(tmp_path):
    path = tmp_path / "statements.csv"
    path.write_text("text,value\n" + "a,1\n" * 10)
    for ends in ((2.0, 2.0), (-1e308, 1e308), (float("nan"), 2.0)):
        with pytest.raises(Invalid, match="must be below"):
            load_texts_with_shares_of_scale(path, "text", "value", ends)


def test_statements_of_a_file_make_a_report(tmp_path):
    path = tmp_path / "statements.csv"
    path.write_text("said,from -2 to 2\n" + "".join(f"opinion {k},{k / 5 - 2}\n" for k in range(21)))
    told = ["--items", str(path), "--text", "said", "--value", "from -2 to 2", "--out", str(tmp_path), "--runs", "2"]
    said = CliRunner().invoke(command, ["experiment", "political-spectrum", *told])
    assert said.exit_code == 0, said.output
    page = (tmp_path / "political-spectrum.md").read_text()
    assert "from a file" in page
    assert "RA from 29.9 to 75.8" in page
    assert "| opinion 20 | 100.0 |" in page


def test_without_a_file_statements_are_simulated_and_the_report_says_so():
    made = load_or_simulate_political_material(None, 3)
    assert len(made.names) == 150
    assert "simulated statements" in made.description
