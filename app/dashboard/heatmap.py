"""Figure 8 of Sakaguchi & Van Durme 2018: the match quality of all pairs, items ordered by their score.

Up to `MAX_HEATMAP_ROWS` items have a row each. More are gathered into groups of neighbours in that order; a cell then
shows the match quality of the two groups' mean score and mean variance. The page says that this is an approximation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.match_quality import match_quality_matrix

MAX_HEATMAP_ROWS = 200  # about two screen pixels each
MAX_COLOUR_LEVEL = 255

RowNumbers = npt.NDArray[np.intp]
ColourLevels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Heatmap:
    """A symmetric picture of k rows, the lowest score first.

    Attributes:
        order: Item numbers by score, (N,); equal scores by number, so that nothing jumps.
        starts: Where in `order` each row's items begin, (k,).
        score: Each row's (mean) score, (k,).
        quality: Match quality of each pair of rows, (k, k), in (0, 1].

    """

    order: RowNumbers
    starts: RowNumbers
    score: Array
    quality: Array

    @property
    def quality_as_bytes(self) -> ColourLevels:
        """Quality in steps of 1/255, as fine as colours can show."""
        return np.rint(self.quality * MAX_COLOUR_LEVEL).astype(np.uint8)

    @property
    def has_grouped_rows(self) -> bool:
        """True if a row stands for several items."""
        return len(self.order) > len(self.starts)


def match_quality_heatmap_of_row_groups(
    score: Array, variance: Array, gamma: float, *, max_rows: int = MAX_HEATMAP_ROWS
) -> Heatmap:
    """Compute the heatmap of N >= 1 items.

    Args:
        score: Scores, (N,).
        variance: Variances, (N,).
        gamma: Parameter of match quality, > 0.
        max_rows: Most rows; more items are grouped.

    """
    order = np.argsort(score, kind="stable")
    starts = first_row_of_each_group(len(order), max_rows)
    row_score, row_variance = (group_means(values[order], starts) for values in (score, variance))
    quality = match_quality_matrix(row_score, row_variance, gamma)
    return Heatmap(order, starts, row_score, quality)


def first_row_of_each_group(count: int, max_groups: int) -> RowNumbers:
    """Return the first row of each of at most `max_groups` groups of neighbours, of equal size up to one row."""
    max_groups = min(count, max_groups)
    return np.arange(max_groups, dtype=np.intp) * count // max_groups


def group_means(values: Array, starts: RowNumbers) -> Array:
    """Mean of each group, (k,)."""
    sizes = np.diff(np.append(starts, len(values)))
    means: Array = np.add.reduceat(values, starts) / sizes
    return means


def heatmap_row_labels(heatmap: Heatmap, item_names: Sequence[str]) -> list[str]:
    """Return the label of each row: the name of its item (`item_names` by number), or the ranks of its group from
    below.
    """
    if not heatmap.has_grouped_rows:
        return [item_names[number] for number in heatmap.order]
    ends = np.append(heatmap.starts[1:], len(heatmap.order))
    return [f"items {start + 1:,} to {end:,}" for start, end in zip(heatmap.starts, ends, strict=True)]


def best_matching_row_of_each_row(heatmap: Heatmap) -> RowNumbers:
    """Return for each row the other row of highest match quality, (k,); with a single row, itself."""
    others = heatmap.quality.copy()
    np.fill_diagonal(others, -1.0)
    best: RowNumbers = np.argmax(others, axis=1)
    return best
