"""The update laws by name, and the replay of a campaign's responses.

A new law is one module with a `LAW` and one line in `ONLINE`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from app.inference import bounded_ra, easl, trueskill
from app.inference.law import Array, Law, Parameters

__all__ = ["ONLINE", "Law", "Parameters", "replay", "steps"]

Hit = tuple[Sequence[int], Sequence[float]]
"""The numbers of a HIT's items as presented, and their scores in [0, 1]."""

ONLINE: dict[str, Law] = {
    "easl": easl.LAW,
    "ra": bounded_ra.LAW,
    "trueskill": trueskill.LAW,
}


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
    number outside 0 to N - 1, an item twice in a HIT, and priors that are not both (N,).
    """
    first, second = _parameters(a), _parameters(b)
    if len(first) != len(second):
        raise ValueError(f"a posterior is a pair, but the priors have lengths {len(first)} and {len(second)}")
    law.score(first, second)  # raises ValueError for a prior that cannot be
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
    for items, scores in hits:
        _check_items(items, len(first))
        new_a, new_b = law.update([first[i] for i in items], [second[i] for i in items], scores, parameters)
        for i, value_a, value_b in zip(items, new_a, new_b, strict=True):
            first[i], second[i] = value_a, value_b
        yield items, new_a, new_b


def _parameters(values: npt.ArrayLike) -> Array:
    """A copy of the priors, (N,)."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"priors are arrays of shape (N,), not {array.shape}")
    return array


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


def _check_items(items: Sequence[int], count: int) -> None:
    # Python would take -1 for the last item, and an item shown twice would keep only one of its updates.
    if len(set(items)) != len(items):
        raise ValueError(f"an item is twice in one HIT: {list(items)}")
    if len(items) and not 0 <= min(items) <= max(items) < count:
        raise ValueError(f"item numbers must lie between 0 and {count - 1}, not {list(items)}")
