"""A PostgreSQL with Easel's schema for the time of a benchmark."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from app.database import embedded
from app.database.migrate import upgrade_schema
from benchmarks.processes import ProcessGroup


class TemporaryDatabase(NamedTuple):
    """A running PostgreSQL and the folder that is deleted with it."""

    url: str
    folder: Path

    def find_processes(self) -> ProcessGroup:
        """Return the processes of PostgreSQL."""
        return ProcessGroup(int((self.folder / "postgresql" / "postmaster.pid").read_text().split()[0]))


@contextmanager
def run_temporary_database() -> Iterator[TemporaryDatabase]:
    """Run an empty database during a `with` block."""
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as folder,
        embedded.run_postgres_and_yield_url(Path(folder)) as url,
    ):
        upgrade_schema(url)
        yield TemporaryDatabase(url, Path(folder))
