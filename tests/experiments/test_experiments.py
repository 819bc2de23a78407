"""Experiments come out the same wherever they are run, and go on where they were stopped."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from app.cli.commands import easel as command
from app.errors import Conflict
from app.simulation.annotators import plain
from app.simulation.experiment_report import OfContext, Part, write
from app.simulation.experiment_table import write_table
from app.simulation.experiments import (
    ARMS,
    ROUNDS,
    Experiment,
    as_good_as,
    found,
    judgments_for,
    judgments_for_as_much,
    run,
    runs_of,
)

SMALL = Experiment("small", tuple(np.linspace(0, 1, 15).tolist()), plain(0.15), 0.0, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the results of three runs."""
    made = tmp_path_factory.mktemp("experiment")
    assert list(runs_of(SMALL, made, 3)) == [0, 1, 2, 3]
    return made


def test_a_run_says_of_every_arm_how_it_went_round_by_round():
    course = run(SMALL, 0)
    assert [(one.arm, one.judgments) for one in course] == [
        (arm.name, judgments) for arm in ARMS for judgments in range(1, ROUNDS + 1)
    ]
    for arm in ARMS:
        first, *_, last = (one for one in course if one.arm == arm.name)
        assert last.spearman > first.spearman - 0.1
        assert last.lowest < last.highest


def test_runs_in_other_processes_find_what_a_run_here_finds(folder):
    assert found(SMALL, folder, 3) == [run(SMALL, k) for k in range(3)]


def test_what_is_there_is_not_done_again_and_a_line_that_was_cut_off_is(folder, tmp_path):
    path = tmp_path / "small.jsonl"
    lines = (folder / "small.jsonl").read_text().split("\n")
    known = json.loads(lines[1])
    known["found"][0]["spearman"] = 0.123  # to be told from what it would find
    path.write_text("\n".join([lines[0], json.dumps(known), lines[2][:40]]) + "\n")
    assert list(runs_of(SMALL, tmp_path, 3)) == [1, 2, 3]
    assert found(SMALL, tmp_path, 3)[known["run"]][0].spearman == 0.123


def test_results_of_other_settings_are_not_mixed_in(folder):
    with pytest.raises(Conflict) as refused:
        list(runs_of(replace(SMALL, seed=4), folder, 3))
    assert refused.value.code == "other_experiment"


def test_a_context_effect_makes_answers_better():
    lost = [
        1 - np.mean([[one.spearman for one in run(replace(SMALL, context=effect), k)] for k in range(2)])
        for effect in (0.0, 0.9)
    ]
    assert lost[1] < 0.8 * lost[0]


def test_how_many_judgments_it_takes_by_hand():
    mine, other = np.array([[0.2, 0.5, 0.9], [0.4, 0.7, 0.9]]), np.array([[0.25, 0.75, 0.95]] * 2)
    assert as_good_as(mine, other) == [1, 3, None]


def test_judgments_between_two_rounds_lie_on_a_line():
    values = np.array([[0.1, 0.5, 0.9], [0.3, 0.7, 0.9]])
    assert judgments_for(values, 0.4) == pytest.approx(1.5)
    assert judgments_for(values, 0.1) == 1
    assert judgments_for(values, 0.95) == np.inf
    assert judgments_for_as_much(values, values, 2) == (2, 2, 2)


def test_only_the_arms_of_an_experiment_take_part():
    whole, two = run(SMALL, 0), run(replace(SMALL, arms=("da", "easl")), 0)
    assert two == [one for one in whole if one.arm in {"da", "easl"}]


def test_the_report_shows_figures_that_are_there(folder):
    part = Part("All of it", "How it went.", "small", found(SMALL, folder, 3), np.array(SMALL.truth))
    path = folder / "title.md"
    write(
        path, "A title", "About it.", [part], contexts=[OfContext(0.5, part.found)], command="easel experiment", seed=3
    )
    page = path.read_text()
    assert "seed 3, 3 runs" in page
    for name in ("small-spearman.svg", "small-pearson.svg"):
        assert f"]({name})" in page
        drawing = ET.parse(folder / name).getroot()
        assert len(drawing.findall("{*}polyline")) == len(ARMS)
    rows = [line for line in page.split("\n") if line.startswith("| 10 |")]
    assert [row.count("|") for row in rows] == [len(ARMS) + 2, len(ARMS) + 1]


def test_the_command_makes_a_report_and_a_table(tmp_path):
    said = CliRunner().invoke(
        command, ["experiment", "lexical-frequency", "--out", str(tmp_path), "--runs", "2", "--like", "mlqe-ro-en"]
    )
    assert said.exit_code == 0, said.output
    assert said.output.rstrip().endswith("lexical-frequency.md")
    page = (tmp_path / "lexical-frequency.md").read_text()
    assert "## Without a context effect" in page
    assert "## With a context effect of 50%" in page
    assert "Sakaguchi & Van Durme (2018)" in page
    rows = parquet.read_table(tmp_path / "lexical-frequency.parquet")
    assert rows.num_rows == 2 * ROUNDS * (2 * len(ARMS) + 5 * 2)
    assert rows.column_names[:4] == ["experiment", "context", "run", "arm"]
    assert b"context-0.25" in rows.schema.metadata


def test_without_pyarrow_the_report_is_all(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("app.simulation.experiment_table.find_spec", lambda _name: None)
    assert not write_table(tmp_path / "table.parquet", [(SMALL, found(SMALL, folder, 3))])
    assert list(tmp_path.iterdir()) == []
