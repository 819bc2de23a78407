"""Requests that wait while a transaction of their campaign runs, and are then served together by the next one.

A transaction costs the same for one request as for many, as far as round trips, locks and the flush to the disk go. So
the more requests wait, the less each of them costs, and an idle server makes none of them wait.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.database.session import (
    Driver,
    ServingConnections,
    is_database_away,
    is_time_or_lock_exceeded,
)

log = logging.getLogger(__name__)

Request = TypeVar("Request")  # Python 3.11 has no other way
Reply = TypeVar("Reply")

MAX_BATCH_SIZE = 64  # requests: a transaction holds its locks until all of them are served
GATHERING_SHARE = 0.5  # of the time that the last batch took
MAX_GATHERING_SECONDS = 0.01
LOOP_TURNS_OF_REPLIES = 2  # turns of the event loop in which the replies of a batch are written
MAX_WAIT_SECONDS = 18.0  # for a reply: longer than the limit of a statement, and shorter than browsers wait


@dataclass(frozen=True)
class Unserved(Generic[Request]):
    """Outcome of a request that a batch could not finish.

    Attributes:
        request: What is left of the request: the same object if nothing of it is served.
        problem: Why the batch ended.

    """

    request: Request
    problem: Exception


# Serves requests of one campaign on a connection in no transaction; returns for each its reply, its own problem, or
# what is left of it. If it raises, it can be called again with the same requests.
ServeBatch = Callable[[Driver, int, Sequence[Request]], Awaitable[Sequence[Reply | Exception | Unserved[Request]]]]


def problem_as_reply(_request: object, problem: Exception) -> Exception:
    """Return the problem, as the reply to a request that failed."""
    return problem


@dataclass(eq=False)
class WaitingRequest(Generic[Request, Reply]):
    """Rest of a request that waits, and the future of its reply; the future is done early if nobody waits any more."""

    request: Request
    reply: "asyncio.Future[Reply]"


@dataclass
class Gathering:
    """A batch that waits for further requests until there are `expected` ones."""

    expected: int
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def end_if_complete(self, count: int) -> None:
        if count >= self.expected:
            self.done.set()

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.done.wait()


@dataclass
class BatchQueue(Generic[Request, Reply]):
    """Serves the requests of each campaign one batch after another, in the order in which they come.

    Attributes:
        connections: Connections of the server; a batch holds one, and a waiting request none.
        serve: Serves a batch.
        reply_to_failed: Returns the reply to what is left of a request that fails for good, or the problem to raise.
        wait_seconds: Time limit of each request.
        gathering_share: Time that a batch waits for further requests, as a share of the time that the last one took.
        max_gathering_seconds: Limit of that time.
        waiting: Requests that the next batch of their campaign serves, by campaign.
        tasks: Tasks that serve the batches of a campaign, as long as requests wait.
        gatherings: Batches that wait for further requests, by campaign.

    """

    connections: ServingConnections
    serve: ServeBatch[Request, Reply]
    reply_to_failed: Callable[[Request, Exception], Reply | Exception] = problem_as_reply
    wait_seconds: float = MAX_WAIT_SECONDS
    gathering_share: float = GATHERING_SHARE
    max_gathering_seconds: float = MAX_GATHERING_SECONDS
    waiting: dict[int, deque[WaitingRequest[Request, Reply]]] = field(default_factory=dict)
    tasks: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)
    gatherings: dict[int, Gathering] = field(default_factory=dict)

    async def submit_and_await_reply(self, campaign_id: int, request: Request) -> Reply:
        """Return the reply to a request. Raises its own or its batch's problem, unless `reply_to_failed` replies.

        The problem is a TimeoutError after the time limit. If the request is being served by then, that goes on.

        The caller must hold no serving connection: all of them could be held by requests that wait for one.
        """
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        entry = WaitingRequest(request, reply)
        self.waiting.setdefault(campaign_id, deque()).append(entry)
        if (gathering := self.gatherings.get(campaign_id)) is not None:
            gathering.end_if_complete(len(self.waiting[campaign_id]))
        if campaign_id not in self.tasks:
            self.tasks[campaign_id] = asyncio.create_task(self.serve_batches_until_no_request_waits(campaign_id))
        try:
            async with asyncio.timeout(self.wait_seconds):
                return await reply
        except TimeoutError as problem:
            outcome = self.reply_to_failed(entry.request, problem)
            if isinstance(outcome, Exception):
                raise outcome from None
            return outcome

    async def serve_batches_until_no_request_waits(self, campaign_id: int) -> None:
        """Serve batches of a campaign until no request waits.

        After a batch of several requests, most clients send their next request at once. So, once the replies are
        written, the next batch waits for as many requests as there were, for a part of the time that the last one took:
        two batches of half the size would take longer. One client alone never waits.
        """
        waiting, loop = self.waiting[campaign_id], asyncio.get_running_loop()
        try:
            while waiting:
                batch = [waiting.popleft() for _ in range(min(len(waiting), MAX_BATCH_SIZE))]
                began = loop.time()
                await self.serve_batch(campaign_id, batch)
                expected = min(len(batch) + len(waiting), MAX_BATCH_SIZE)
                if len(waiting) < expected > 1:
                    seconds = min(self.gathering_share * (loop.time() - began), self.max_gathering_seconds)
                    for _ in range(LOOP_TURNS_OF_REPLIES):
                        await asyncio.sleep(0)
                    self.gatherings[campaign_id] = gathering = Gathering(expected)
                    gathering.end_if_complete(len(waiting))
                    await gathering.wait(seconds)
                    del self.gatherings[campaign_id]
        finally:
            del self.waiting[campaign_id], self.tasks[campaign_id]
            self.gatherings.pop(campaign_id, None)
            for entry in waiting:  # the server stops
                entry.reply.cancel()

    async def serve_batch(self, campaign_id: int, batch: Sequence[WaitingRequest[Request, Reply]]) -> None:
        """Serve a batch, and what it leaves unserved by further ones.

        If nothing at all could be served, each half is a batch of its own, unless the reason is a lost database. So a
        request that takes too long, or meets a bug, fails alone.
        """
        batch = [entry for entry in batch if not entry.reply.done()]
        if not batch:
            return
        requests = [entry.request for entry in batch]
        outcomes = await self.serve_together_and_return_outcomes(campaign_id, batch)
        unserved = [
            entry
            for entry, outcome in zip(batch, outcomes, strict=True)
            if not self.try_to_reply_keeping_unserved_rest(entry, outcome)
        ]
        if not unserved:
            return
        problem = next(outcome.problem for outcome in outcomes if isinstance(outcome, Unserved))
        log.warning("campaign %s: %d of %d requests wait again: %r", campaign_id, len(unserved), len(batch), problem)
        if any(
            entry.reply.done() or entry.request is not request for entry, request in zip(batch, requests, strict=True)
        ):
            await self.serve_batch(campaign_id, unserved)
        elif len(unserved) > 1 and (is_time_or_lock_exceeded(problem) or not is_database_away(problem)):
            middle = len(unserved) // 2
            await self.serve_batch(campaign_id, unserved[:middle])
            await self.serve_batch(campaign_id, unserved[middle:])
        else:
            for entry in unserved:
                self.try_to_reply_keeping_unserved_rest(entry, problem)

    async def serve_together_and_return_outcomes(
        self, campaign_id: int, batch: Sequence[WaitingRequest[Request, Reply]]
    ) -> Sequence[Reply | Exception | Unserved[Request]]:
        """Return the outcome of each request; if all of them fail together, all are unserved."""
        requests = [entry.request for entry in batch]
        is_connected = False
        try:
            async with self.connections.borrow_autocommit_connection(campaign_id) as connection:
                is_connected = True
                return await self.serve(connection, campaign_id, requests)
        except Exception as problem:  # noqa: BLE001  (each request raises its own)
            if not is_connected:
                return [problem] * len(batch)
            return [Unserved(request, problem) for request in requests]
        except asyncio.CancelledError:
            for entry in batch:
                entry.reply.cancel()
            raise

    def try_to_reply_keeping_unserved_rest(
        self, entry: WaitingRequest[Request, Reply], outcome: Reply | Exception | Unserved[Request]
    ) -> bool:
        """Give a waiting request its reply or problem, or keep what is left of it; return whether it is served."""
        if isinstance(outcome, Unserved):
            entry.request = outcome.request
            return False
        if isinstance(outcome, Exception):
            outcome = self.reply_to_failed(entry.request, outcome)
        if entry.reply.done():
            return True
        if isinstance(outcome, Exception):
            entry.reply.set_exception(outcome)
        else:
            entry.reply.set_result(outcome)
        return True
