"""The evidence for `annotator_beliefs`: sums over annotators' judgments and the others' judgments of the same items.

All arrays are float64; "items" and "annotators" are numbers from 0; a judgment is one entry of arrays of equal length.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.validation import sum_values_of_each_number

MIN_EVIDENCE_JUDGMENTS: Final = 3
"""Fewest judgments on items that others have judged too, before an annotator's agreement means anything."""

# Columns of the evidence on an annotator, sums over their judgments: of y and the others' consensus (m, v) on t ...
N, Y, YY, M, MM, MY, V, COMPARED = range(8)
# ... and for the three ways to form the others' mean score c, its weight w and the moments of y and c under w.
MEAN_KIND_COUNT: Final = 3
PLAIN_MEAN, BIAS_CORRECTED_MEAN, CORRECTED_MEAN = range(MEAN_KIND_COUNT)
MOMENT_COUNT: Final = 6
EVIDENCE_SIZE: Final = 8 + MEAN_KIND_COUNT * MOMENT_COUNT

# Columns of what others say about the item of one judgment: m, v, then c and w for each of the ways.
OTHERS_SIZE: Final = 2 + 2 * MEAN_KIND_COUNT


@dataclass(frozen=True, slots=True)
class ScoredJudgments:
    """Judgments in long form: J of them, of n_items items by n_annotators annotators, scores in [0, 1].

    Attributes:
        same: (J,) equal for two judgments of the same item by the same annotator, which are not compared with each
            other;
        None if there are no such judgments.

    """

    items: Integers
    annotators: Integers
    scores: Array
    same: Integers | None
    n_items: int
    n_annotators: int

    @classmethod
    def from_arrays(
        cls, items: Integers, annotators: Integers, scores: Array, n_items: int, n_annotators: int
    ) -> "ScoredJudgments":
        """Return the judgments, with `same` found by sorting."""
        pairs, same = np.unique(items * max(n_annotators, 1) + annotators, return_inverse=True)
        return cls(items, annotators, scores, same if len(pairs) < len(same) else None, n_items, n_annotators)

    def sum_of_each_item(self, values: Array) -> Array:
        """Return sums over each item's judgments, (n_items,)."""
        return sum_values_of_each_number(self.items, values, self.n_items)

    def sum_of_each_annotator(self, values: Array) -> Array:
        """Return sums over each annotator's judgments, (n_annotators,)."""
        return sum_values_of_each_number(self.annotators, values, self.n_annotators)

    def sum_of_others_on_item_of_each_judgment(self, values: Array) -> Array:
        """Return, for each judgment, the sum over the judgments of its item by other annotators, (J,)."""
        own = values if self.same is None else sum_values_of_each_number(self.same, values, len(values))[self.same]
        return self.sum_of_each_item(values)[self.items] - own


def moments_of_answers_of_each_annotator(judgments: ScoredJudgments, m: Array, v: Array) -> Array:
    """Return the moments (n_annotators, COMPARED) of answers and of the consensus of the others."""
    y = judgments.scores
    columns = (np.ones(len(y)), y, y * y, m, m * m, m * y, v)
    return np.column_stack([judgments.sum_of_each_annotator(column) for column in columns])


def evidence_of_each_annotator(judgments: ScoredJudgments, summaries_of_others: Array) -> Array:
    """Return the evidence (n_annotators, EVIDENCE) from judgments and summaries of others.

    `summaries_of_others` comes from `summaries_of_other_judgments_of_item`; (OTHERS, J).
    """
    y = judgments.scores
    columns = [(summaries_of_others[3] > 0.0) * 1.0]
    for mean_kind in range(MEAN_KIND_COUNT):
        c, w = summaries_of_others[2 + 2 * mean_kind : 4 + 2 * mean_kind]
        columns += [w, w * y, w * y * y, w * c, w * c * c, w * y * c]
    return np.column_stack(
        [
            moments_of_answers_of_each_annotator(judgments, *summaries_of_others[:2]),
            *map(judgments.sum_of_each_annotator, columns),
        ]
    )


def correlation_with_mean_of_others(moments: Array) -> Array:
    """Return the weighted correlation of an annotator's scores with the mean of the others; 0 if either does not
    vary.
    """
    w, y, yy, c, cc, yc = moments.T
    w = np.where(w > 0.0, w, 1.0)
    spreads = np.maximum(yy / w - (y / w) ** 2, 0.0) * np.maximum(cc / w - (c / w) ** 2, 0.0)
    varies = spreads > 1e-12
    return np.where(varies, (yc / w - y * c / w**2) / np.sqrt(np.where(varies, spreads, 1.0)), 0.0)
