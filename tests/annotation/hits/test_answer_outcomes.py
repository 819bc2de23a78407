"""Outcomes of answers that are stored together, without a database: which go first, which are late, which are left."""

from typing import Any

import pytest

from app.annotation.hits import submission
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.platforms.assignments import AssignmentId
from app.database.batch_queue import Unserved
from app.errors import Gone, Invalid
from tests.annotation.hits.campaigns import NOW

NO_DATABASE: Any = object()
REFUSAL, LOST = Invalid("No.", code="scores_missing"), ValueError("lost")


def answer_to(hit_id: int) -> SubmittedAnswer:
    return SubmittedAnswer(AssignmentId(1, 2), hit_id, NO_DATABASE, NOW)


@pytest.fixture
def batches(monkeypatch):
    """Return a function that says what each batch of answers in time comes to; late answers get receipts from 100."""

    def answer_batches_with(*replies: dict[int, Any] | Exception) -> list[list[int]]:
        batches: list[list[int]] = []

        async def store_in_time(*arguments: Any) -> Any:
            _driver, _cache, _campaign_id, answers, _next_hits = arguments
            batches.append([answer.hit_id for answer in answers])
            reply = replies[len(batches) - 1]
            if isinstance(reply, Exception):
                raise reply
            return reply

        async def store_late(_driver: object, _cache: object, answer: SubmittedAnswer) -> AnswerReceipt:
            return AnswerReceipt(answer.hit_id, 100 + answer.hit_id)

        monkeypatch.setattr(submission, "store_answers_in_time_and_return_outcome_by_hit", store_in_time)
        monkeypatch.setattr(submission, "store_late_answer_or_return_problem", store_late)
        return batches

    return answer_batches_with


async def outcomes_of(*hit_ids: int) -> list[Any]:
    answers = [answer_to(hit_id) for hit_id in hit_ids]
    return await submission.store_answers_and_return_outcomes(NO_DATABASE, 1, answers, cache=PosteriorCache())


async def test_of_answers_to_one_hit_the_first_is_stored_in_time_and_the_others_are_late(batches):
    sent = batches({4: AnswerReceipt(4, 1), 5: AnswerReceipt(5, 2)})
    receipts = await outcomes_of(4, 5, 4)
    assert (sent, [receipt.seq for receipt in receipts]) == ([[4, 5]], [1, 2, 104])


async def test_after_a_refused_answer_the_next_one_to_the_hit_is_in_time(batches):
    sent = batches({4: REFUSAL, 5: AnswerReceipt(5, 2)}, {4: AnswerReceipt(4, 3)})
    outcomes = await outcomes_of(4, 5, 4, 5)
    assert sent == [[4, 5], [4]]
    assert outcomes[0] is REFUSAL
    assert [receipt.seq for receipt in outcomes[1:]] == [2, 3, 105]


async def test_an_answer_whose_lease_is_over_is_late(batches):
    sent = batches({5: AnswerReceipt(5, 2)})
    receipts = await outcomes_of(4, 5)
    assert (sent, [receipt.seq for receipt in receipts]) == ([[4, 5]], [104, 2])


async def test_if_no_answer_was_processed_the_problem_is_raised(batches):
    batches(LOST)
    with pytest.raises(ValueError, match="lost"):
        await outcomes_of(4, 5)


async def test_answers_with_an_outcome_keep_it_and_the_others_are_unserved(batches):
    batches({4: REFUSAL, 5: AnswerReceipt(5, 2)}, LOST)
    refused, receipt, left = await outcomes_of(4, 5, 4)
    assert (refused, receipt) == (REFUSAL, AnswerReceipt(5, 2))
    assert isinstance(left, Unserved)
    assert (left.request, left.problem) == (answer_to(4), LOST)


@pytest.mark.parametrize("outcome", [Gone("", code="lease_expired"), Unserved(answer_to(4), LOST)])
async def test_one_answer_gets_its_receipt_or_the_reason_why_there_is_none(batches, outcome):
    batches({4: AnswerReceipt(4, 1)}, {4: outcome})
    key = AssignmentId(1, 2)

    async def store() -> AnswerReceipt:
        return await submission.store_answer_of_hit_and_return_receipt(
            NO_DATABASE, key, 4, answer_to(4).submitted, now=NOW
        )

    assert await store() == AnswerReceipt(4, 1)
    with pytest.raises((Gone, ValueError)):
        await store()
