"""The update laws by name, and the replay of a campaign's responses.

A new law is one module with a `LAW` and one line in `ONLINE`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import annotator_aware_online, bounded_ra, easl, trueskill
from app.inference.online.annotator_aware_learned import Learned
from app.inference.online.law import Law, Parameters, checked_items

__all__ = ["ONLINE", "Law", "Parameters", "Replay", "replay", "steps"]

Hit = tuple[Sequence[int], Sequence[float]]
"""The numbers of a HIT's items as presented, and their scores in [0, 1]."""

ONLINE: dict[str, Law] = {
    "easl": easl.LAW,
    "ra": bounded_ra.LAW,
    "trueskill": trueskill.LAW,
    "easl-aware": annotator_aware_online.LAW,
}


class Replay:
    """A campaign's posteriors under any law, as its responses are applied in order, piece by piece.

    law, a, b, parameters: as in `replay`. a, b: the posteriors so far, (N,). learned: what is known of annotators so
    far, None with a law that learns nothing of them.
    """

    def __init__(self, law: Law, a: npt.ArrayLike, b: npt.ArrayLike, parameters: Parameters) -> None:
        self.law, self.parameters = law, parameters
        self.a, self.b = _priors(law, a, b)
        pairs = list(zip(self.a.tolist(), self.b.tolist(), strict=True))
        self.learned = None if law.update else Learned.nothing(pairs)

    def take(self, hits: Sequence[Hit], annotators: Sequence[int]) -> None:
        """The next HITs, and who answered each. Raises what `replay` raises; start afresh then."""
        if self.learned is None:
            self.a, self.b = replay(self.law, self.a, self.b, hits, self.parameters)
            return
        for (items, scores), annotator in zip(hits, annotators, strict=True):
            changed, change = self.learned.apply(annotator, items, scores)
            self.a[changed], self.b[changed] = change.a, change.b


def replay(
    law: Law,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    hits: Iterable[Hit],
    parameters: Parameters,
) -> tuple[Array, Array]:
    """The posteriors after all HITs in order, from the priors `a` and `b`, each (N,); two new arrays (N,).

    hits: per HIT the numbers of its items as presented, from 0 to N - 1 and none twice, and their scores in
    [0, 1]. It calls the same `law.update` as a live submission, or `law.update_all` with the same bits, so the
    bits are the same on the same machine and libraries. Raises ValueError for what `update` refuses, for an item
    number outside 0 to N - 1, an item twice in a HIT, priors that are not both (N,), and a law that must know who
    answered: that one takes a `Replay`.
    """
    first, second = _priors(law, a, b)
    if law.update_all:
        hits = list(hits)
        # What is wrong with a HIT is said by taking the HITs one by one.
        if judgments := _judgments(hits, len(first)):
            law.update_all(first, second, *judgments)
            return first, second
    # Lists of floats: reading an element is several times faster than from an array, and gives plain floats.
    firsts, seconds = first.tolist(), second.tolist()
    for _ in steps(law, firsts, seconds, hits, parameters):
        pass
    return np.array(firsts, dtype=np.float64), np.array(seconds, dtype=np.float64)


def steps(
    law: Law,
    first: list[float],
    second: list[float],
    hits: Iterable[Hit],
    parameters: Parameters,
) -> Iterator[tuple[Sequence[int], list[float], list[float]]]:
    """`replay` one HIT at a time: changes the lists `first` and `second`, each (N,), in place, and yields after each
    HIT its items and their new parameters, two lists of n. Raises what `replay` raises.
    """
    if law.update is None:
        raise ValueError(f"{law.name} must know who answered")
    for items, scores in hits:
        checked_items(items, len(first))
        new_a, new_b = law.update([first[i] for i in items], [second[i] for i in items], scores, parameters)
        for i, value_a, value_b in zip(items, new_a, new_b, strict=True):
            first[i], second[i] = value_a, value_b
        yield items, new_a, new_b


def _priors(law: Law, a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array]:
    """Copies of the priors, (N,) each."""
    first, second = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)
    for array in (first, second):
        if array.ndim != 1:
            raise ValueError(f"priors are arrays of shape (N,), not {array.shape}")
    if len(first) != len(second):
        raise ValueError(f"a posterior is a pair, but the priors have lengths {len(first)} and {len(second)}")
    law.score(first, second)  # raises ValueError for a prior that cannot be
    return first, second


def _judgments(hits: Sequence[Hit], count: int) -> tuple[npt.NDArray[np.intp], Array] | None:
    """Items and scores of all HITs, (T,) each, in order; None if `steps` would refuse one of the HITs."""
    sizes = np.fromiter((len(items) for items, _ in hits), np.intp, len(hits))
    if [len(scores) for _, scores in hits] != sizes.tolist() or not sizes.all():
        return None
    total = int(sizes.sum())
    items = np.fromiter(chain.from_iterable(items for items, _ in hits), np.intp, total)
    scores = np.fromiter(chain.from_iterable(scores for _, scores in hits), np.float64, total)
    possible = ((items >= 0) & (items < count) & (scores >= 0.0) & (scores <= 1.0)).all()
    in_hit = np.sort(np.repeat(np.arange(len(hits)), sizes) * count + items)
    return (items, scores) if possible and (np.diff(in_hit) > 0).all() else None
