"""Requests of annotators and programs while they work: an answer to store, a next HIT, or one after the other.

All requests of a campaign that wait in a process are served together: first the answers, then the HITs. One request
alone is a batch of one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import NextHitRequest, find_or_lease_next_hits
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.submission import store_answers
from app.background.metrics import PROCESS_METRICS
from app.database.session import Driver
from app.errors import Conflict, Gone, Invalid, Refusal


@dataclass(frozen=True, slots=True)
class VisitRequest:
    """Request of an annotator or program.

    Args:
        answer: The answer to store, if there is one.
        next_hit: The HIT to get afterwards, if one is wanted.
        shows_invalid_answer: True if there is no next HIT after an `Invalid` answer, because the page keeps it.

    """

    answer: SubmittedAnswer | None = None
    next_hit: NextHitRequest | None = None
    shows_invalid_answer: bool = False

    def wants_next_hit_after(self, refusal: Exception | None) -> bool:
        """Return whether the HIT is wanted although the answer was refused, if it was."""
        refusals_with_next_hit = (Gone, Conflict) if self.shows_invalid_answer else (Gone, Conflict, Invalid)
        return self.next_hit is not None and (refusal is None or isinstance(refusal, refusals_with_next_hit))


@dataclass(frozen=True, slots=True)
class VisitReply:
    """Reply to a request.

    Attributes:
        receipt: Receipt of the answer, if it was stored.
        refusal: Why it was not stored.
        next_hit: The next HIT, or why there is none.

    """

    receipt: AnswerReceipt | None = None
    refusal: Refusal | None = None
    next_hit: NextHit | None = None

    def stored_receipt(self) -> AnswerReceipt:
        """Return the receipt of the answer. Raises the refusal, if it was not stored."""
        if self.refusal is not None:
            raise self.refusal
        assert self.receipt is not None  # noqa: S101  (the request had an answer)
        return self.receipt

    def found_next_hit(self) -> NextHit:
        """Return the next HIT of a request that wants one. Raises the refusal of an answer without a next HIT."""
        if self.next_hit is None and self.refusal is not None:
            raise self.refusal
        assert self.next_hit is not None  # noqa: S101  (the request wanted one)
        return self.next_hit


@dataclass(frozen=True)
class VisitServer:
    """Serves batches of requests with the posteriors of this process."""

    cache: PosteriorCache = field(repr=False)

    async def serve(
        self, connection: Driver, campaign_id: int, requests: Sequence[VisitRequest]
    ) -> list[VisitReply | Exception]:
        """Return the reply to each request of a campaign, or why it has none.

        Args:
            connection: Connection in no transaction.
            campaign_id: The campaign of all requests.
            requests: The requests.

        """
        outcomes: dict[int, VisitReply | Exception] = dict.fromkeys(range(len(requests)), VisitReply())
        outcomes |= await self.store_answers_of_requests(connection, campaign_id, requests)
        wanted = {
            place: request.next_hit
            for place, request in enumerate(requests)
            if request.next_hit is not None
            and isinstance(reply := outcomes[place], VisitReply)
            and request.wants_next_hit_after(reply.refusal)
        }
        if wanted:
            started_at = time.perf_counter()
            next_hits = await find_or_lease_next_hits(connection, campaign_id, [*wanted.values()], cache=self.cache)
            PROCESS_METRICS.observe("easel_next_hit_seconds", time.perf_counter() - started_at, times=len(wanted))
            for place, next_hit in zip(wanted, next_hits, strict=True):
                reply = outcomes[place]
                assert isinstance(reply, VisitReply)  # noqa: S101  (only such requests are wanted)
                outcomes[place] = next_hit if isinstance(next_hit, Exception) else replace(reply, next_hit=next_hit)
        return [outcomes[place] for place in range(len(requests))]

    async def store_answers_of_requests(
        self, connection: Driver, campaign_id: int, requests: Sequence[VisitRequest]
    ) -> dict[int, VisitReply | Exception]:
        """Store the answers of the requests, and return the reply to each by its place."""
        answers = {place: request.answer for place, request in enumerate(requests) if request.answer is not None}
        if not answers:
            return {}
        started_at = time.perf_counter()
        outcomes = await store_answers(connection, campaign_id, [*answers.values()])
        PROCESS_METRICS.observe("easel_answer_seconds", time.perf_counter() - started_at, times=len(answers))
        return {place: reply_to_answer(outcome) for place, outcome in zip(answers, outcomes, strict=True)}


def reply_to_answer(outcome: AnswerReceipt | Exception) -> VisitReply | Exception:
    """Return the reply to a request whose answer has this outcome."""
    if isinstance(outcome, Refusal):
        return VisitReply(refusal=outcome)
    return outcome if isinstance(outcome, Exception) else VisitReply(receipt=outcome)
