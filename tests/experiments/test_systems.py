"""Systems are ranked by what people say of their outputs."""

import numpy as np
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from app.cli.commands import easel as command
from app.errors import Invalid
from app.experiments import sakaguchi_2018_systems
from app.experiments.sakaguchi_2018_systems import (
    SYSTEM_ARM_TITLES,
    SegmentAnnotators,
    SimulatedOutputs,
    SystemsExperiment,
    load_system_names_and_output_quality,
    simulate_system_names_and_output_quality,
)
from app.simulation.annotators import Habits, population_with_random_bias_only

pytestmark = pytest.mark.slow

SMALL = SystemsExperiment(
    "small",
    SimulatedOutputs(4, 40).sample_quality_matrix(np.random.default_rng(1)),
    population_with_random_bias_only(0.1),
    3,
)
LOOKS = sakaguchi_2018_systems.SYSTEM_CHECKPOINTS[:4]


@pytest.fixture(scope="module", autouse=True)
def looked_at_four_times():
    """Up to 200 judgments of a system, which is a fifth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sakaguchi_2018_systems, "SYSTEM_CHECKPOINTS", LOOKS)
        yield


@pytest.fixture(scope="module")
def courses():
    return SMALL.run(0)


def test_every_arm_ranks_systems_better_with_more_judgments(courses):
    assert [course.arm for course in courses] == [*SYSTEM_ARM_TITLES]
    for course in courses:
        assert len(course.figures["spearman"]) == len(LOOKS)
        assert course.figures["pearson"][-1] > 0.9
        assert course.scores == pytest.approx(SMALL.truth.tolist(), abs=0.05)


def test_a_run_is_decided_by_its_number_alone(courses):
    assert courses == SMALL.run(0) != SMALL.run(1)


def test_other_outputs_are_other_settings():
    other = SystemsExperiment("small", SMALL.quality + 0.001, SMALL.population, SMALL.seed)
    assert (
        other.settings_json()
        != SMALL.settings_json()
        == SystemsExperiment("small", SMALL.quality.copy(), population_with_random_bias_only(0.1), 3).settings_json()
    )


def test_outputs_of_a_hit_are_of_one_segment_and_all_segments_are_used_alike():
    quality = np.arange(12).reshape(4, 3) / 12
    people = SegmentAnnotators([Habits(noise=0.0)], quality, np.random.default_rng(0))
    shown = [people.draw_scores_of_annotator(0, [0, 2], np.random.default_rng(0)).tolist() for _ in range(4)]
    assert sorted(shown) == [pytest.approx(row, abs=0.01) for row in quality[:, [0, 2]].tolist()]


def test_simulated_systems_lie_evenly():
    names, quality = simulate_system_names_and_output_quality(2018)
    assert len(names) == quality.shape[1] == 10
    assert np.diff(quality.mean(axis=0)) == pytest.approx([-0.02] * 9, abs=0.015)


def test_outputs_are_read_from_a_table_for_segments_that_all_systems_have(tmp_path):
    path = tmp_path / "outputs.csv"
    rows = [f"{system},{segment},{10 * segment + n}" for segment in range(4) for n, system in enumerate("abc")]
    path.write_text("\n".join(["system,segment,score", *rows, "a,9,50", "a,0,20"]) + "\n")
    names, quality = load_system_names_and_output_quality(path, (0.0, 100.0))
    assert names == ["a", "b", "c"]
    assert quality.tolist() == [
        pytest.approx(row) for row in ([0.1, 0.01, 0.02], [0.1, 0.11, 0.12], [0.2, 0.21, 0.22], [0.3, 0.31, 0.32])
    ]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("system,segment\na,1\n", "column_missing"),
        ("system,segment,score\na,1,50\nb,2,50\n", "too_few_outputs"),
        ("system,segment,score\na,1,101\n", "not_a_value"),
    ],
)
def test_a_table_that_says_nothing_of_systems_is_refused(tmp_path, table, code):
    path = tmp_path / "outputs.csv"
    path.write_text(table)
    with pytest.raises(Invalid) as refused:
        load_system_names_and_output_quality(path, (0.0, 100.0))
    assert refused.value.code == code


def test_the_command_makes_a_report_with_figures_and_tables(tmp_path):
    said = CliRunner().invoke(command, ["experiment", "translation-systems", "--out", str(tmp_path), "--runs", "2"])
    assert said.exit_code == 0, said.output
    page = (tmp_path / "translation-systems.md").read_text()
    assert page.count("| 200 |") == 3
    for title in SYSTEM_ARM_TITLES.values():
        assert title in page
    for figure in ("spearman", "pearson"):
        assert (tmp_path / f"translation-systems-{figure}.svg").exists()
    assert parquet.read_table(tmp_path / "translation-systems.parquet").num_rows == 2 * len(SYSTEM_ARM_TITLES) * len(
        LOOKS
    )
    assert (
        parquet.read_table(tmp_path / "translation-systems-scores.parquet").num_rows == 2 * len(SYSTEM_ARM_TITLES) * 10
    )
