"""Results of runs as Parquet tables, for other programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.experiments.runs import Experiment, RunResults

ExperimentResults = Sequence[tuple[Experiment, RunResults]]


def write_figure_and_score_tables(
    folder: Path, name: str, results: ExperimentResults, checkpoints: Sequence[int], items: Sequence[str]
) -> None:
    """Write the figures, and the scores with a row for each experiment, run, arm and item at the last checkpoint."""
    write_figure_table(folder / f"{name}.parquet", results, "judgments", checkpoints)
    scores = [
        {"experiment": experiment.name, "run": k, "arm": result.arm, "item": item, "score": score}
        for experiment, runs in results
        for k, run in enumerate(runs)
        for result in run
        for item, score in zip(items, result.scores, strict=True)
    ]
    write_parquet_rows(folder / f"{name}-scores.parquet", scores, settings_json_by_experiment_name(results))


def write_figure_table(
    path: Path, results: ExperimentResults, checkpoint_column: str, checkpoints: Sequence[int]
) -> None:
    """Write a row for each experiment, run, arm and checkpoint. The file's metadata hold the settings of the
    experiments.
    """
    figures = [
        {"experiment": experiment.name, "run": k, "arm": result.arm, checkpoint_column: checkpoint}
        | {figure: values[index] for figure, values in result.figures.items()}
        for experiment, runs in results
        for k, run in enumerate(runs)
        for result in run
        for index, checkpoint in enumerate(checkpoints)
    ]
    write_parquet_rows(path, figures, settings_json_by_experiment_name(results))


def settings_json_by_experiment_name(results: ExperimentResults) -> dict[str, str]:
    return {experiment.name: experiment.settings_json() for experiment, _ in results}


def write_parquet_rows(path: Path, rows: Sequence[Mapping[str, object]], metadata: Mapping[str, str]) -> None:
    """Write rows that all have the same keys."""
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist([*rows]).replace_schema_metadata({**metadata}), path)
