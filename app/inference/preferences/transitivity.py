"""Self-consistency of annotators: kappa for transitivity (Amidei 2020, section 3.1)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import index_array_and_count_or_raise, refuse_columns_of_unequal_length
from app.inference.observations.comparisons import (
    BooleanArray,
    comparison_arrays_and_item_count_or_raise,
    equal_follower_count_of_each_key,
    follower_position_pairs,
)

CHANCE_OF_TRANSITIVE_TRIAD = 13 / 27
"""Share of transitive triads if each of three pairs is preferred, reversed or tied with equal chance."""
CHANCE_OF_TRANSITIVE_TRIAD_WITHOUT_TIES = 6 / 8

_WEDGES_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Transitivity:
    """Kappa of each annotator, (n_annotators,), and over all their triads together.

    Triads of one annotator share pairs, so they are not independent: a binomial interval would be too narrow. Kappa
    says that judgments fit together, not that they are right.

    Attributes:
        kappa: 1 if all triads are transitive, 0 if as many as by chance (13/27), below that negative; NaN without
            triads.
        triads: Number of triads that it rests on.
        transitive: Number of those that are transitive.
        kappa_without_ties: As kappa, without triads that contain a tie, where chance is 6/8; so the next two.
        pooled_kappa: Kappa of all annotators' triads together, as pooled_kappa_without_ties.
        estimable: (n_annotators,) whether the annotator has a triad.
        notes: What could not be estimated and why.

    """

    kappa: Array
    triads: Integers
    transitive: Integers
    kappa_without_ties: Array
    triads_without_ties: Integers
    transitive_without_ties: Integers
    pooled_kappa: float
    pooled_kappa_without_ties: float
    estimable: BooleanArray
    notes: tuple[Note, ...]


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_annotators: int | None = None,
    hits: npt.ArrayLike | None = None,
) -> Transitivity:
    """Kappa = (P(A) - P(E)) / (1 - P(E)) over the triads of items whose three pairs one annotator judged.

    Arrays are (J,): item numbers, outcomes +1 (first preferred), 0 (tie), -1 (second preferred), annotator. A triad is
    transitive if "at least as good as" is (a weak order). If an annotator judged a pair more than once, the first
    judgment counts; `retest` is about the others. Pairs from scores in one HIT are transitive by construction, so with
    `hits` given, (J,), a triad counts only if its pairs come from three different HITs. Time grows with the judgments
    and the triads examined, not with the number of items. Raises ValueError as
    `comparison_arrays_and_item_count_or_raise`, and Inestimable
    if there is no triad (code "no_triads") or no judgment.
    """
    first, second, outcomes, n_items = comparison_arrays_and_item_count_or_raise(first, second, outcomes)
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    hits, _ = (np.arange(first.size), 0) if hits is None else index_array_and_count_or_raise("hits", hits)
    refuse_columns_of_unequal_length(first=first, annotators=annotators, hits=hits)
    counts = np.zeros((4, n_annotators), dtype=np.intp)
    edges = _make_comparison_edges(
        annotators * n_items + first, annotators * n_items + second, outcomes, annotators, hits
    )
    for annotator, transitive, without_ties in _iterate_triad_batches(edges):
        kinds = (np.ones_like(transitive), transitive, without_ties, transitive & without_ties)
        counts += [np.bincount(annotator[kind], minlength=n_annotators) for kind in kinds]
    if not counts.any():
        raise Inestimable(
            "No annotator judged the three pairs of any three items in three different tasks, so transitivity cannot "
            "be measured: within a task, scores are transitive by construction. Annotators must see items again in "
            "other tasks: turn on “Show items again”, and ask for more judgments per item.",
            code="no_triads",
        )
    totals = counts.sum(axis=1)
    return Transitivity(
        kappa=transitivity_kappa(counts[1], counts[0], CHANCE_OF_TRANSITIVE_TRIAD),
        triads=counts[0],
        transitive=counts[1],
        kappa_without_ties=transitivity_kappa(counts[3], counts[2], CHANCE_OF_TRANSITIVE_TRIAD_WITHOUT_TIES),
        triads_without_ties=counts[2],
        transitive_without_ties=counts[3],
        pooled_kappa=float(transitivity_kappa(totals[1], totals[0], CHANCE_OF_TRANSITIVE_TRIAD)),
        pooled_kappa_without_ties=float(
            transitivity_kappa(totals[3], totals[2], CHANCE_OF_TRANSITIVE_TRIAD_WITHOUT_TIES)
        ),
        estimable=counts[0] > 0,
        notes=_transitivity_notes(counts, np.unique(annotators)),
    )


def transitivity_kappa(
    transitive: npt.ArrayLike, triads: npt.ArrayLike, chance: float = CHANCE_OF_TRANSITIVE_TRIAD
) -> Array:
    """(P(A) - P(E)) / (1 - P(E)), P(A) = transitive / triads; NaN where there are no triads. Arrays that broadcast."""
    transitive, triads = np.asarray(transitive, dtype=np.float64), np.asarray(triads, dtype=np.float64)
    share = transitive / np.where(triads > 0, triads, np.nan)
    return np.asarray((share - chance) / (1.0 - chance))


def _transitivity_notes(triad_counts: Integers, annotator_numbers: Integers) -> tuple[Note, ...]:
    notes = []
    without_triad = int((triad_counts[0, annotator_numbers] == 0).sum())
    if without_triad:
        sentence = (
            f"{without_triad} of {annotator_numbers.size} annotators have no triad whose pairs they judged in three "
            "different tasks, and so no kappa."
        )
        notes.append(Note("no_triad", sentence))
    if not triad_counts[2].any():
        notes.append(Note("ties_in_every_triad", "Every triad contains a tie, so there is no kappa without ties."))
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class _ComparisonEdges:
    """Judgments of pairs as edges, (E,): nodes are an annotator's items; sorted by source, then target."""

    source: Integers
    target: Integers
    outcome: Integers
    annotator: Integers
    hit: Integers
    n_nodes: int


