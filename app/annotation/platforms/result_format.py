"""Formats of result files: rows of HITs that were answered elsewhere, and the readers for them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from app.annotation.platforms.answer_details import AnswerDetails
from app.annotation.platforms.cell_reading import CellKind, CellReader
from app.uploads import UploadedTable

ANONYMOUS_ID_PREFIX = "file-"  # of the id of an annotator that a file does not name
REQUIRED_RESULT_COLUMNS = ("hit", "annotator", "item", "value")  # the columns of Easel's own files


class ResultRow(NamedTuple):
    """An answered HIT of a result file, by one criterion.

    A file may have a million of these. A named tuple is made several times faster than a frozen dataclass, and its
    tuples of plain values are not tracked by the garbage collector, for which requests wait.

    Attributes:
        line: First line of the HIT.
        worker_id: Platform's id of the annotator.
        assignment_id: Platform's id of the assignment.
        items: Ids of the items.
        scores: Score of each item; None if it was marked N/A, NaN if it has no score because another item was marked.
        accepted_at: Time of acceptance, if known.
        submitted_at: Time of submission, if known.
        details: Other columns to store.
        lines: Line of each item; empty if all are on `line`.
        anonymous: True if the file does not name the annotator.
        reasons: Reason for N/A of each item; empty if the file has none.
        segment: Segment of the outputs, if the items are systems.
        criterion: Criterion of the scores, if the campaign has several.
        criterion_position: Place of this criterion among those that were asked, from 1, if known.
        blocks: Block of conditions of each item, from 1; None if it had none, empty if the file has none.
        condition_list: List of conditions that the annotator had, from 1, if any.
        answer_details: Comments, flags and telemetry of each item; empty if the file has none.

    """

    line: int
    worker_id: str
    assignment_id: str
    items: tuple[str, ...]
    scores: tuple[float | None, ...]
    accepted_at: datetime | None
    submitted_at: datetime | None
    details: dict[str, str]
    lines: tuple[int, ...] = ()
    anonymous: bool = False
    reasons: tuple[str, ...] = ()
    segment: str = ""
    criterion: str = ""
    criterion_position: int | None = None
    blocks: tuple[int | None, ...] = ()
    condition_list: int | None = None
    answer_details: tuple[AnswerDetails, ...] = ()

    def line_number_of_item_at(self, position: int) -> int:
        """Return the line of the item at a position, 0 for the first."""
        return self.lines[position] if self.lines else self.line


class ValueReader(Protocol):
    """Reader of a campaign's values in a file."""

    @property
    def allowed_numbers_text(self) -> str:
        """Description of the allowed numbers."""

    @property
    def is_points_scale(self) -> bool:
        """True if values are points from 0 to 100."""

    @property
    def is_order(self) -> bool:
        """True if values are places."""

    @property
    def criterion_names(self) -> Sequence[str]:
        """Names of the campaign's criteria; empty if it has only one question."""

    @property
    def classes(self) -> Sequence[str]:
        """Labels of the classes; empty if values are not classes."""

    @property
    def scale_ends_or_none(self) -> tuple[float, float] | None:
        """Lowest and highest value, of ordered classes their numbers; None if values have no such ends."""

    def parse_number(self, cell: str, /) -> float | None:
        """Return the number in a cell, None if it is not allowed. Raises ValueError if it is no number."""

    def parse_value_or_none(self, cell: str, /) -> float | None:
        """Return the value in a cell, a number or the label of a class, as `parse_number` does."""

    def find_reader_of_criterion_or_none(self, criterion: str, /) -> "ValueReader | None":
        """Return the reader for a criterion (empty if none is named); None if the campaign does not have it."""


class ResultReader(Protocol):
    """Function that returns the HITs of a table, with numbers and times read by `cells`.

    If the platform's ids are missing, `digest` names the worker and, with the line, the assignment.
    Raises `Invalid`, and `FormatsUnknownError`.
    """

    def __call__(
        self, upload: UploadedTable, digest: str, values: ValueReader, cells: CellReader, /
    ) -> list[ResultRow]: ...


@dataclass(frozen=True)
class ResultFileFormat:
    """Format of a platform's result files.

    Attributes:
        has_known_column: Return whether a file with these columns may be in the format.
        has_required_columns: Return whether `read_results` accepts these columns; other files need a column mapping.
        read_results: Return the HITs of a file.
        iter_formatted_cells: Yield the cells with numbers and times, each with its line.
        has_criteria: True if files can name the criterion of a value.

    """

    has_known_column: Callable[[Sequence[str]], bool]
    has_required_columns: Callable[[Sequence[str]], bool]
    read_results: ResultReader
    iter_formatted_cells: Callable[[UploadedTable], Iterator[tuple[int, CellKind, str]]]
    has_criteria: bool = False
