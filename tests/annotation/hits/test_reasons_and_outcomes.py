"""Why an annotator gets no HIT, how their visit ends, and what is left of a request: all from what was read already."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.leases import PendingRequest
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.no_hit_replies import (
    crowded_reason_code_or_none,
    no_hit_reason_code_of_assignment_or_none,
)
from app.annotation.hits.pages import hit_page
from app.annotation.hits.pages.steps import PageState
from app.annotation.hits.visit_outcome import is_leaving_early_allowed, outcome_of_finished_visit_or_none
from app.annotation.hits.visit_requests import VisitReply, VisitRequest
from app.annotation.platforms.registry import PLATFORMS
from app.errors import Conflict, Gone, Invalid, NotFound

ANY: Any = object()


def assignment_with(**changes: Any) -> Any:
    """An assignment that may get a HIT, unless that is changed."""
    usual = {
        "one_hit": False,
        "answered_here": False,
        "held_back": False,
        "hits_per_annotator": None,
        "hits_answered": 3,
        "open_elsewhere": 0,
        "status": "running",
        "hit_id": None,
        "hit_untouched": False,
        "untouched_here": 0,
        "untouched_everywhere": 0,
        "people_per_address": None,
        "platform": "link",
        "leave_early": False,
    }
    return SimpleNamespace(**usual | changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"one_hit": True}, None),
        ({"answered_here": True}, None),
        ({"one_hit": True, "answered_here": True}, "assignment_done"),
        ({"held_back": True, "status": "paused"}, "held"),
        ({"hits_per_annotator": 4}, None),
        ({"hits_per_annotator": 3}, "limit"),
        ({"hits_per_annotator": 2}, "limit"),
        ({"hits_per_annotator": 4, "open_elsewhere": 1}, "limit"),
        ({"hits_per_annotator": 5, "open_elsewhere": 1}, None),
        ({"status": "draft"}, "not_open"),
        ({"status": "paused"}, "paused"),
        ({"status": "finished"}, "all_done"),
    ],
)
def test_the_reason_that_does_not_depend_on_items(changes, reason):
    assert no_hit_reason_code_of_assignment_or_none(assignment_with(**changes)) == reason


VISITOR: Any = SimpleNamespace(limits=SimpleNamespace(untouched_per_address=2, untouched_per_campaign=10))


@pytest.mark.parametrize(
    ("changes", "is_crowded"),
    [
        ({}, False),
        ({"untouched_here": 1}, False),
        ({"untouched_here": 2}, True),
        ({"untouched_here": 2, "people_per_address": 3}, False),
        ({"untouched_here": 3, "people_per_address": 3}, True),
        ({"untouched_here": 2, "people_per_address": 1}, True),
        ({"untouched_everywhere": 9}, False),
        ({"untouched_everywhere": 10}, True),
        ({"untouched_here": 2, "hit_id": 7}, False),
        ({"untouched_here": 2, "hit_id": 7, "hit_untouched": True}, True),
    ],
)
def test_it_is_crowded_where_people_hold_too_much_that_they_have_not_touched(changes, is_crowded):
    reason = "crowded" if is_crowded else None
    assert crowded_reason_code_or_none(assignment_with(**changes), VISITOR) == reason
    assert crowded_reason_code_or_none(assignment_with(**changes), None) is None


@pytest.mark.parametrize(
    ("reason", "answered_here", "outcome"),
    [
        (None, True, None),
        ("wait", True, None),
        ("paused", True, None),
        ("held", True, "failed_checks"),
        ("held", False, "failed_checks"),
        ("all_done", True, "completed"),
        ("all_done", False, "nothing_left"),
        ("limit", True, "completed"),
        ("assignment_done", True, "completed"),
        ("seen_all", False, "nothing_left"),
        ("stopped", True, "completed"),
        ("stopped", False, None),
    ],
)
def test_how_a_visit_ends(reason, answered_here, outcome):
    next_hit = NextHit(assignment_with(answered_here=answered_here), reason=reason)
    assert outcome_of_finished_visit_or_none(next_hit) == outcome


@pytest.mark.parametrize(
    ("answered_here", "was_finished", "leave_early", "outcome"),
    [
        (True, True, False, "completed"),
        (True, False, True, "completed"),
        (True, False, False, None),
        (False, True, True, None),
    ],
)
def test_a_withdrawal_gives_no_code_that_stopping_would_not_give(answered_here, was_finished, leave_early, outcome):
    assignment = assignment_with(answered_here=answered_here, leave_early=leave_early, hits_per_annotator=4)
    next_hit = NextHit(assignment, reason="withdrawn", was_finished=was_finished)
    assert outcome_of_finished_visit_or_none(next_hit) == outcome


def test_people_may_leave_early_where_that_is_set_or_nothing_else_ends_a_visit_to_return_from():
    returning = next(platform for platform in PLATFORMS.values() if platform.has_return_page)
    staying = next(platform for platform in PLATFORMS.values() if not platform.has_return_page)
    assert is_leaving_early_allowed(staying, True, 5)
    assert not is_leaving_early_allowed(staying, False, None)
    assert is_leaving_early_allowed(returning, False, None)
    assert not is_leaving_early_allowed(returning, False, 5)


@pytest.mark.parametrize(
    ("refusal", "form", "script"),
    [
        (None, True, True),
        (Gone("", code="x"), True, True),
        (Conflict("", code="x"), True, True),
        (Invalid("", code="x"), True, False),
        (NotFound("", code="x"), False, False),
    ],
)
def test_a_next_hit_follows_a_refused_answer_unless_the_page_keeps_it(refusal, form, script):
    assert VisitRequest(next_hit=ANY).wants_next_hit_after(refusal) is form
    assert VisitRequest(next_hit=ANY, shows_invalid_answer=True).wants_next_hit_after(refusal) is script
    assert not VisitRequest().wants_next_hit_after(refusal)


def test_of_a_request_whose_answer_was_processed_the_hit_is_left():
    reply, without_answer = VisitReply(), VisitRequest(next_hit=ANY)
    assert without_answer.remaining_request_after_answer(reply) is without_answer
    rest = VisitRequest(ANY, ANY).remaining_request_after_answer(reply)
    assert (rest.answer, rest.next_hit, rest.answered) == (None, ANY, reply)


def test_a_stored_answer_keeps_its_receipt_whatever_fails_then():
    problem, receipt = RuntimeError("lost"), AnswerReceipt(1, 2)
    assert VisitRequest(next_hit=ANY).reply_to_failure(problem) is problem
    assert VisitRequest(answered=VisitReply(refusal=Gone("", code="x"))).reply_to_failure(problem) is problem
    reply = VisitRequest(answered=VisitReply(receipt=receipt)).reply_to_failure(problem)
    assert isinstance(reply, VisitReply)
    assert (reply.receipt_or_raise_refusal(), reply.problem) == (receipt, problem)
    with pytest.raises(RuntimeError, match="lost"):
        reply.next_hit_or_raise_refusal()


def test_a_reply_raises_the_refusal_of_its_answer():
    reply = VisitReply(refusal=Gone("", code="x"))
    with pytest.raises(Gone):
        reply.receipt_or_raise_refusal()
    with pytest.raises(Gone):
        reply.next_hit_or_raise_refusal()
    found = NextHit(assignment_with())
    assert VisitReply(refusal=Gone("", code="x"), next_hit=found).next_hit_or_raise_refusal() is found


@pytest.mark.parametrize(("selection", "is_kept"), [("streaming", [True, False, True]), ("iterations", [False] * 3)])
def test_after_a_lost_race_every_other_draw_is_for_the_state_that_was_read(selection, is_kept):
    kept = []
    pending = PendingRequest(ANY)
    for _ in range(3):
        pending.assignment = assignment_with(selection=selection)
        pending.prepare_redraw_after_lost_race()
        kept.append(pending.assignment is not None)
    assert kept == is_kept


@pytest.mark.parametrize("reason", ["seen_all", "wait", "all_done", "limit", "held", "paused", None])
def test_only_an_end_of_items_may_have_missed_the_goal(reason):
    next_hit = NextHit(assignment_with(), reason=reason)
    assert next_hit.should_check_goal is (reason in {"seen_all", "wait", "all_done"})
    assert next_hit.is_finished is (reason in {"seen_all", "all_done", "limit", "held"})


@pytest.mark.parametrize(
    ("hit", "is_first", "pause", "notice"),
    [(ANY, True, "Rest.", "Rest."), (ANY, True, None, ""), (ANY, False, "Rest.", ""), (None, True, "Rest.", "")],
)
def test_the_notice_of_a_block_is_above_its_first_task(hit, is_first, pause, notice):
    assignment = assignment_with(place_in_blocks=SimpleNamespace(is_first_task=is_first), block_pause=pause)
    assert NextHit(assignment, hit).block_notice == notice


@pytest.mark.parametrize(
    ("hit_or_reason", "notice", "receipt", "is_asked"),
    [
        ("all_done", None, None, True),
        ("wait", None, None, False),
        (ANY, None, None, False),
        (ANY, Gone("", code="x"), None, True),
        (ANY, Conflict("", code="x"), None, True),
        (ANY, Invalid("", code="x"), None, False),
        ("wait", Gone("", code="x"), None, True),
        ("all_done", None, AnswerReceipt(1, 2), False),
    ],
)
async def test_a_page_that_ends_a_visit_or_refuses_by_what_is_stored_asks_the_current_primary(
    monkeypatch, hit_or_reason, notice, receipt, is_asked
):
    asked = []

    async def ask(*_: object) -> None:
        asked.append(True)

    monkeypatch.setattr(hit_page, "require_database_is_current_primary", ask)
    found = {"hit": ANY} if hit_or_reason is ANY else {"reason": hit_or_reason}
    next_hit, page_state = NextHit(assignment_with(), **found), PageState(receipt=receipt, notice=notice)
    await hit_page.require_current_primary_if_page_ends_or_refuses(ANY, ANY, next_hit, page_state)
    assert bool(asked) is is_asked
