"""Requests that wait while a transaction of their campaign runs, and are then served together by the next one.

A transaction costs the same for one request as for many, as far as round trips, locks and the flush to the disk go. So
the more requests wait, the less each of them costs, and an idle server makes none of them wait.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.database.session import Driver, ServingConnections, is_database_away

log = logging.getLogger(__name__)

Request = TypeVar("Request")  # Python 3.11 has no other way
Reply = TypeVar("Reply")

# Serves requests of one campaign on a connection in no transaction; returns for each its reply or its own problem.
# If it raises, it can be called again with the same requests.
ServeBatch = Callable[[Driver, int, Sequence[Request]], Awaitable[Sequence[Reply | Exception]]]

MAX_BATCH_SIZE = 64  # requests: a transaction holds its locks until all of them are served


@dataclass(frozen=True)
class WaitingRequest(Generic[Request, Reply]):
    """A request, and the future of its reply; the future is done early if nobody waits any more."""

    request: Request
    reply: "asyncio.Future[Reply]"


@dataclass
class BatchQueue(Generic[Request, Reply]):
    """Serves the requests of each campaign one batch after another, in the order in which they come.

    Attributes:
        connections: Connections of the server; a batch holds one, and a waiting request none.
        serve: Serves a batch.
        waiting: Requests that the next batch of their campaign serves, by campaign.
        tasks: Tasks that serve the batches of a campaign, as long as requests wait.

    """

    connections: ServingConnections
    serve: ServeBatch[Request, Reply]
    waiting: dict[int, deque[WaitingRequest[Request, Reply]]] = field(default_factory=dict)
    tasks: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)

    async def submit(self, campaign_id: int, request: Request) -> Reply:
        """Return the reply to a request. Raises its own problem, or that of its batch.

        The caller must hold no serving connection: all of them could be held by requests that wait for one.
        """
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(campaign_id, deque()).append(WaitingRequest(request, reply))
        if campaign_id not in self.tasks:
            self.tasks[campaign_id] = asyncio.create_task(self.serve_campaign(campaign_id))
        return await reply

    async def serve_campaign(self, campaign_id: int) -> None:
        """Serve batches of a campaign until no request waits."""
        waiting = self.waiting[campaign_id]
        try:
            while waiting:
                batch = [waiting.popleft() for _ in range(min(len(waiting), MAX_BATCH_SIZE))]
                await self.serve_batch(campaign_id, [entry for entry in batch if not entry.reply.done()])
        finally:
            del self.waiting[campaign_id], self.tasks[campaign_id]
            for entry in waiting:  # the server stops
                entry.reply.cancel()

    async def serve_batch(self, campaign_id: int, batch: Sequence[WaitingRequest[Request, Reply]]) -> None:
        """Serve a batch, or its requests one by one if they fail together for another reason than a lost database."""
        replies: Sequence[Reply | Exception]
        try:
            replies = await self.serve_together(campaign_id, batch)
        except Exception as problem:  # noqa: BLE001  (each request raises its own)
            if len(batch) > 1 and not is_database_away(problem):
                log.warning("campaign %s: %d requests are served one by one after %r", campaign_id, len(batch), problem)
                for entry in batch:
                    await self.serve_batch(campaign_id, [entry])
                return
            replies = [problem] * len(batch)
        except asyncio.CancelledError:
            for entry in batch:
                entry.reply.cancel()
            raise
        for entry, reply in zip(batch, replies, strict=True):
            if entry.reply.done():
                continue
            if isinstance(reply, Exception):
                entry.reply.set_exception(reply)
            else:
                entry.reply.set_result(reply)

    async def serve_together(
        self, campaign_id: int, batch: Sequence[WaitingRequest[Request, Reply]]
    ) -> Sequence[Reply | Exception]:
        async with self.connections.borrow_autocommit_connection(campaign_id) as connection:
            return await self.serve(connection, campaign_id, [entry.request for entry in batch])
