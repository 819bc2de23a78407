"""What the runs of experiments found as tables, for other programs: Parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.experiments.runs import Experiment, RunResults

ExperimentResults = Sequence[tuple[Experiment, RunResults]]


def write_run_tables(
    folder: Path, name: str, results: ExperimentResults, checkpoints: Sequence[int], items: Sequence[str]
) -> None:
    """Of figures, and of scores: a row for each experiment, run, arm and item after the last look."""
    write_figure_table(folder / f"{name}.parquet", results, "judgments", checkpoints)
    scores = [
        {"experiment": experiment.name, "run": k, "arm": one.arm, "item": item, "score": score}
        for experiment, runs in results
        for k, run in enumerate(runs)
        for one in run
        for item, score in zip(items, one.scores, strict=True)
    ]
    write_parquet_rows(folder / f"{name}-scores.parquet", scores, settings_by_experiment(results))


def write_figure_table(
    path: Path, results: ExperimentResults, checkpoint_column: str, checkpoints: Sequence[int]
) -> None:
    """A row for each experiment, run, arm and look. The settings of the experiments are in the file's metadata."""
    figures = [
        {"experiment": experiment.name, "run": k, "arm": one.arm, checkpoint_column: look}
        | {figure: values[at] for figure, values in one.figures.items()}
        for experiment, runs in results
        for k, run in enumerate(runs)
        for one in run
        for at, look in enumerate(checkpoints)
    ]
    write_parquet_rows(path, figures, settings_by_experiment(results))


def settings_by_experiment(results: ExperimentResults) -> dict[str, str]:
    """Of each experiment, by its name."""
    return {experiment.name: experiment.settings() for experiment, _ in results}


def write_parquet_rows(path: Path, rows: Sequence[Mapping[str, object]], metadata: Mapping[str, str]) -> None:
    """Rows of the same keys."""
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist([*rows]).replace_schema_metadata({**metadata}), path)
