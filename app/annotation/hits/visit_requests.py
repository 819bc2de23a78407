"""Requests of annotators and programs while they work: an answer to store, a next HIT, or one after the other.

All requests of a campaign that wait in a process are served together: the answers with the HITs that can be leased in
the same transaction, then the other HITs. One request alone is a batch of one.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import LeaseBatch, NextHitRequest, PendingRequest
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.submission import store_answers_and_return_outcomes
from app.background.metrics import PROCESS_METRICS
from app.database.batch_queue import Unserved
from app.database.session import Driver, close_driver_if_ruined
from app.errors import Conflict, Gone, Invalid, Refusal


@dataclass(frozen=True, slots=True)
class VisitRequest:
    """Request of an annotator or program.

    Args:
        answer: The answer to store, if there is one.
        next_hit: The HIT to get afterwards, if one is wanted.
        shows_invalid_answer: True if there is no next HIT after an `Invalid` answer, because the page keeps it.
        answered: Reply to the answer of this request, if it has been processed and the HIT alone is left.

    """

    answer: SubmittedAnswer | None = None
    next_hit: NextHitRequest | None = None
    shows_invalid_answer: bool = False
    answered: "VisitReply | None" = None

    def wants_next_hit_after(self, refusal: Exception | None) -> bool:
        """Return whether the HIT is wanted although the answer was refused, if it was."""
        refusals_with_next_hit = (Gone, Conflict) if self.shows_invalid_answer else (Gone, Conflict, Invalid)
        return self.next_hit is not None and (refusal is None or isinstance(refusal, refusals_with_next_hit))

    def remaining_request_after_answer(self, reply: "VisitReply") -> "VisitRequest":
        """Return what is left of the request once its answer, if it has one, got this reply."""
        return self if self.answer is None else replace(self, answer=None, answered=reply)

    def reply_to_failure(self, problem: Exception) -> "VisitReply | Exception":
        """Return the receipt of the answer and why there is no next HIT; the problem alone if no answer is stored."""
        if self.answered is None or self.answered.receipt is None:
            return problem
        return replace(self.answered, problem=problem)


@dataclass(frozen=True, slots=True)
class VisitReply:
    """Reply to a request.

    Attributes:
        receipt: Receipt of the answer, if it was stored.
        refusal: Why it was not stored.
        next_hit: The next HIT, or why there is none.
        problem: Why there is no next HIT although one is wanted and the answer is stored.

    """

    receipt: AnswerReceipt | None = None
    refusal: Refusal | None = None
    next_hit: NextHit | None = None
    problem: Exception | None = None

    def receipt_or_raise_refusal(self) -> AnswerReceipt:
        """Return the receipt of the answer. Raises the refusal, if it was not stored."""
        if self.refusal is not None:
            raise self.refusal
        assert self.receipt is not None  # noqa: S101  (the request had an answer)
        return self.receipt

    def next_hit_or_raise_refusal(self) -> NextHit:
        """Return the next HIT of a request that wants one. Raises the reason why an answer has no next HIT."""
        if self.next_hit is None and (reason := self.refusal or self.problem) is not None:
            raise reason
        assert self.next_hit is not None  # noqa: S101  (the request wanted one)
        return self.next_hit


@dataclass(frozen=True)
class VisitServer:
    """Serves batches of requests with the posteriors of this process."""

    cache: PosteriorCache = field(repr=False)

    async def serve(
        self, connection: Driver, campaign_id: int, requests: Sequence[VisitRequest]
    ) -> list[VisitReply | Exception | Unserved[VisitRequest]]:
        """Return the reply to each request of a campaign, or why it has none.

        An answer that is stored keeps its receipt if there is a problem with the next HITs: then its request is
        unserved, and what is left of it is the HIT.

        Args:
            connection: Connection in no transaction.
            campaign_id: The campaign of all requests.
            requests: The requests.

        """
        outcomes: dict[int, VisitReply | Exception | Unserved[VisitRequest]] = {
            place: request.answered or VisitReply() for place, request in enumerate(requests)
        }
        pending = {
            place: PendingRequest(request.next_hit)
            for place, request in enumerate(requests)
            if request.next_hit is not None
        }
        outcomes |= await self.store_answers_and_return_reply_by_place(
            connection, campaign_id, requests, [*pending.values()]
        )
        wanted = {
            place: reply
            for place, request in enumerate(requests)
            if isinstance(reply := outcomes[place], VisitReply) and request.wants_next_hit_after(reply.refusal)
        }
        next_hits = await self.find_next_hits_by_place(
            connection, campaign_id, {place: pending[place] for place in wanted}
        )
        for place, next_hit in next_hits.items():
            left = requests[place].remaining_request_after_answer(wanted[place])
            if isinstance(next_hit, NextHit):
                outcomes[place] = replace(wanted[place], next_hit=next_hit)
            elif isinstance(next_hit, Unserved):
                outcomes[place] = Unserved(left, next_hit.problem)
            elif requests[place].answer is not None:
                outcomes[place] = Unserved(left, next_hit)
            else:
                outcomes[place] = next_hit
        return [outcomes[place] for place in range(len(requests))]

    async def find_next_hits_by_place(
        self, connection: Driver, campaign_id: int, requests: Mapping[int, PendingRequest]
    ) -> dict[int, NextHit | Exception | Unserved[PendingRequest]]:
        """Return the next HIT of each request, or why it has none.

        Requests without a HIT yet are unserved if all of them fail together.
        """
        waiting_count = sum(request.outcome is None for request in requests.values())
        batch = LeaseBatch(connection, self.cache, campaign_id, [*requests.values()])
        started_at = time.perf_counter()
        try:
            next_hits = await batch.serve_all_requests()
        except Exception as problem:  # noqa: BLE001  (the answers are stored, whatever it is)
            await close_driver_if_ruined(connection, problem)
            return {place: request.outcome or Unserved(request, problem) for place, request in requests.items()}
        PROCESS_METRICS.observe("easel_next_hit_seconds", time.perf_counter() - started_at, times=waiting_count)
        return dict(zip(requests, next_hits, strict=True))

    async def store_answers_and_return_reply_by_place(
        self,
        connection: Driver,
        campaign_id: int,
        requests: Sequence[VisitRequest],
        next_hits: Sequence[PendingRequest],
    ) -> dict[int, VisitReply | Exception | Unserved[VisitRequest]]:
        """Store the answers of the requests, and return the reply to each by its place.

        Requests for HITs get their outcome if a HIT is leased together with the answers.
        """
        answers = {place: request.answer for place, request in enumerate(requests) if request.answer is not None}
        if not answers:
            return {}
        started_at = time.perf_counter()
        outcomes = await store_answers_and_return_outcomes(
            connection, campaign_id, [*answers.values()], cache=self.cache, next_hits=next_hits
        )
        seconds = time.perf_counter() - started_at
        PROCESS_METRICS.observe("easel_answer_seconds", seconds, times=len(answers))
        leased_count = sum(request.outcome is not None for request in next_hits)
        PROCESS_METRICS.observe("easel_next_hit_seconds", seconds, times=leased_count)
        return {
            place: Unserved(requests[place], outcome.problem)
            if isinstance(outcome, Unserved)
            else reply_to_answer(outcome)
            for place, outcome in zip(answers, outcomes, strict=True)
        }


def reply_to_answer(outcome: AnswerReceipt | Exception) -> VisitReply | Exception:
    """Return the reply to a request whose answer has this outcome."""
    if isinstance(outcome, Refusal):
        return VisitReply(refusal=outcome)
    return outcome if isinstance(outcome, Exception) else VisitReply(receipt=outcome)
