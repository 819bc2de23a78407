"""What the runs of experiments found as tables, for other programs: Parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.experiments.runs import Courses, Experiment

Found = Sequence[tuple[Experiment, Courses]]


def write_tables(folder: Path, name: str, found: Found, looks: Sequence[int], items: Sequence[str]) -> None:
    """Of figures, a row for each experiment, run, arm and look; of scores, a row for each experiment, run, arm and item
    after the last look. The settings of the experiments are in the files' metadata.
    """
    courses = [(experiment.name, k, one) for experiment, runs in found for k, run in enumerate(runs) for one in run]
    figures = [
        {"experiment": experiment, "run": k, "arm": one.arm, "judgments": judgments}
        | {figure: values[at] for figure, values in one.figures.items()}
        for experiment, k, one in courses
        for at, judgments in enumerate(looks)
    ]
    scores = [
        {"experiment": experiment, "run": k, "arm": one.arm, "item": item, "score": score}
        for experiment, k, one in courses
        for item, score in zip(items, one.scores, strict=True)
    ]
    settings = {experiment.name: experiment.settings() for experiment, _ in found}
    write_table(folder / f"{name}.parquet", figures, settings)
    write_table(folder / f"{name}-scores.parquet", scores, settings)


def write_table(path: Path, rows: Sequence[Mapping[str, object]], about: Mapping[str, str]) -> None:
    """Rows of the same keys."""
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist([*rows]).replace_schema_metadata({**about}), path)