def _make_comparison_edges(
    first: Integers, second: Integers, outcomes: Integers, annotators: Integers, hits: Integers
) -> _ComparisonEdges:
    """Return the graph of compared items, each edge from the node with fewer edges to that with more.

    So a node has at most sqrt(2 E) edges out of it, which bounds the work (Chiba & Nishizeki 1985). first and second
    are numbers of an annotator's item, so annotators share no node.
    """
    _, node, degree = np.unique(np.concatenate([first, second]), return_inverse=True, return_counts=True)
    rank = np.empty(degree.size, dtype=np.intp)
    rank[np.argsort(degree, kind="stable")] = np.arange(degree.size)
    first_rank, second_rank = rank[node[: first.size]], rank[node[first.size :]]
    source, target = np.minimum(first_rank, second_rank), np.maximum(first_rank, second_rank)
    outcome = np.where(first_rank < second_rank, outcomes, -outcomes)
    keys = source * degree.size + target
    order = np.argsort(keys, kind="stable")
    order = order[np.diff(keys[order], prepend=-1) > 0]  # the first judgment of each pair
    return _ComparisonEdges(source[order], target[order], outcome[order], annotators[order], hits[order], degree.size)


def _iterate_triad_batches(edges: _ComparisonEdges) -> Iterator[tuple[Integers, BooleanArray, BooleanArray]]:
    """Yield all triads, a few million candidates at a time: annotator, whether transitive, whether free of ties."""
    keys = edges.source * edges.n_nodes + edges.target
    follower_counts = equal_follower_count_of_each_key(edges.source)
    cuts = (np.flatnonzero(np.diff(np.cumsum(follower_counts) // _WEDGES_AT_ONCE, append=-1)) + 1).tolist()
    for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
        ab, ac = follower_position_pairs(follower_counts, start, stop)
        wanted_keys = edges.target[ab] * edges.n_nodes + edges.target[ac]
        bc = np.minimum(np.searchsorted(keys, wanted_keys), keys.size - 1)
        is_closed = keys[bc] == wanted_keys
        ab, bc, ac = ab[is_closed], bc[is_closed], ac[is_closed]
        in_different_hits = (
            (edges.hit[ab] != edges.hit[bc]) & (edges.hit[bc] != edges.hit[ac]) & (edges.hit[ab] != edges.hit[ac])
        )
        ab, bc, ac = ab[in_different_hits], bc[in_different_hits], ac[in_different_hits]
        x, y, z = edges.outcome[ab], edges.outcome[bc], edges.outcome[ac]
        # a to b and b to c settle a to c, unless one goes up and the other down: 7 + 2 * 3 = 13 of the 27.
        yield edges.annotator[ab], (x * y < 0) | (z == np.sign(x + y)), x * y * z != 0
