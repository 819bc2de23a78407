"""Judgments of systems against one baseline: the choice of the baseline, and what the judgments can and cannot tell.

Outcomes are seen from the system's side: +1 the system is preferred, 0 a tie, -1 the baseline is.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, joined_mention_placeholders_text, make_mention
from app.inference.ground.validation import (
    index_array_and_count_or_raise,
    outcome_vector_or_raise,
    refuse_columns_of_unequal_length,
)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BaselineAdvice:
    """Assessment of a baseline by how often it was preferred.

    Attributes:
        won: Judgments that preferred the baseline. tied and lost likewise, from the baseline's side.
        share_won: won / (won + lost), NaN when every judgment is a tie.
        verdict: "even", "strong", "weak" or "tied".
        sentence: The assessment for a researcher.

    """

    won: int
    tied: int
    lost: int
    share_won: float
    verdict: str
    sentence: str


def baseline_advice(outcomes: npt.ArrayLike) -> BaselineAdvice:
    """Assess the choice of the baseline: a good one wins and loses about equally (Otani et al. 2016, section 6.3).

    "even" is a share won of the decided judgments from 1/3 to 2/3: neither side has more than twice what the other has.

    Args:
        outcomes: (n,) of +1, 0, -1.

    Raises:
        Inestimable: "no_judgments".
        ValueError: An outcome is another number.

    """
    values = outcome_vector_or_raise(outcomes)
    if not len(values):
        raise Inestimable("The baseline has not been compared with anything yet.", code="no_judgments")
    win_count, tie_count, loss_count = (int(np.sum(values == value)) for value in (-1, 0, 1))
    share = win_count / (win_count + loss_count) if win_count + loss_count else float("nan")
    verdict = (
        "tied" if not win_count + loss_count else "strong" if share > 2 / 3 else "weak" if share < 1 / 3 else "even"
    )
    counts = f"The baseline won {win_count:,}, tied {tie_count:,} and lost {loss_count:,} of {len(values):,} judgments"
    return BaselineAdvice(win_count, tie_count, loss_count, share, verdict, f"{counts}{_ADVICE_BY_VERDICT[verdict]}")


_ADVICE_BY_VERDICT = {
    "even": ": it wins and loses about equally, so it separates better systems from worse ones well.",
    "strong": ": it is too strong to separate the weaker systems. Choose one that wins and loses about equally.",
    "weak": ": it is too weak to separate the better systems. Choose one that wins and loses about equally.",
    "tied": ": it does not separate any systems. Choose a baseline that differs from the systems.",
}


def positions_opponents_and_outcomes_of_baseline(
    baseline: int, first: npt.ArrayLike, second: npt.ArrayLike, outcomes: npt.ArrayLike
) -> tuple[Integers, Integers, Integers]:
    """Select the judgments that include the baseline.

    A comparison of the baseline with itself is left out.

    Args:
        baseline: The number of the baseline.
        first: (n,).
        second: (n,).
        outcomes: (n,) of +1 (the first is preferred), 0, -1.

    Returns:
        The positions of the judgments, the other system of each, and the outcome from that system's side; (m,) each.

    Raises:
        ValueError: The arrays are not as above.

    """
    (left, _), (right, _), result = (
        index_array_and_count_or_raise("first", first),
        index_array_and_count_or_raise("second", second),
        outcome_vector_or_raise(outcomes),
    )
    refuse_columns_of_unequal_length(first=left, second=right, outcomes=result)
    positions = np.flatnonzero((left == baseline) != (right == baseline))
    is_first = left[positions] == baseline
    return (
        positions,
        np.where(is_first, right[positions], left[positions]),
        np.where(is_first, -result[positions], result[positions]),
    )


@dataclass(frozen=True, slots=True)
class Numbering:
    """Numbering of systems, judges or segments.

    Attributes:
        used: The numbers with a judgment, (m,).
        index: The position in `used` of each judgment, (n,).
        count: How many numbers there are, with or without a judgment.

    """

    used: Integers
    index: Integers
    count: int

    @property
    def is_judged_mask(self) -> Mask:
        """Return whether each number has a judgment, (count,)."""
        mask = np.zeros(self.count, dtype=np.bool_)
        mask[self.used] = True
        return mask

    def values_with_nan_for_unused(self, used_values: Array) -> Array:
        """Return values of the used numbers (m, ...) as (count, ...), NaN for those without a judgment."""
        all_values = np.full((self.count, *used_values.shape[1:]), np.nan)
        all_values[self.used] = used_values
        return all_values


@dataclass(frozen=True, slots=True)
class BaselineJudgments:
    """Validated judgments against the baseline; outcomes (n,)."""

    items: Numbering
    annotators: Numbering
    segments: Numbering
    outcomes: Integers


def validated_baseline_judgments(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None,
    n_annotators: int | None,
    n_segments: int | None,
) -> BaselineJudgments:
    """Validate the four arrays (n,) of long form. Raises ValueError for different lengths and numbers out of range."""
    system_numbers, n_items = index_array_and_count_or_raise("items", items, n_items)
    judge_numbers, n_annotators = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    segment_numbers, n_segments = index_array_and_count_or_raise("segments", segments, n_segments)
    outcome_values = outcome_vector_or_raise(outcomes)
    refuse_columns_of_unequal_length(
        items=system_numbers, annotators=judge_numbers, segments=segment_numbers, outcomes=outcome_values
    )
    return BaselineJudgments(
        _renumber_used_numbers(system_numbers, n_items),
        _renumber_used_numbers(judge_numbers, n_annotators),
        _renumber_used_numbers(segment_numbers, n_segments),
        outcome_values,
    )


def _renumber_used_numbers(numbers: Integers, count: int) -> Numbering:
    used, index = np.unique(numbers, return_inverse=True)
    return Numbering(used, index, count)


def refuse_missing_or_equal_outcomes(outcomes: Integers) -> None:
    """Raise `Inestimable` for no judgments ("no_judgments") and for judgments that are all alike ("one_outcome")."""
    if not len(outcomes):
        raise Inestimable("There are no judgments against the baseline.", code="no_judgments")
    if (outcomes == outcomes[0]).all():
        outcome = int(outcomes[0])
        if len(outcomes) == 1:
            shared = {1: "The only judgment prefers the system", 0: "The only judgment is a tie"}
            finding = shared.get(outcome, "The only judgment prefers the baseline")
        else:
            shared = {1: "prefer the system", 0: "are ties"}
            finding = f"All {len(outcomes):,} judgments {shared.get(outcome, 'prefer the baseline')}"
        raise Inestimable(
            f"{finding}, so systems, judges and segments cannot be distinguished. Compare with another baseline.",
            code="one_outcome",
        )


def notes_on_limits_of_baseline_judgments(judgments: BaselineJudgments) -> list[Note]:
    """Return notes on what these judgments cannot tell."""
    groups = (("system", judgments.items), ("judge", judgments.annotators), ("segment", judgments.segments))
    notes = [note for name, group in groups for note in numbers_without_judgment_notes(name, group)]
    if len(judgments.annotators.used) == 1:
        sentence = (
            "All judgments are by one judge: the distances between systems cannot be separated from the judge’s "
            "sensitivity and depend on the prior. The order of the systems does not."
        )
        notes.append(Note("one_judge", sentence))
    if len(judgments.items.used) == 1:
        sentence = "Only one system was judged, so its score cannot be separated from the difficulty of the segments."
        notes.append(Note("one_system", sentence))
    return notes + _notes_on_systems_without_common_segments(judgments)


def numbers_without_judgment_notes(noun: str, numbering: Numbering) -> list[Note]:
    """Return at most one note, on the numbers without a judgment."""
    missing = np.flatnonzero(~numbering.is_judged_mask)
    return (
        [Note("without_judgment", "{0} has no judgments and no estimate.", make_mention(noun, missing))]
        if len(missing)
        else []
    )


def _notes_on_systems_without_common_segments(judgments: BaselineJudgments) -> list[Note]:
    """Return a note on groups of systems without common segments, which only the prior of the difficulties relates."""
    from scipy.sparse.csgraph import connected_components  # slow to import, and most processes need no graph

    systems, segments = len(judgments.items.used), len(judgments.segments.used)
    edges = judgments.items.index, systems + judgments.segments.index
    graph = coo_array((np.ones(len(edges[0])), edges), shape=(systems + segments,) * 2)
    groups, label = connected_components(graph, directed=False)
    if groups == 1:
        return []
    members = [
        make_mention("system", judgments.items.used[label[:systems] == group]) for group in range(min(groups, 5))
    ]
    ending = "; ..." if groups > 5 else ""
    sentence = (
        f"The systems fall into {groups} groups that share no segment: "
        f"{joined_mention_placeholders_text(len(members))}{ending}. Scores of different groups are comparable only if "
        "their segments are equally difficult."
    )
    return [Note("groups_of_systems", sentence, *members)]
