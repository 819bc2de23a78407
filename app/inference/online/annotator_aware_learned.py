"""What a campaign under `easl-aware` has learned, in memory, and how it goes from HIT to HIT."""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.inference.online import annotator_aware_online as aware
from app.inference.online.annotator_aware_online import ItemState, State
from app.inference.online.law import checked_items


@dataclass
class Learned:
    """What a campaign has learned, in memory: all of its state, changed by one HIT after another.

    priors: N pairs (a, b). items: N states. annotators: states by number. totals: the campaign's.
    """

    priors: Sequence[tuple[float, float]]
    items: list[ItemState]
    annotators: dict[int, State]
    totals: State
    judged: list[int] = field(init=False)  # in order

    def __post_init__(self) -> None:
        self.judged = [item for item, state in enumerate(self.items) if state.judgments]

    @classmethod
    def nothing(cls, priors: Sequence[tuple[float, float]]) -> "Learned":
        """Before the first HIT."""
        return cls(priors, [ItemState()] * len(priors), {}, aware.BEGUN)

    def begun_like(self, totals: State) -> "Learned":
        """Before the first HIT, under the rule of the campaign that has these totals at any time."""
        return replace(Learned.nothing(self.priors), totals=aware.begun_like(totals))

    def copy(self) -> "Learned":
        """One that goes its own way; states are never changed in place, so they are shared."""
        return replace(self, items=list(self.items), annotators=dict(self.annotators))

    def apply(self, annotator: int, shown: Sequence[int], scores: Sequence[float]) -> tuple[list[int], aware.Change]:
        """Learn from one HIT: the items that changed, the HIT's first, and their change. Raises ValueError for what the
        function `apply` refuses, and for item numbers that are not there or twice.
        """
        checked_items(shown, len(self.items))
        again, then = self.turn_with(shown)
        numbers = [*shown, *again]
        states = [self.items[item] for item in numbers]
        around = aware.concerned(annotator, states, self.totals, again=len(again))
        change = aware.apply(
            annotator,
            scores,
            priors=[self.priors[item] for item in numbers],
            items=states,
            annotators={k: self.annotators[k] for k in around if k in self.annotators},
            totals=then,
            again=len(again),
        )
        self.put(numbers, change.items)
        self.annotators |= change.annotators
        self.totals = change.totals
        return numbers, change

    def will_look_at(self, hits: Iterable[Sequence[int]]) -> set[int]:
        """The items that are looked at in the course of these HITs, by the items that each shows: of the others
        `looked` need not be at hand.
        """
        ahead, found = self.copy(), set[int]()
        for shown in hits:
            again, ahead.totals = ahead.turn_with(shown)
            numbers = [*shown, *again]
            states = [ahead.items[item] for item in numbers]
            places = aware.looked_at(states, len(again), ahead.totals)
            found |= {numbers[place] for place in places}
            more = [1] * len(shown) + [0] * len(again)
            lengths = [state.longer(more[k], looked=k in places) for k, state in enumerate(states)]
            ahead.put(numbers, lengths)
        return found

    def turn_with(self, shown: Sequence[int]) -> tuple[list[int], State]:
        """The items that are looked at again with a HIT of these, and the totals with the turn moved on."""
        last, may = aware.turn(self.totals)
        again, then = aware.chosen(self._following(last, shown), last, may)
        return again, aware.turned(self.totals, *then)

    def put(self, numbers: Sequence[int], states: Sequence[ItemState]) -> None:
        """New states of these items, which have judgments now."""
        for item, state in zip(numbers, states, strict=True):
            if not self.items[item].judgments:
                insort(self.judged, item)
            self.items[item] = state

    def _following(self, last: int, shown: Sequence[int]) -> Iterator[tuple[int, int]]:
        place = bisect_right(self.judged, last)
        for numbers in (range(place, len(self.judged)), range(place)):
            for k in numbers:
                if (item := self.judged[k]) not in shown:
                    yield item, self.items[item].judgments
