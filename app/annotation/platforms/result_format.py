"""HITs that were answered elsewhere, as files tell of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.annotation.platforms.cell_reading import CellKind, CellReader
from app.uploads import UploadedTable

ANONYMOUS_ID_PREFIX = "file-"  # begins the id of an annotator whom a file does not name
REQUIRED_RESULT_COLUMNS = ("hit", "annotator", "item", "value")  # the columns of Easel's own files


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A HIT that was answered. A score is None where its item was marked N/A, NaN where nothing is said of it since
    others were.

    line: where it begins. lines: those of its items, where each has one of its own. nameless: nobody knows whose it is.
    reasons: why items were marked, of each item, where anything is known of that.
    segment: where items are systems, the one whose outputs it showed. criterion: by which the scores are, where there
    are several; of a HIT there is a row for each.

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
    lines: tuple[int, ...] = ()
    anonymous: bool = False
    reasons: tuple[str, ...] = ()
    segment: str = ""
    criterion: str = ""

    def line_of_item(self, position: int) -> int:
        """Where the item at this place stands, 0 for the first."""
        return self.lines[position] if self.lines else self.line


class ValueReader(Protocol):
    """How the values of a campaign's design stand in a file."""

    @property
    def allowed_numbers_text(self) -> str:
        """Which numbers an item can have, in words."""

    @property
    def has_point_values(self) -> bool:
        """Whether values are points, 0 to 100."""

    @property
    def criterion_names(self) -> Sequence[str]:
        """The names of the criteria by which values are; none where there are none."""

    @property
    def classes(self) -> Sequence[str]:
        """What its classes are called; none where values are no classes."""

    def parse_number(self, cell: str, /) -> float | None:
        """A number, None where it cannot be a value. Raises ValueError where it is no number."""

    def parse_value(self, cell: str, /) -> float | None:
        """A number or the label of a class, likewise."""

    def criterion_format(self, criterion: str, /) -> "ValueReader | None":
        """How they stand there by a criterion, empty where none is named; None where the campaign does not ask so."""


class ResultReader(Protocol):
    """From a table to its rows, whose numbers and times `cells` reads. Without the platform's ids, `digest` names the
    worker and, with the line, the assignment. Raises `Invalid`, and `FormatsUnknownError`.
    """

    def __call__(
        self, upload: UploadedTable, digest: str, values: ValueReader, cells: CellReader, /
    ) -> list[ResultRow]: ...


@dataclass(frozen=True)
class ResultFileFormat:
    """The files in which a platform tells what was answered.

    Attributes:
        recognises: Whether a file with these columns may be one of them.
        reads: Whether `read` takes a file with these columns; others need to be mapped.
        read: Reads it.
        written_cells: Its cells with numbers and times, each with its line.
        by_criterion: Whether they can say by which criterion a value is.

    """

    has_known_column: Callable[[Sequence[str]], bool]
    has_required_columns: Callable[[Sequence[str]], bool]
    read_results: ResultReader
    iter_formatted_cells: Callable[[UploadedTable], Iterator[tuple[int, CellKind, str]]]
    has_criteria: bool = False
