"""State queries: a law asks for the state that it needs, and does not know where that state is kept.

A law is pure. Its `hit_change_querying_state` is a generator that yields a query, is sent the answer, and returns what
the HIT
changes:

    def hit_change_querying_state(self, hit: AnsweredHit, parameters: LawParameters) -> Querying[HitChange]:
        alpha, beta = yield ReadPosteriors(hit.items)
        ...
        return HitChange(hit.items, (alpha, beta))

`run_law_steps` answers the queries from memory, for replays and simulations. `record.law_runner.LawRunner` answers them
from the database, with the changes of earlier HITs that are not stored yet. Both take the same steps, and so arrive
at the same bits. Answers to queries reflect the changes of all earlier HITs in the campaign, and omit items and
annotators that have no stored state. A law that reads only posteriors is an `ItemLaw` with an `update`, and needs no
generator.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class ReadPosteriors(NamedTuple):
    """Query for the posteriors of these items, as columns: one list of n floats for each number of a posterior."""

    items: Sequence[int]


class ReadPriors(NamedTuple):
    """Query for the priors of these items, a tuple of floats each."""

    items: Sequence[int]


class ReadCampaignState(NamedTuple):
    """Query for the state of the campaign: a list of floats."""


class ReadAnnotatorStates(NamedTuple):
    """Query for the states of these annotators, by number."""

    annotators: Sequence[int]


class ReadItemHeads(NamedTuple):
    """Query for the short lists of these items and the lengths of their long ones, by number."""

    items: Sequence[int]


class ReadItemTails(NamedTuple):
    """Query for the long lists of these items, by number."""

    items: Sequence[int]


class ReadNextItems(NamedTuple):
    """Query for the next `limit` items with state, from the one after number `last` on and around to it.

    The answer has number, short list and length of the long list of each.
    """

    last: int
    limit: int


class RunInThread(NamedTuple):
    """Request to continue in a thread: some milliseconds of mathematics follow."""


StateQuery = (
    RunInThread
    | ReadPosteriors
    | ReadPriors
    | ReadCampaignState
    | ReadAnnotatorStates
    | ReadItemHeads
    | ReadItemTails
    | ReadNextItems
)
Querying = Generator[StateQuery, Any, T]
"""A computation that yields queries, is sent their answers, and returns a T."""


def run_law_steps(steps: Querying[T], answer_query: Callable[[StateQuery], Any]) -> T:
    """Return the result of a law's steps whose queries can all be answered at once."""
    query_or_result = next_query_or_result_of_law_steps(steps, None)
    while isinstance(query_or_result, StateQuery):
        query_or_result = next_query_or_result_of_law_steps(steps, answer_query(query_or_result))
    return query_or_result


def next_query_or_result_of_law_steps(steps: Querying[T], answer: Any) -> StateQuery | T:
    """Send the answer to the last query; return the next query, or the result of the steps."""
    try:
        return steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
