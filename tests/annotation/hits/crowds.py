"""Annotators at work in one server process, who answer and ask together."""

import asyncio

import numpy as np

from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache, load_campaign_index
from app.annotation.hits.leases import NextHitRequest
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.visit_requests import VisitReply, VisitRequest, VisitServer
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    try_to_lease_hit,
)


class Crowd:
    """Annotators at work in one server process, each with a HIT."""

    def __init__(self, engine, campaign, held, cache):
        self.engine, self.campaign, self.held, self.cache = engine, campaign, held, cache
        self.statements = []

    async def answer_and_ask(self, *people, scores=None, connection=None):
        """All of these, or everybody, answer their HITs and ask for the next ones together."""
        requests = [self.request_of(one, (scores or {}).get(one)) for one in people or self.held]
        if connection is not None:
            return await VisitServer(self.cache).serve(connection, self.campaign.id, requests)
        self.statements = []
        async with borrow_autocommit_driver(self.engine) as borrowed:
            with borrowed.query_logger(lambda logged: self.statements.append(logged.query)):
                replies = await VisitServer(self.cache).serve(borrowed, self.campaign.id, requests)
                await asyncio.sleep(0)  # asyncpg calls loggers in the next round of the loop
        for one, reply in zip(people or [*self.held], replies, strict=True):
            if isinstance(reply, VisitReply) and reply.next_hit is not None and reply.next_hit.hit is not None:
                self.held[one] = reply.next_hit.hit
        return replies

    async def serve(self, *requests):
        async with borrow_autocommit_driver(self.engine) as connection:
            return await VisitServer(self.cache).serve(connection, self.campaign.id, requests)

    def request_of(self, one, scores=None):
        hit = self.held[one]
        values = dict.fromkeys(hit.items, 50.0) if scores is None else scores
        return VisitRequest(
            SubmittedAnswer(one, hit.id, Answer(values), NOW), NextHitRequest(AssignmentQuery(one), NOW)
        )

    async def copy_is_that_of_the_database(self):
        """Whether the posteriors of the process are those in the database."""
        async with borrow_autocommit_driver(self.engine) as connection:
            stored = await load_campaign_index(connection, self.campaign)
            mine = await self.cache.load_current_index(connection, self.campaign)
        return all(
            np.array_equal(getattr(stored.index, name), getattr(mine.index, name))
            for name in ("score", "variance", "judgments", "status")
        )


async def create_crowd(engine, people=3, **settings):
    """A crowd whose process has drawn before, so that it knows the campaign."""
    campaign = await create_running_campaign(engine, **({"items": 60} | settings))
    cache = PosteriorCache()
    crowd = [await create_annotator(engine, campaign, f"a{k}") for k in range(people)]
    return Crowd(engine, campaign, {one: await try_to_lease_hit(engine, one, cache=cache) for one in crowd}, cache)


def are_leased_with_their_answers(crowd):
    """Whether there was one transaction, and one statement of it both stored the answers and leased the HITs."""
    leasing = [statement for statement in crowd.statements if "easel_lease_hits" in statement]
    return len(leasing) == 1 and "easel_store_answers" in leasing[0] and is_committed_once_and_last(crowd)


def is_committed_once_and_last(crowd):
    *earlier, last = [statement.split()[0].rstrip(";") for statement in crowd.statements]
    return last == "COMMIT" and "COMMIT" not in earlier
