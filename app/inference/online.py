"""The update laws by name, and the replay of a campaign's responses.

A new law is one module with a `LAW` and one line in `ONLINE`.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from app.inference import bounded_ra, easl, trueskill
from app.inference.law import Array, Law, Parameters

__all__ = ["ONLINE", "Law", "Parameters", "replay", "steps"]

ONLINE: dict[str, Law] = {
    "easl": easl.LAW,
    "ra": bounded_ra.LAW,
    "trueskill": trueskill.LAW,
}


def replay(
    law: Law,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    hits: Iterable[tuple[Sequence[int], Sequence[float]]],
    parameters: Parameters,
) -> tuple[Array, Array]:
    """The posteriors after all HITs in order, from the priors `a` and `b`, each (N,); two new arrays (N,).

    hits: per HIT the numbers of its items as presented, from 0 to N - 1 and none twice, and their scores in
    [0, 1]. It calls the same `law.update` as a live submission, so the bits are the same on the same machine
    and libraries. Raises ValueError for what `update` refuses, for an item number outside 0 to N - 1, an
    item twice in a HIT, and priors that are not both (N,).
    """
    # Lists of floats: reading an element is several times faster than from an array, and gives plain floats.
    first, second = _parameters(a), _parameters(b)
    if len(first) != len(second):
        raise ValueError(f"a posterior is a pair, but the priors have lengths {len(first)} and {len(second)}")
    for _ in steps(law, first, second, hits, parameters):
        pass
    return np.array(first, dtype=np.float64), np.array(second, dtype=np.float64)


def steps(
    law: Law,
    first: list[float],
    second: list[float],
    hits: Iterable[tuple[Sequence[int], Sequence[float]]],
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


def _parameters(values: npt.ArrayLike) -> list[float]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"priors are arrays of shape (N,), not {array.shape}")
    floats: list[float] = array.tolist()
    return floats


def _check_items(items: Sequence[int], count: int) -> None:
    # Python would take -1 for the last item, and an item shown twice would keep only one of its updates.
    if len(set(items)) != len(items):
        raise ValueError(f"an item is twice in one HIT: {list(items)}")
    if len(items) and not 0 <= min(items) <= max(items) < count:
        raise ValueError(f"item numbers must lie between 0 and {count - 1}, not {list(items)}")
