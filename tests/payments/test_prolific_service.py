"""The client of Prolific's API, against a Prolific on loopback."""

import socket

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from app.annotation.platforms.prolific import service as prolific_service
from app.annotation.platforms.prolific.service import (
    ProlificService,
    format_bonus_list,
    prolific_notice_or_none_if_unsigned,
)
from app.annotation.platforms.service import Bonus, CallNotMade, CallOutcomeUnknown, CallRefused
from tests.payments.fake_prolific import TOKEN

SIGNED_BODY = (
    b'{"event_type":"submission.status.change","resource_id":"sub1","participant_id":"p1","status":"RETURNED"}'
)


@pytest.fixture
def service(prolific):
    return ProlificService(prolific.address, TOKEN)


async def test_submissions_of_all_pages_are_read_and_a_page_past_the_end_ends_the_list(prolific, service):
    for number in range(200):  # two full pages, so that the third is asked for and missing
        prolific.add(f"s{number}", "TIMED-OUT" if number else "AWAITING REVIEW")
    found = [submission async for submission in service.iterate_submissions("study-1")]
    assert [submission.id for submission in found] == [f"s{number}" for number in range(200)]
    assert {found[0].status, found[1].status} == {"awaiting", "timed_out"}
    assert found[0].participant == "person-s0"
    assert found[0].bonus_amounts is None


async def test_a_study_that_is_gone_is_refused(service):
    with pytest.raises(CallRefused) as refused:
        [submission async for submission in service.iterate_submissions("gone")]
    assert refused.value.status == 404


async def test_bonuses_are_registered_and_paid_and_read_back(prolific, service):
    prolific.add("s1")
    bulk = await service.register_bonuses_and_return_bulk_id("study-1", [Bonus("s1", 425)])
    assert (await service.load_submission("s1")).bonus_amounts == ()
    await service.pay_bonuses(bulk)
    assert (await service.load_submission("s1")).bonus_amounts == (425,)


async def test_amounts_have_two_places():
    assert format_bonus_list([Bonus("a", 5), Bonus("b", 425), Bonus("c", 10_000)]) == "a,0.05\nb,4.25\nc,100.00\n"


@pytest.mark.parametrize(
    ("reply", "failure", "words"),
    [
        (JSONResponse({"error": {"status": 400, "title": "T", "detail": {"a": ["b"]}}}, 400), CallRefused, "'a'"),
        (JSONResponse({"message": "m", "detail": "the detail"}, 403), CallRefused, "the detail"),
        (PlainTextResponse("in plain text", 422), CallRefused, "in plain text"),
        (JSONResponse({}, 401), CallRefused, "token"),
        (JSONResponse({}, 429), CallNotMade, "too many"),
        (PlainTextResponse("", 408), CallOutcomeUnknown, "408"),
        (PlainTextResponse("<html>", 502), CallOutcomeUnknown, "502"),
        (Response(status_code=302, headers={"location": "/elsewhere"}), CallOutcomeUnknown, "302"),
        (PlainTextResponse("<html>", 200), CallOutcomeUnknown, "not JSON"),
    ],
)
async def test_a_failure_says_whether_the_call_may_have_had_an_effect(prolific, service, reply, failure, words):
    prolific.trouble = lambda _call: reply
    with pytest.raises(failure) as failed:
        await service.pay_bonuses("bulk-1")
    assert words in failed.value.message
    assert TOKEN not in str(failed.value)


async def test_ids_in_the_reason_of_a_refusal_are_masked(prolific, service):
    person = "5f8a1b2c3d4e5f6a7b8c9d0e"
    prolific.trouble = lambda _call: JSONResponse({"error": {"detail": f"{person} of sub-77 has sub-778"}}, 400)
    with pytest.raises(CallRefused) as refused:
        await service.approve_submission("sub-77")
    assert refused.value.message.endswith(": (id) of (id) has sub-778")
    prolific.trouble = lambda _call: PlainTextResponse("x" * 290 + f" {person} has no bonus of sub-77", 400)
    with pytest.raises(CallRefused) as refused:
        await service.register_bonuses_and_return_bulk_id("study-1", [Bonus("sub-77", 100)])
    assert not {person[:6], "sub-77"} & {*refused.value.message.split()}
    assert person[:6] not in refused.value.message


async def test_calls_of_a_session_share_a_connection_but_those_that_pay(prolific, service):
    prolific.add("s1")
    bulk = await service.register_bonuses_and_return_bulk_id("study-1", [Bonus("s1", 425)])
    prolific.clients.clear()
    async with service.session(seconds=60) as session:
        for _ in range(3):
            await session.load_submission("s1")
        assert len({*prolific.clients}) == 1
        await session.pay_bonuses(bulk)
    assert len({*prolific.clients}) == 2


async def test_calls_after_the_time_of_a_session_are_not_made(prolific, service):
    prolific.add("s1")
    async with service.session(seconds=0) as session:
        with pytest.raises(CallNotMade):
            await session.load_submission("s1")
    assert session.is_cut_short
    assert prolific.calls == []
    assert (await service.load_submission("s1")).id == "s1"


async def test_a_reply_in_another_shape_leaves_the_outcome_unknown(prolific, service):
    prolific.trouble = lambda _call: JSONResponse({"no": "id"})
    with pytest.raises(CallOutcomeUnknown):
        await service.register_bonuses_and_return_bulk_id("study-1", [Bonus("s1", 100)])


async def test_no_connection_means_that_nothing_was_sent():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        service = ProlificService(f"http://127.0.0.1:{closed.getsockname()[1]}/api/v1", TOKEN)
        with pytest.raises(CallNotMade):
            await service.pay_bonuses("bulk-1")


async def test_a_reply_that_never_comes_leaves_the_outcome_unknown(monkeypatch):
    monkeypatch.setattr(prolific_service, "CALL_TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and never answers
        port = silent.getsockname()[1]
        with pytest.raises(CallOutcomeUnknown):
            await ProlificService(f"http://127.0.0.1:{port}", TOKEN).pay_bonuses("bulk-1")


def notice_headers(signature):
    return {
        "x-prolific-request-timestamp": "1767225600",
        "x-prolific-request-signature": signature,
        "x-event-id": "event-1",
    }


def test_a_notice_is_read_if_the_signature_of_its_bytes_holds():
    signature = "xlStsSPujzP3R9y6oX25U+HWlX4i+ac3JzHkhQY64Fs="
    notice = prolific_notice_or_none_if_unsigned("s3cr3t", notice_headers(signature), SIGNED_BODY)
    assert notice is not None
    assert notice.event_id == "event-1"


@pytest.mark.parametrize(
    ("secret", "signature", "body"),
    [
        ("other", "xlStsSPujzP3R9y6oX25U+HWlX4i+ac3JzHkhQY64Fs=", SIGNED_BODY),
        ("s3cr3t", "xlStsSPujzP3R9y6oX25U+HWlX4i+ac3JzHkhQY64Fs=", SIGNED_BODY + b" "),
        ("s3cr3t", "", SIGNED_BODY),
        ("s3cr3t", "é", b""),
    ],
)
def test_a_notice_with_another_signature_is_none(secret, signature, body):
    assert prolific_notice_or_none_if_unsigned(secret, notice_headers(signature), body) is None
