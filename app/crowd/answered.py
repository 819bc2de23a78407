"""HITs that were answered on a platform's own pages, as its result files tell of them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.upload import Upload

NOBODY = "file-"  # with a digest of the file, for those whom it does not name


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row of a result file: a HIT that was answered. A score is None where its item was marked N/A.

    There may be a million of these, and whoever else is served waits while the garbage collector goes through them: so
    a row is one object with slots, and its tuples of plain values are left out by the collector.
    """

    line: int
    worker_id: str
    assignment_id: str
    items: tuple[str, ...]
    scores: tuple[float | None, ...]
    accepted_at: datetime | None
    submitted_at: datetime | None
    details: dict[str, str]


ReadsScore = Callable[[str], float | None]
"""What a cell says, None where that is outside the scale. Raises ValueError where it is no number."""


class ReadsResults(Protocol):
    """From a table to its rows. Without the platform's ids, `digest` names the worker and, with the line, the
    assignment. Raises `Invalid`.
    """

    def __call__(self, upload: Upload, digest: str, read_score: ReadsScore, /) -> list[ResultRow]: ...
