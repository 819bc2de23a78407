"""What the runs of experiments found as one table, for other programs: Parquet, where pyarrow is installed."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from app.simulation.experiments import AfterRound, Experiment

Courses = Sequence[Sequence[AfterRound]]


def write_table(path: Path, found: Sequence[tuple[Experiment, Courses]]) -> bool:
    """A row for each experiment, run, arm and round, with the settings of the experiment in the file's metadata; False
    without pyarrow (the extra `experiments`), and then nothing is written.
    """
    if find_spec("pyarrow") is None:
        return False
    from pyarrow import Table, parquet

    rows = [
        {"experiment": experiment.name, "context": experiment.context, "run": number, **asdict(one)}
        for experiment, courses in found
        for number, course in enumerate(courses)
        for one in course
    ]
    settings = {experiment.name: experiment.settings() for experiment, _ in found}
    parquet.write_table(Table.from_pylist(rows).replace_schema_metadata(settings), path)
    return True
