"""Judgments of systems against one baseline: choosing the baseline, and what the judgments can and cannot tell.

Outcomes are seen from the system's side: +1 the system is preferred, 0 a tie, -1 the baseline is.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import check_equal_length, numbered, outcomes_of
from app.inference.ground.notes import Note, listed, mention

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BaselineAdvice:
    """How often the baseline was preferred, tied and not preferred, and what to think of it.

    won, tied, lost: numbers of judgments, from the baseline's side.
    share_won: won / (won + lost), NaN when every judgment is a tie.
    verdict: "even", "strong", "weak" or "tied". sentence: for a researcher.
    """

    won: int
    tied: int
    lost: int
    share_won: float
    verdict: str
    sentence: str


def baseline_advice(outcomes: npt.ArrayLike) -> BaselineAdvice:
    """Whether the baseline was a good choice: Otani et al. 2016, section 6.3, a good one wins and loses about equally.

    outcomes: (n,) of +1, 0, -1. "even" is a share of won among decided judgments from 1/3 to 2/3: neither side has
    more than twice what the other has. Raises `Inestimable` ("no_judgments") and ValueError.
    """
    values = outcomes_of(outcomes)
    if not len(values):
        raise Inestimable("The baseline has not been compared with anything yet.", code="no_judgments")
    won, tied, lost = (int(np.sum(values == value)) for value in (-1, 0, 1))
    share = won / (won + lost) if won + lost else float("nan")
    verdict = "tied" if not won + lost else "strong" if share > 2 / 3 else "weak" if share < 1 / 3 else "even"
    counts = f"The baseline won {won:,}, tied {tied:,} and lost {lost:,} of {len(values):,} judgments"
    return BaselineAdvice(won, tied, lost, share, verdict, f"{counts}{_ADVICE[verdict]}")


_ADVICE = {
    "even": ": it wins and loses about equally, so it tells better systems from worse ones well.",
    "strong": ": it is too strong to tell the weaker systems apart. Choose one that wins and loses about equally.",
    "weak": ": it is too weak to tell the better systems apart. Choose one that wins and loses about equally.",
    "tied": ": it tells no system from another. Choose a baseline that differs from the systems.",
}


def against(
    baseline: int, first: npt.ArrayLike, second: npt.ArrayLike, outcomes: npt.ArrayLike
) -> tuple[Integers, Integers, Integers]:
    """From judgments of any pairs those that have the baseline in them: their positions, the other system of each, and
    the outcome from that system's side, three arrays (m,).

    first, second: (n,); outcomes: (n,) of +1 the first is preferred, 0, -1. A comparison of the baseline with itself
    is left out. Raises ValueError for arrays that are not as above.
    """
    (left, _), (right, _), result = numbered("first", first), numbered("second", second), outcomes_of(outcomes)
    check_equal_length(first=left, second=right, outcomes=result)
    rows = np.flatnonzero((left == baseline) != (right == baseline))
    is_first = left[rows] == baseline
    return rows, np.where(is_first, right[rows], left[rows]), np.where(is_first, -result[rows], result[rows])


@dataclass(frozen=True, slots=True)
class Numbering:
    """Systems, judges or segments: used (m,), those with a judgment; index (n,), by judgment the position in `used`;
    count, of all.
    """

    used: Integers
    index: Integers
    count: int

    @property
    def seen(self) -> Mask:
        """(count,), whether there is a judgment."""
        mask = np.zeros(self.count, dtype=np.bool_)
        mask[self.used] = True
        return mask

    def spread(self, values: Array) -> Array:
        """(m, ...) as (count, ...), NaN for those without a judgment."""
        whole = np.full((self.count, *values.shape[1:]), np.nan)
        whole[self.used] = values
        return whole


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """Judgments against the baseline, checked; outcomes (n,)."""

    items: Numbering
    annotators: Numbering
    segments: Numbering
    outcomes: Integers


def checked(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None,
    n_annotators: int | None,
    n_segments: int | None,
) -> AgainstBaseline:
    """The four arrays (n,) of long form; ValueError for different lengths and numbers out of range."""
    systems, n_items = numbered("items", items, n_items)
    judges, n_annotators = numbered("annotators", annotators, n_annotators)
    places, n_segments = numbered("segments", segments, n_segments)
    results = outcomes_of(outcomes)
    check_equal_length(items=systems, annotators=judges, segments=places, outcomes=results)
    return AgainstBaseline(_group(systems, n_items), _group(judges, n_annotators), _group(places, n_segments), results)


def _group(numbers: Integers, count: int) -> Numbering:
    used, index = np.unique(numbers, return_inverse=True)
    return Numbering(used, index, count)


def refuse_what_tells_nothing(outcomes: Integers) -> None:
    """Raises `Inestimable` for no judgments ("no_judgments") and for judgments that are all alike ("one_outcome")."""
    if not len(outcomes):
        raise Inestimable("There are no judgments against the baseline.", code="no_judgments")
    if (outcomes == outcomes[0]).all():
        same = {1: "prefer the system", 0: "are ties", -1: "prefer the baseline"}[int(outcomes[0])]
        raise Inestimable(
            f"All {len(outcomes):,} judgments {same}, so they tell neither systems nor judges nor segments apart."
            " Compare with another baseline.",
            code="one_outcome",
        )


def notes_on(columns: AgainstBaseline) -> list[Note]:
    """What these judgments cannot tell, in sentences."""
    groups = (("system", columns.items), ("judge", columns.annotators), ("segment", columns.segments))
    notes = [note for name, group in groups for note in unseen(name, group)]
    if len(columns.annotators.used) == 1:
        sentence = (
            "All judgments are by one judge: how far apart the systems lie cannot be told from how sensitive the judge"
            " is, and rests on the prior. Their order does not."
        )
        notes.append(Note("one_judge", sentence))
    if len(columns.items.used) == 1:
        sentence = "Only one system was judged, so its score cannot be told from the difficulty of the segments."
        notes.append(Note("one_system", sentence))
    return notes + _disconnected(columns)


def unseen(name: str, group: Numbering) -> list[Note]:
    """At most one sentence, on those without a judgment."""
    missing = np.flatnonzero(~group.seen)
    return (
        [Note("without_judgment", "{0} had no judgment and no estimate.", mention(name, missing))]
        if len(missing)
        else []
    )


def _disconnected(columns: AgainstBaseline) -> list[Note]:
    """Systems judged on no common segments, even by way of others, meet only in the prior of the difficulties."""
    systems, segments = len(columns.items.used), len(columns.segments.used)
    edges = columns.items.index, systems + columns.segments.index
    graph = coo_array((np.ones(len(edges[0])), edges), shape=(systems + segments,) * 2)
    groups, label = connected_components(graph, directed=False)
    if groups == 1:
        return []
    members = [mention("system", columns.items.used[label[:systems] == group]) for group in range(min(groups, 5))]
    more = "; ..." if groups > 5 else ""
    sentence = (
        f"The systems fall into {groups} groups that share no segment: {listed(len(members))}{more}. Scores of "
        "different groups are comparable only if their segments are equally difficult."
    )
    return [Note("groups_of_systems", sentence, *members)]
