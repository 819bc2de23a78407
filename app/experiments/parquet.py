"""What the runs of experiments found as tables, for other programs: Parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.experiments.runs import Courses, Experiment

Found = Sequence[tuple[Experiment, Courses]]


def write_tables(folder: Path, name: str, found: Found, looks: Sequence[int], items: Sequence[str]) -> None:
    """Of figures, and of scores: a row for each experiment, run, arm and item after the last look."""
    write_figures(folder / f"{name}.parquet", found, "judgments", looks)
    scores = [
        {"experiment": experiment.name, "run": k, "arm": one.arm, "item": item, "score": score}
        for experiment, runs in found
        for k, run in enumerate(runs)
        for one in run
        for item, score in zip(items, one.scores, strict=True)
    ]
    write_table(folder / f"{name}-scores.parquet", scores, settings_of(found))


def write_figures(path: Path, found: Found, looked_by: str, looks: Sequence[int]) -> None:
    """A row for each experiment, run, arm and look. The settings of the experiments are in the file's metadata."""
    figures = [
        {"experiment": experiment.name, "run": k, "arm": one.arm, looked_by: look}
        | {figure: values[at] for figure, values in one.figures.items()}
        for experiment, runs in found
        for k, run in enumerate(runs)
        for one in run
        for at, look in enumerate(looks)
    ]
    write_table(path, figures, settings_of(found))


def settings_of(found: Found) -> dict[str, str]:
    """Of each experiment, by its name."""
    return {experiment.name: experiment.settings() for experiment, _ in found}


def write_table(path: Path, rows: Sequence[Mapping[str, object]], about: Mapping[str, str]) -> None:
    """Rows of the same keys."""
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist([*rows]).replace_schema_metadata({**about}), path)
