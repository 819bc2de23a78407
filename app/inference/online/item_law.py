"""Laws that keep item posteriors alone: one HIT changes the posteriors of its items, given these and its values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online.law import (
    AnsweredHit,
    Columns,
    HitChange,
    Law,
    LawParameters,
    LawState,
    refuse_repeated_or_unknown_hit_items,
)
from app.inference.online.state_queries import (
    Querying,
    ReadPosteriors,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLaw(Law):
    """A law that keeps posteriors and nothing else.

    Attributes:
        update: update(*state, values, parameters) applies one HIT of n >= 1 items, sequences of n floats in
            presentation
        order. It returns new lists of n plain floats, one for each number of the state, and leaves its arguments alone.
        Raises ValueError for lengths that differ, an empty HIT, a value that it does not read, or an invalid posterior.
        update_in_place: update_in_place(*state, items, values), only for a law that moves an item by its own values
            alone:
        all judgments of many HITs at once, changing the arrays of the state, (N,), with the bits of one `update` after
        another. items, values: (T,) in the order of the HITs, values that it accepts. It validates nothing.

    """

    update: Callable[..., Columns]
    update_in_place: Callable[..., None] | None = None

    def mask_of_accepted_values(self, values: Array) -> npt.NDArray[np.bool_]:
        """Return which of these values, (T,), `update` reads."""
        return (values >= 0.0) & (values <= 1.0)

    def initial_beliefs(
        self,
        priors: Sequence[npt.ArrayLike],
        parameters: LawParameters,
        law_state: LawState | None = None,  # noqa: ARG002  (such laws keep nothing else)
    ) -> "ItemLawBeliefs":
        """Return the beliefs before the first HIT: the posteriors alone."""
        return ItemLawBeliefs(self, validated_copy_of_priors(self, priors), parameters)

    def hit_change_querying_state(self, hit: AnsweredHit, parameters: LawParameters) -> Querying[HitChange]:
        """Update the posteriors of the HIT's items, and no others. Raises what `update` raises."""
        posteriors: Columns = yield ReadPosteriors(hit.items)
        return HitChange(hit.items, self.update(*posteriors, hit.values, parameters))


@dataclass(slots=True)
class ItemLawBeliefs:
    """The posteriors of a campaign's items; `state` holds their numbers, (numbers, N)."""

    law: ItemLaw
    state: Array
    parameters: LawParameters

    @property
    def nbytes(self) -> int:
        """Memory of the posteriors, in bytes."""
        return self.state.nbytes

    def copy(self) -> "ItemLawBeliefs":
        """Return an independent copy."""
        return ItemLawBeliefs(self.law, self.state.copy(), self.parameters)

    def law_state_besides_posteriors(self) -> LawState:
        """Return an empty state: such laws keep nothing besides posteriors."""
        return LawState()

    def apply_hits(self, hits: Sequence[AnsweredHit]) -> None:
        """Apply HITs, with `update_in_place` where it exists. An invalid HIT is reported by applying the HITs one by
        one.
        """
        if self.law.update_in_place and (
            judgments := item_and_value_columns_of_hits_or_none_if_invalid(hits, self.state.shape[1], self.law)
        ):
            self.law.update_in_place(*self.state, *judgments)
            return
        for _ in self._iterate_new_columns_of_hits(hits):
            pass

    def apply_hits_and_iterate_changes(self, hits: Sequence[AnsweredHit]) -> Iterator[HitChange]:
        """Apply HITs one by one; `state` includes them once all have been applied."""
        for hit, columns in zip(hits, self._iterate_new_columns_of_hits(hits), strict=True):
            yield HitChange(hit.items, columns)

    def _iterate_new_columns_of_hits(self, hits: Sequence[AnsweredHit]) -> Iterator[Columns]:
        """Yield the new columns of each HIT's items."""
        count = self.state.shape[1]
        for hit in hits:
            refuse_repeated_or_unknown_hit_items(hit.items, count)
        columns = self._state_numbers_of_items_in_hits(hits)
        update, parameters = self.law.update, self.parameters
        for _, items, values in hits:
            new_columns = update(*[[column[item] for item in items] for column in columns], values, parameters)
            for column, numbers in zip(columns, new_columns, strict=True):
                for place, item in enumerate(items):
                    column[item] = numbers[place]
            yield new_columns
        for row, column in zip(self.state, columns, strict=True):
            if isinstance(column, dict):
                row[list(column)] = list(column.values())
            else:
                row[:] = column

    def _state_numbers_of_items_in_hits(self, hits: Sequence[AnsweredHit]) -> Sequence[dict[int, float] | list[float]]:
        """Return each number of the state by item: only the HITs' items where converting all items would take longer.

        Reading an element is several times faster than from an array, and gives plain floats.
        """
        if len(hits) >= self.state.shape[1]:
            columns: list[list[float]] = self.state.tolist()
            return columns
        touched = list({item: None for hit in hits for item in hit.items})
        return [dict(zip(touched, column, strict=True)) for column in self.state[:, touched].tolist()]


def validated_copy_of_priors(law: Law, priors: Sequence[npt.ArrayLike]) -> Array:
    """Return a copy of the priors, (numbers, N). Raises ValueError for an invalid prior."""
    columns = [np.array(column, dtype=np.float64) for column in priors]
    for column in columns:
        if column.ndim != 1:
            raise ValueError(f"priors are arrays of shape (N,), not {column.shape}")
    lengths = [len(column) for column in columns]
    if len(columns) != len(law.family.parameter_names) or len(set(lengths)) > 1:
        names = " and ".join(law.family.parameter_names)
        raise ValueError(f"a posterior is {names}, but the priors have lengths {', '.join(map(str, lengths))}")
    law.family.score(*columns)  # raises ValueError for a prior that cannot be
    return np.array(columns)


def item_and_value_columns_of_hits_or_none_if_invalid(
    hits: Sequence[AnsweredHit], item_count: int, law: ItemLaw
) -> tuple[npt.NDArray[np.intp], Array] | None:
    """Return items and values of all HITs, (T,) each, in order; None if `apply_hits_and_iterate_changes` would refuse
    one of the
    HITs.
    """
    sizes = np.fromiter((len(hit.items) for hit in hits), np.intp, len(hits))
    if [len(hit.values) for hit in hits] != sizes.tolist() or not sizes.all():
        return None
    total = int(sizes.sum())
    items = np.fromiter(chain.from_iterable(hit.items for hit in hits), np.intp, total)
    values = np.fromiter(chain.from_iterable(hit.values for hit in hits), np.float64, total)
    possible = ((items >= 0) & (items < item_count) & law.mask_of_accepted_values(values)).all()
    in_hit = np.sort(np.repeat(np.arange(len(hits)), sizes) * item_count + items)
    return (items, values) if possible and (np.diff(in_hit) > 0).all() else None
