"""A plan of HITs in which every item is shown equally often and pairs of items come back as late as possible.

The items stand in columns, one column for each place of a HIT, and each HIT takes one item of each column. In each
round the columns are shifted against each other, so a round shows every item once. Two items meet again only when the
same difference of shifts comes back, which the choice of shifts puts off. The plan depends on nothing but the number of
items and the size of HITs.
"""

import numpy as np
import numpy.typing as npt

ItemNumbers = npt.NDArray[np.intp]
ItemOrder = npt.NDArray[np.int32]  # one for all items is kept

PLAN_SEED = 20151


class BalancedPlan:
    """Rounds of HITs of `size` items that show each of `item_count` items once a round.

    The first item of each HIT leads it; the same items lead as long as the columns stay the same. If the number of
    items is not a multiple of the size, some HITs of each round are one item short.
    """

    def __init__(self, item_count: int, size: int) -> None:
        self.item_count, self.size = item_count, size
        self.hits_per_round = max(1, -(-item_count // size))
        self._shifts: list[ItemNumbers] = []
        self._arrangements: dict[int, tuple[ItemOrder, ItemOrder]] = {}

    def hits_of_round(self, round_number: int) -> list[list[int]]:
        """Return the HITs of a round, numbered from 0, each led by its first item."""
        return [
            self._hit_led_in_row_of_round(round_number, row) for row in range(min(self.hits_per_round, self.item_count))
        ]

    def planned_hit_of_leader_or_none(self, leader: int, round_number: int) -> list[int] | None:
        """Return the HIT of a round that an item leads, the leader first; None if it leads none."""
        row = int(self._item_order_and_places_of_round(round_number)[1][leader])
        return self._hit_led_in_row_of_round(round_number, row) if row < self.hits_per_round else None

    def _hit_led_in_row_of_round(self, round_number: int, row: int) -> list[int]:
        items, _ = self._item_order_and_places_of_round(round_number)
        rows = (row + self._shifts_of_round(round_number)) % self.hits_per_round
        places = rows + self.hits_per_round * np.arange(self.size)
        hit: list[int] = items[places[places < self.item_count]].tolist()
        return hit

    def _item_order_and_places_of_round(self, round_number: int) -> tuple[ItemOrder, ItemOrder]:
        """Return the items in the order of columns, and the place of each item; new once all shifts were used."""
        cycle = round_number // self.hits_per_round
        if cycle not in self._arrangements:
            order = np.random.default_rng([PLAN_SEED, cycle]).permutation(self.item_count)
            self._arrangements[cycle] = order.astype(np.int32), np.argsort(order).astype(np.int32)
        return self._arrangements[cycle]

    def _shifts_of_round(self, round_number: int) -> ItemNumbers:
        step = round_number % self.hits_per_round
        while len(self._shifts) <= step:
            self._shifts.append(self._choose_least_used_shifts(len(self._shifts)))
        return self._shifts[step]

    def _choose_least_used_shifts(self, step: int) -> ItemNumbers:
        """Return the shift of each column, (size,), whose differences came up least so far."""
        rows = self.hits_per_round
        earlier = np.array(self._shifts, np.intp).reshape(-1, self.size)
        shifts = np.zeros(self.size, np.intp)
        for column in range(1, self.size):
            # Shifts in proportion to the column repeat no difference if the number of rows allows it. Each earlier
            # shift takes at most one candidate for each other column: so among this many, one is as good as any.
            candidates = (column * step + np.arange(min(rows, column * step + 1))) % rows
            uses = np.zeros(len(candidates), np.intp)
            for other in range(column):
                counts = np.bincount((earlier[:, column] - earlier[:, other]) % rows, minlength=rows)
                uses += counts[(candidates - shifts[other]) % rows]
            shifts[column] = candidates[np.argmin(uses)]
        return shifts
