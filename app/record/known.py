"""What an update law asks about a campaign: read when it asks, remembered while HITs change it, then stored."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from app.database.session import Driver
from app.inference.online.law import (
    Ask,
    Change,
    Columns,
    Hit,
    ItemsAfter,
    Kept,
    Law,
    LongOfItems,
    OfAnnotators,
    OfCampaign,
    OfItems,
    Parameters,
    Posteriors,
    Priors,
    State,
    TakesLong,
    advanced,
    answered,
)
from app.record import states
from app.record.states import Revision
from app.record.store import changes

T = TypeVar("T")
Read = Callable[[Driver, Revision, Sequence[int]], Awaitable[dict[int, Any]]]


class Known:
    """One revision of a campaign as HITs change it. posteriors: those of the HITs' items, locked.

    The caller holds the row of the campaign in `states`, if its law keeps anything there.
    """

    def __init__(self, driver: Driver, of: Revision, law: Law, posteriors: Mapping[int, State]) -> None:
        self.driver, self.of, self.law = driver, of, law
        self.posteriors = dict(posteriors)
        self.campaign: State | None = None
        self.annotators: dict[int, State | None] = {}
        self.items: dict[int, tuple[Sequence[float], int] | None] = {}
        self.long: dict[int, Any] = {}
        self.changed = Kept(None, {}, {})
        self.judged: Counter[int] = Counter()
        self.moved: dict[int, None] = {}  # in the order in which they first changed

    async def apply(self, hits: Sequence[Hit], parameters: Parameters) -> None:
        """HITs in their order. Raises ValueError for what cannot be one."""
        if not self.law.layout and len(hits) > 1:  # all that it asks is at hand
            await asyncio.to_thread(self.apply_at_once, hits, parameters)
            return
        for hit in hits:
            self.take(hit, await self.found(self.law.step(hit, parameters)))

    def apply_at_once(self, hits: Sequence[Hit], parameters: Parameters) -> None:
        """The same where nothing must be read."""
        for hit in hits:
            self.take(hit, answered(self.law.step(hit, parameters), self.columns))

    def columns(self, ask: Ask) -> Columns:
        """Posteriors, as a law asks for them."""
        assert isinstance(ask, Posteriors)  # noqa: S101  (a law that keeps nothing asks for nothing else)
        return tuple(map(list, zip(*(self.posteriors[item] for item in ask.items), strict=True)))

    async def found(self, asking: Generator[Ask, Any, T]) -> T:
        """What comes of it when all that it asks is answered."""
        told, thread = None, False
        while True:
            got = await asyncio.to_thread(advanced, asking, told) if thread else advanced(asking, told)
            if not isinstance(got, Ask):
                return got
            thread = isinstance(got, TakesLong)
            told = None if thread else await self.answer(got)

    async def answer(self, ask: Ask) -> Any:  # noqa: PLR0911  (one for each kind of question)
        """What is known of it."""
        match ask:
            case Posteriors():
                return self.columns(ask)
            case Priors(items):
                return await states.priors(self.driver, self.of.campaign, items)
            case OfCampaign():
                return await self.of_campaign()
            case OfAnnotators(numbers):
                return await self.remembered(self.annotators, numbers, states.annotators)
            case OfItems(items):
                return await self.remembered(self.items, items, states.items)
            case LongOfItems(items):
                return await self.remembered(self.long, items, states.long_of_items)
            case ItemsAfter(last, limit):
                return await self.items_after(last, limit)
        raise TypeError(f"nothing is known of {ask}")

    async def of_campaign(self) -> State:
        if self.campaign is None:
            self.campaign = await states.of_campaign(self.driver, self.of, layout=self.law.layout)
        assert self.campaign is not None  # noqa: S101  (whoever asks has stored it at the launch)
        return self.campaign

    async def remembered(self, cache: dict[int, Any], numbers: Sequence[int], read: Read) -> dict[int, Any]:
        """What is kept of these numbers, without those of which nothing is."""
        if unread := [number for number in numbers if number not in cache]:
            cache |= dict.fromkeys(unread) | await read(self.driver, self.of, unread)
        return {number: known for number in numbers if (known := cache[number]) is not None}

    async def items_after(self, last: int, limit: int) -> list[tuple[int, Sequence[float], int]]:
        """The stored ones, and those that HITs have changed since."""
        stored = await states.items_after(self.driver, self.of, last, limit)
        known: dict[int, tuple[Sequence[float], int]] = {number: (short, long) for number, short, long in stored}
        known |= {number: item for number, item in self.items.items() if item is not None}
        ahead = sorted(known, key=lambda number: (number <= last, number))[:limit]
        return [(number, *known[number]) for number in ahead]

    def take(self, hit: Hit, change: Change) -> None:
        """Remember what a HIT changed."""
        self.judged.update(hit.items)
        self.posteriors |= zip(change.items, map(list, zip(*change.state, strict=True)), strict=True)
        self.moved |= dict.fromkeys(change.items)
        self.campaign = change.kept.campaign
        self.annotators |= change.kept.annotators
        for number, (short, long) in change.kept.items.items():
            if long is not None:
                self.long[number] = long
            before = self.items[number]
            self.items[number] = short, len(long) if long is not None else before[1] if before else 0
        self.changed = together(self.changed, change.kept)

    async def keep(self) -> dict[str, Any]:
        """Store what the law keeps; the posteriors that changed, as the parameters of `store.UPDATE`."""
        if self.law.layout and self.moved:
            await states.keep(self.driver, self.of, self.changed, layout=self.law.layout)
        moved = list(self.moved)
        more = [self.judged[item] for item in moved]
        return {**self.of.parameters, **changes(self.law, moved, self.columns(Posteriors(moved)), more)}


def together(one: Kept, other: Kept) -> Kept:
    """The first with what is new in the second."""
    items = dict(one.items)
    for number, (short, long) in other.items.items():
        items[number] = short, items[number][1] if long is None and number in items else long
    return Kept(other.campaign, {**one.annotators, **other.annotators}, items)
