"""Run an update law on stored state: read what the law asks for, cache its changes, and store them at the end."""

import asyncio
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from app.database.session import Driver
from app.inference.online.law import (
    AnsweredHit,
    Columns,
    HitChange,
    Law,
    LawParameters,
    LawState,
    StateFloats,
)
from app.inference.online.state_queries import (
    Querying,
    ReadAnnotatorStates,
    ReadCampaignState,
    ReadItemHeads,
    ReadItemTails,
    ReadNextItems,
    ReadPosteriors,
    ReadPriors,
    RunInThread,
    StateQuery,
    next_query_or_result_of_law_steps,
)
from app.record import law_storage
from app.record.law_storage import Revision
from app.record.posterior_storage import query_parameters_of_posterior_update

T = TypeVar("T")
HITS_PER_STEP = 10  # of the event loop
MIN_ITEMS_IN_THREAD = 500  # fewer take less time than to start a thread
StateReader = Callable[[Driver, Revision, Sequence[int]], Awaitable[dict[int, Any]]]


class LawRunner:
    """Applies HITs to one revision of a campaign, by one criterion.

    The caller has locked `posteriors`, those of the HITs' items, and the campaign's row in `states` if the law has one.
    """

    def __init__(self, driver: Driver, revision: Revision, law: Law, posteriors: Mapping[int, StateFloats]) -> None:
        self.driver, self.revision, self.law = driver, revision, law
        self.posteriors = dict(posteriors)
        self.campaign_state: StateFloats | None = None
        self.annotator_states: dict[int, StateFloats | None] = {}
        self.item_heads: dict[int, tuple[Sequence[float], int] | None] = {}
        self.item_tails: dict[int, Any] = {}
        self.changed_annotator_states: dict[int, StateFloats] = {}
        self.changed_item_states: dict[int, tuple[Sequence[float], Any]] = {}
        self.changed_item_numbers: list[int] = []  # those of `changed_item_states`, ascending
        self.judgment_counts: Counter[int] = Counter()
        self.changed_items: set[int] = set()

    @property
    def needs_only_posteriors(self) -> bool:
        """Return whether HITs are applied without the connection: posteriors are loaded, and the law keeps no more."""
        return not self.law.layout

    async def apply_hits(self, hits: Sequence[AnsweredHit], parameters: LawParameters) -> None:
        """Apply HITs in their order. Raises ValueError for an impossible HIT."""
        if self.needs_only_posteriors and len(hits) > 1:
            await asyncio.to_thread(self.apply_hits_without_reading_state, hits, parameters)
            return
        for number, hit in enumerate(hits, start=1):
            self.cache_changes_of_hit(
                hit,
                await self.run_law_steps_answering_their_queries(self.law.hit_change_querying_state(hit, parameters)),
            )
            if number % HITS_PER_STEP == 0:
                await asyncio.sleep(0)  # all that the law asks for may be in memory: let other requests take their turn

    def apply_hits_without_reading_state(self, hits: Sequence[AnsweredHit], parameters: LawParameters) -> None:
        """Apply HITs by a law that needs nothing but the loaded posteriors: in arrays, with the code of a replay."""
        self.judgment_counts.update(chain.from_iterable(hit.items for hit in hits))
        items = list(dict.fromkeys(chain.from_iterable(hit.items for hit in hits)))
        place_by_item = {item: place for place, item in enumerate(items)}
        beliefs = self.law.initial_beliefs(self.read_posterior_columns(ReadPosteriors(items)), parameters)
        beliefs.apply_hits(
            [
                AnsweredHit(annotator, [place_by_item[item] for item in hit_items], values)
                for annotator, hit_items, values in hits
            ]
        )
        self.posteriors |= zip(items, beliefs.state.T.tolist(), strict=True)
        self.changed_items.update(items)

    def read_posterior_columns(self, query: StateQuery) -> Columns:
        assert isinstance(query, ReadPosteriors)  # noqa: S101  (a law that keeps nothing asks for nothing else)
        states = [self.posteriors[item] for item in query.items]
        # To pass the states of thousands of items to `zip` would take many times as long.
        return tuple([state[place] for state in states] for place in range(len(states[0]) if states else 0))

    async def run_law_steps_answering_their_queries(self, steps: Querying[T]) -> T:
        """Run the steps of a law to their result, answering each query."""
        reply, thread = None, False
        while True:
            step_result = (
                await asyncio.to_thread(next_query_or_result_of_law_steps, steps, reply)
                if thread
                else next_query_or_result_of_law_steps(steps, reply)
            )
            if not isinstance(step_result, StateQuery):
                return step_result
            thread = isinstance(step_result, RunInThread)
            reply = None if thread else await self.answer_state_query(step_result)

    async def answer_state_query(self, query: StateQuery) -> Any:  # noqa: PLR0911  (one return for each kind of query)
        """Return the answer to a law's query, with the changes of earlier HITs."""
        match query:
            case ReadPosteriors():
                return self.read_posterior_columns(query)
            case ReadPriors(items):
                return await law_storage.load_item_priors(self.driver, self.revision.campaign, items)
            case ReadCampaignState():
                return await self.read_campaign_state()
            case ReadAnnotatorStates(numbers):
                return await self.read_uncached_and_return_stored_values(
                    self.annotator_states, numbers, law_storage.load_annotator_state_by_number
                )
            case ReadItemHeads(items):
                return await self.read_uncached_and_return_stored_values(
                    self.item_heads, items, law_storage.load_item_heads_and_tail_lengths_by_number
                )
            case ReadItemTails(items):
                return await self.read_uncached_and_return_stored_values(
                    self.item_tails, items, law_storage.load_item_tail_by_number
                )
            case ReadNextItems(last, limit):
                return await self.read_next_item_heads_with_tail_lengths(last, limit)
        raise TypeError(f"{query} is not a known query")

    async def read_campaign_state(self) -> StateFloats:
        if self.campaign_state is None:
            self.campaign_state = await law_storage.load_law_state_of_campaign_or_none(
                self.driver, self.revision, layout=self.law.layout
            )
        assert self.campaign_state is not None  # noqa: S101  (a law that reads it has stored it at the launch)
        return self.campaign_state

    async def read_uncached_and_return_stored_values(
        self, cache: dict[int, Any], numbers: Sequence[int], read: StateReader
    ) -> dict[int, Any]:
        """Return the stored values of these numbers, without those that have none; read each number once."""
        if unread_numbers := [number for number in numbers if number not in cache]:
            cache |= dict.fromkeys(unread_numbers) | await read(self.driver, self.revision, unread_numbers)
        return {number: value for number in numbers if (value := cache[number]) is not None}

    async def read_next_item_heads_with_tail_lengths(
        self, last_number: int, limit: int
    ) -> list[tuple[int, Sequence[float], int]]:
        """Return the heads of the next items, stored ones and those that HITs have changed since."""
        stored = await law_storage.load_next_item_numbers_heads_tail_lengths(
            self.driver, self.revision, last_number, limit
        )
        heads_by_number: dict[int, tuple[Sequence[float], int]] = {
            number: (short, long) for number, short, long in stored
        }
        changed_numbers = self.changed_item_numbers
        first = bisect_right(changed_numbers, last_number)
        for number in (*changed_numbers[first : first + limit], *changed_numbers[: min(first, limit)]):
            if (head := self.item_heads[number]) is not None:
                heads_by_number[number] = head
        next_numbers = sorted(heads_by_number, key=lambda number: (number <= last_number, number))[:limit]
        return [(number, *heads_by_number[number]) for number in next_numbers]

    def cache_changes_of_hit(self, hit: AnsweredHit, change: HitChange) -> None:
        """Cache the changes of a HIT."""
        self.judgment_counts.update(hit.items)
        self.posteriors |= zip(change.items, map(list, zip(*change.state, strict=True)), strict=True)
        self.changed_items.update(change.items)
        self.campaign_state = change.law_state.campaign
        self.annotator_states |= change.law_state.annotators
        self.changed_annotator_states |= change.law_state.annotators
        for number, (short, long) in change.law_state.items.items():
            if long is not None:
                self.item_tails[number] = long
            if number not in self.changed_item_states:
                insort(self.changed_item_numbers, number)
            _, earlier_long = self.changed_item_states.get(number, (short, None))
            self.changed_item_states[number] = short, earlier_long if long is None else long
            before = self.item_heads[number]
            self.item_heads[number] = short, len(long) if long is not None else before[1] if before else 0

    async def store_law_state_and_return_posterior_parameters(self) -> dict[str, Any]:
        """Store the law's state, and return the parameters of `UPDATE_POSTERIORS` for the posteriors that changed."""
        if self.law.layout and self.changed_items:
            changes = LawState(self.campaign_state, self.changed_annotator_states, self.changed_item_states)
            await law_storage.store_law_states(self.driver, self.revision, changes, layout=self.law.layout)
        changed_items = sorted(self.changed_items)
        added_judgments = [self.judgment_counts[item] for item in changed_items]
        columns = self.read_posterior_columns(ReadPosteriors(changed_items))
        update = partial(query_parameters_of_posterior_update, self.law, changed_items, columns, added_judgments)
        is_short = len(changed_items) < MIN_ITEMS_IN_THREAD
        return {**self.revision.sql_parameters, **(update() if is_short else await asyncio.to_thread(update))}
