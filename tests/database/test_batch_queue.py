import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from asyncpg import IdleInTransactionSessionTimeoutError, QueryCanceledError

from app.database.batch_queue import MAX_BATCH_SIZE, BatchQueue, Unserved
from app.database.session import ServingConnections

CAMPAIGN, OTHER = 1, 2


class Recorder:
    """Serves batches once `go_on` is set, and remembers them; a reply is ten times the request."""

    def __init__(self):
        self.batches, self.go_on = [], asyncio.Event()

    async def serve(self, connection, campaign, numbers):
        self.batches.append((campaign, [*numbers]))
        await self.go_on.wait()
        assert await connection.fetchval("SELECT 1") == 1
        if 13 in numbers:
            raise LookupError("some of them")
        if 14 in numbers:
            raise ConnectionResetError
        return [ValueError("alone") if number == 7 else 10 * number for number in numbers]


@pytest.fixture
async def connections(engine):
    serving = ServingConnections(engine, 3)
    yield serving
    await serving.close()


@pytest.fixture
def recorder():
    return Recorder()


async def submit_all(queue, *numbers, campaign=CAMPAIGN):
    """Submit the numbers in this order, and let the queue begin with them."""
    tasks = [asyncio.create_task(queue.submit_and_await_reply(campaign, number)) for number in numbers]
    for _ in range(20):
        await asyncio.sleep(0.01)
    return tasks


async def test_requests_that_come_while_a_batch_is_served_are_the_next_one(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    first = await submit_all(queue, 1)
    later = await submit_all(queue, 2, 3, 4)
    elsewhere = await submit_all(queue, 5, campaign=OTHER)
    assert recorder.batches == [(CAMPAIGN, [1]), (OTHER, [5])]
    recorder.go_on.set()
    assert await asyncio.gather(*first, *later, *elsewhere) == [10, 20, 30, 40, 50]
    assert recorder.batches == [(CAMPAIGN, [1]), (OTHER, [5]), (CAMPAIGN, [2, 3, 4])]
    assert await queue.submit_and_await_reply(CAMPAIGN, 6) == 60


async def test_a_batch_has_a_limit(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    recorder.go_on.set()
    numbers = range(100, 100 + MAX_BATCH_SIZE + 1)
    assert await asyncio.gather(*(queue.submit_and_await_reply(CAMPAIGN, number) for number in numbers)) == [
        10 * n for n in numbers
    ]
    assert [len(batch) for _, batch in recorder.batches] == [MAX_BATCH_SIZE, 1]


async def test_a_request_has_its_own_problem(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    recorder.go_on.set()
    outcomes = await asyncio.gather(
        *(queue.submit_and_await_reply(CAMPAIGN, n) for n in (6, 7, 8)), return_exceptions=True
    )
    assert (outcomes[0], str(outcomes[1]), outcomes[2]) == (60, "alone", 80)


async def test_requests_that_fail_together_are_served_one_by_one(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    recorder.go_on.set()
    outcomes = await asyncio.gather(
        *(queue.submit_and_await_reply(CAMPAIGN, n) for n in (12, 13, 15)), return_exceptions=True
    )
    assert (outcomes[0], type(outcomes[1]), outcomes[2]) == (120, LookupError, 150)


async def test_a_batch_that_loses_the_database_is_not_tried_again(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    recorder.go_on.set()
    outcomes = await asyncio.gather(
        *(queue.submit_and_await_reply(CAMPAIGN, n) for n in (12, 14)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [ConnectionResetError, ConnectionResetError]
    assert len(recorder.batches) == 1
    assert await queue.submit_and_await_reply(CAMPAIGN, 16) == 160


async def test_a_request_that_is_cancelled_while_it_waits_is_not_served_and_others_are(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    first, second, third = [(await submit_all(queue, number))[0] for number in (1, 2, 3)]
    first.cancel()  # its batch goes on
    second.cancel()
    recorder.go_on.set()
    assert await third == 30
    assert recorder.batches == [(CAMPAIGN, [1]), (CAMPAIGN, [3])]


async def test_waiting_requests_hold_no_connection(engine, recorder):
    connections = ServingConnections(engine, 2)
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve)
    waiting = await submit_all(queue, *range(20, 40))
    async with asyncio.timeout(5), connections.borrow_autocommit_connection(OTHER) as connection:
        assert await connection.fetchval("SELECT 2") == 2
    recorder.go_on.set()
    assert await asyncio.gather(*waiting) == [10 * n for n in range(20, 40)]
    await connections.close()


@dataclass
class Troubled:
    """Serves batches like `Recorder`, without waiting; with request 13, the batch fails with `problem`."""

    problem: Exception
    batches: list[list[int]] = field(default_factory=list)

    async def serve(self, connection, campaign, numbers):
        self.batches.append([*numbers])
        if 13 in numbers:
            raise self.problem
        return [10 * number for number in numbers]


@pytest.mark.parametrize(
    "problem",
    [TimeoutError(), QueryCanceledError("57014"), IdleInTransactionSessionTimeoutError("25P03"), LookupError("a bug")],
    ids=lambda problem: type(problem).__name__,
)
async def test_a_time_limit_fails_the_request_that_exceeds_it_and_no_other(connections, problem):
    troubled = Troubled(problem)
    queue: BatchQueue[Any, Any] = BatchQueue(connections, troubled.serve)
    numbers = [*range(8), 13, *range(20, 27)]
    outcomes = await asyncio.gather(
        *(queue.submit_and_await_reply(CAMPAIGN, n) for n in numbers), return_exceptions=True
    )
    assert outcomes == [problem if n == 13 else 10 * n for n in numbers]
    assert len(troubled.batches) <= 9  # halves: not each alone


async def test_a_request_waits_no_longer_than_its_limit_and_is_then_not_served(connections, recorder):
    queue: BatchQueue[Any, Any] = BatchQueue(connections, recorder.serve, wait_seconds=0.5)
    outcomes = await asyncio.gather(
        *(queue.submit_and_await_reply(CAMPAIGN, n) for n in (1, 2)), return_exceptions=True
    )
    late = (await submit_all(queue, 3))[0]
    recorder.go_on.set()
    assert [type(outcome) for outcome in outcomes] == [TimeoutError, TimeoutError]
    assert await late == 30
    assert recorder.batches == [(CAMPAIGN, [1, 2]), (CAMPAIGN, [3])]


async def test_what_is_left_of_a_request_is_served_by_another_batch(connections):
    batches = []

    async def serve(connection, campaign, numbers):
        batches.append([*numbers])
        return [Unserved(number - 100, ConnectionResetError()) if number > 100 else 10 * number for number in numbers]

    queue: BatchQueue[Any, Any] = BatchQueue(connections, serve)
    assert await asyncio.gather(*(queue.submit_and_await_reply(CAMPAIGN, n) for n in (105, 6, 107))) == [50, 60, 70]
    assert batches == [[105, 6, 107], [5, 7]]


async def test_a_request_of_which_nothing_could_be_served_fails(connections):
    problem = ConnectionResetError()

    async def serve(connection, campaign, numbers):
        return [Unserved(number, problem) for number in numbers]

    queue: BatchQueue[Any, Any] = BatchQueue(connections, serve)
    outcomes = await asyncio.gather(
        *(queue.submit_and_await_reply(CAMPAIGN, n) for n in (1, 2)), return_exceptions=True
    )
    assert outcomes == [problem, problem]


def gathering_queue(connections: Any, recorder: Any, **limits: Any) -> BatchQueue[Any, Any]:
    return BatchQueue(connections, recorder.serve, gathering_share=1e9, **limits)


async def send_one_after_another(queue, *numbers):
    return [await queue.submit_and_await_reply(CAMPAIGN, number) for number in numbers]


async def test_clients_that_send_their_next_request_at_once_stay_in_one_batch(connections, recorder):
    queue = gathering_queue(connections, recorder, max_gathering_seconds=30)
    clients = [asyncio.create_task(send_one_after_another(queue, *range(k, k + 3))) for k in (20, 30, 40)]
    recorder.go_on.set()
    await asyncio.wait(clients, return_when=asyncio.FIRST_COMPLETED)
    assert recorder.batches == [(CAMPAIGN, [20 + n, 30 + n, 40 + n]) for n in range(3)]
    assert await asyncio.gather(*clients) == [[200, 210, 220], [300, 310, 320], [400, 410, 420]]


async def test_the_wait_for_others_begins_once_replies_are_written(connections, recorder):
    async def send_twice(number, turns_of_reply):
        first = await queue.submit_and_await_reply(CAMPAIGN, number)
        for _ in range(turns_of_reply):
            await asyncio.sleep(0)
        return [first, await queue.submit_and_await_reply(CAMPAIGN, number + 1)]

    queue = gathering_queue(connections, recorder, max_gathering_seconds=0)
    recorder.go_on.set()
    both: Any = await asyncio.gather(send_twice(20, 0), send_twice(30, 2))
    assert [*both] == [[200, 210], [300, 310]]
    assert recorder.batches == [(CAMPAIGN, [20, 30]), (CAMPAIGN, [21, 31])]


async def test_requests_of_two_batches_become_one(connections, recorder):
    queue = gathering_queue(connections, recorder, max_gathering_seconds=30)
    first = await submit_all(queue, 20)
    others = await submit_all(queue, 30, 40)
    recorder.go_on.set()
    await asyncio.gather(*first)
    again = [asyncio.create_task(send_one_after_another(queue, number)) for number in (21,)]
    await asyncio.gather(*others, *again)
    assert recorder.batches == [(CAMPAIGN, [20]), (CAMPAIGN, [30, 40, 21])]


async def test_a_client_alone_waits_for_no_other(connections, recorder):
    queue = gathering_queue(connections, recorder, max_gathering_seconds=math.inf)
    recorder.go_on.set()
    async with asyncio.timeout(30):
        assert await send_one_after_another(queue, 1, 2, 3) == [10, 20, 30]


async def test_a_batch_that_nobody_joins_goes_on_after_a_moment(connections, recorder):
    queue = gathering_queue(connections, recorder, max_gathering_seconds=0.01)
    recorder.go_on.set()
    both: Any = await asyncio.gather(
        queue.submit_and_await_reply(CAMPAIGN, 1), queue.submit_and_await_reply(CAMPAIGN, 2)
    )
    assert [*both] == [10, 20]
    assert await queue.submit_and_await_reply(CAMPAIGN, 3) == 30
    assert recorder.batches == [(CAMPAIGN, [1, 2]), (CAMPAIGN, [3])]


@pytest.mark.parametrize("second_problem", [LookupError("a bug"), ConnectionResetError()], ids=str)
async def test_what_is_left_of_a_request_is_replied_to_if_it_fails_for_good(connections, second_problem):
    async def serve(connection, campaign, numbers):
        if 5 in numbers:
            raise second_problem
        return [Unserved(number - 100, ConnectionResetError()) for number in numbers]

    def reply_to_failed(number, problem):
        return (number, problem) if number < 100 else problem

    queue: BatchQueue[Any, Any] = BatchQueue(connections, serve, reply_to_failed)
    assert await queue.submit_and_await_reply(CAMPAIGN, 105) == (5, second_problem)


async def test_what_is_left_of_a_request_is_replied_to_after_the_time_limit(connections):
    never = asyncio.Event()

    async def serve(connection, campaign, numbers):
        if 5 in numbers:
            await never.wait()
        return [Unserved(number - 100, ConnectionResetError()) for number in numbers]

    queue: BatchQueue[Any, Any] = BatchQueue(connections, serve, lambda number, _: number, wait_seconds=0.5)
    assert await queue.submit_and_await_reply(CAMPAIGN, 105) == 5
    never.set()
