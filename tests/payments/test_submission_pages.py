"""Submissions on the page and in the API, and the address for notices."""

import asyncio

import pytest
from fastapi.responses import PlainTextResponse

from tests.annotation.hits.campaigns import execute_sql, fetch_rows, fetch_value
from tests.payments.fake_prolific import HOOK_SECRET, signed_notice
from tests.payments.studies import audit_lines, create_study, words

LONG = "You answered all tasks within two seconds, and your answers to the checks were wrong, so we cannot use them."
TICKED_BOX_TO_APPROVE = 'id="approves" value="yes" aria-describedby="approves-hint" checked>'


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def study(app, engine, prolific):
    study = await create_study(engine, prolific)
    app.state.payment_connector = study.connector
    await study.work_again(minutes=10)
    return study


@pytest.fixture
def page(study):
    return f"/admin/campaigns/{study.campaign.slug}/submissions"


async def test_a_person_approves_and_rejects(engine, researcher, page, study, prolific):
    assert "It can be approved" in words(await researcher.get(page))
    await researcher.post(page, data={"submission": "s1", "decision": "approve"})
    rejection = {"submission": "s2", "decision": "reject", "category": "FAILED_CHECK", "message": LONG}
    await researcher.post(page, data=rejection)
    assert [prolific.submissions[name]["status"] for name in ("s1", "s2")] == ["APPROVED", "REJECTED"]
    lines = await fetch_rows(engine, "SELECT action, about, after FROM audit_log ORDER BY id DESC LIMIT 2")
    assert lines == [
        ("payments.rejected", "A2", {"category": "FAILED_CHECK"}),
        ("payments.approved", "A1", None),
    ]
    reply = await researcher.post(page, data=rejection)
    assert "does not wait for a review" in words(reply)


async def test_the_button_says_what_an_approval_pays(engine, researcher, page, study, prolific):
    prolific.add("s3", person="a stranger")
    await study.work_again(minutes=10)
    text = words(await researcher.get(page))
    assert "Approve the submission of A1 and pay £0.90" in text
    assert text.count("a person who never came here is not counted in the budget") == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"message": "too short"}, "these are 9"),
        ({"category": "RUDE"}, "Choose why"),
        ({"decision": "shout"}, "Choose approve, reject or request_return, not"),
        ({"submission": "s9"}, "has no submission"),
    ],
)
async def test_an_incomplete_rejection_changes_nothing(researcher, page, prolific, change, said):
    form = {"submission": "s2", "decision": "reject", "category": "FAILED_CHECK", "message": LONG}
    reply = await researcher.post(page, data=form | change)
    assert said in words(reply)
    assert prolific.submissions["s2"]["status"] == "AWAITING REVIEW"


async def test_a_person_is_asked_to_return_before_a_rejection(engine, researcher, page, study, prolific):
    await execute_sql(engine, "UPDATE payment_accounts SET approves = true")
    asked = {"submission": "s1", "decision": "request_return", "message": "Most of your answers are empty."}
    reply = await researcher.post(page, data=asked, follow_redirects=True)
    assert "You asked the person to return it" in words(reply)
    assert prolific.submissions["s1"]["return_requested"] == ["Most of your answers are empty."]
    assert (await audit_lines(engine))[-1] == "payments.return_requested"
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s2"]  # the other one
    assert await study.rewards() == [("s1", "prepared", 90), ("s2", "sent", 90)]
    assert "cannot be requested" in words(await researcher.post(page, data=asked))
    await researcher.post(page, data={"submission": "s1", "decision": "approve"})
    assert prolific.rewards_paid == ["s2", "s1"]


async def test_a_returned_submission_frees_its_reward(researcher, page, study, prolific):
    asked = {"submission": "s1", "decision": "request_return", "message": "Most of your answers are empty."}
    await researcher.post(page, data=asked)
    prolific.submissions["s1"]["status"] = "RETURNED"
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "cancelled", 90), ("s2", "prepared", 90)]


@pytest.mark.parametrize("reason", ["", "short", "x" * 2001])
async def test_a_return_is_asked_for_with_a_reason_that_a_person_can_read(researcher, program, page, prolific, reason):
    asked = {"submission": "s1", "decision": "request_return", "message": reason}
    assert "why you ask for the return" in words(await researcher.post(page, data=asked))
    refused = await program("POST", part="submissions", json=asked)
    assert refused.json()["error"]["code"] == "return_reason"
    assert "return_requested" not in prolific.submissions["s1"]


async def test_what_the_platform_refuses_is_told(researcher, page, study, prolific):
    prolific.submissions["s1"]["status"] = "APPROVED"  # by hand, since it was read last
    reply = await researcher.post(page, data={"submission": "s1", "decision": "approve"})
    assert "The submission is APPROVED" in words(reply)


async def test_an_approval_without_a_reply_is_noted(engine, researcher, page, study, prolific):
    prolific.trouble = lambda call: PlainTextResponse("", 502) if "/transition/" in call else None
    reply = await researcher.post(page, data={"submission": "s1", "decision": "approve"})
    assert "whether it took effect" in words(reply)
    assert (await audit_lines(engine))[-1] == "payments.approve_tried"


async def test_how_submissions_are_read_is_set_and_noted(engine, researcher, page, study):
    form = {"approves": "yes", "hook_secret": HOOK_SECRET, "study": "study-1 study-2"}
    await researcher.post(f"{page}/settings", data=form)
    assert await fetch_rows(engine, "SELECT approves, study FROM payment_accounts") == [(True, "study-1")]
    assert HOOK_SECRET not in (await researcher.get(page)).text
    assert HOOK_SECRET not in str(await fetch_rows(engine, "SELECT before, after FROM audit_log"))
    assert (await audit_lines(engine))[-1] == "payments.reviewing"


async def test_the_page_asks_before_it_forgets_submissions_that_wait(engine, researcher, page, program, study):
    refused = (await researcher.post(f"{page}/settings", data={"study": "study-2", "approves": "yes"})).text
    assert "still wait for a decision: 2. These people are not paid yet" in refused
    assert TICKED_BOX_TO_APPROVE in refused
    assert 'name="forgets_waiting"' in refused
    assert 'value="study-2"' in refused
    reply = await program("POST", "/settings", part="submissions", json={"study": "study-2"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "submissions_wait")
    assert await fetch_rows(engine, "SELECT study FROM payment_accounts") == [("study-1",)]
    await researcher.post(f"{page}/settings", data={"study": "study-2", "forgets_waiting": "yes"})
    assert await fetch_rows(engine, "SELECT study FROM payment_accounts") == [("study-2",)]


async def test_a_refused_form_does_not_switch_approvals_on_again(engine, researcher, page, study):
    await execute_sql(engine, "UPDATE payment_accounts SET approves = true")
    refused = (await researcher.post(f"{page}/settings", data={"study": "study-2"})).text
    assert TICKED_BOX_TO_APPROVE not in refused
    assert TICKED_BOX_TO_APPROVE in (await researcher.get(page)).text


async def test_a_program_that_leaves_the_study_out_keeps_it(engine, program, study):
    await program("POST", "/settings", part="submissions", json={"study": "study-2", "forgets_waiting": True})
    await program("POST", "/settings", part="submissions", json={"approves": True})
    assert await fetch_rows(engine, "SELECT approves, study FROM payment_accounts") == [(True, "study-2")]


async def test_programs_read_and_decide(researcher, program, study, page, prolific):
    rows = (await program("GET", part="submissions")).json()
    assert [(row["name"], row["status"], row["finding"]) for row in rows] == [
        ("A1", "awaiting", "approvable"),
        ("A2", "awaiting", "approvable"),
    ]
    assert (await program("POST", "/settings", part="submissions", json={"approves": True})).status_code == 204
    decision = {"submission": "s1", "decision": "approve"}
    assert (await program("POST", part="submissions", json=decision)).status_code == 204
    again = await program("POST", part="submissions", json=decision)
    assert again.json()["error"]["code"] == "submission_decided"
    short = {"submission": "s2", "decision": "reject", "category": "OTHER", "message": "no"}
    assert (await program("POST", part="submissions", json=short)).json()["error"]["code"] == "rejection_short"


@pytest.fixture
async def hook(engine, researcher, page, study):
    await researcher.post(f"{page}/settings", data={"hook_secret": HOOK_SECRET, "study": "study-1"})
    await execute_sql(engine, "UPDATE payment_accounts SET due_at = '2099-01-01'")
    return f"/prolific/hook/{await fetch_value(engine, 'SELECT hook_key FROM payment_accounts')}"


async def is_due(engine):
    return await fetch_value(engine, "SELECT due_at < '2099-01-01' FROM payment_accounts")


async def test_a_signed_notice_makes_the_campaign_due_once(engine, client, hook):
    assert (await client.post(hook, **signed_notice("event-1"))).status_code == 204
    assert await is_due(engine)
    await execute_sql(engine, "UPDATE payment_accounts SET due_at = '2099-01-01'")
    assert (await client.post(hook, **signed_notice("event-1"))).status_code == 204
    assert not await is_due(engine)
    assert (await client.post(hook, **signed_notice("event-2", timestamp="1"))).status_code == 204  # an older one
    assert await is_due(engine)


async def test_a_notice_that_comes_many_times_at_once_is_stored_once(engine, client, hook):
    notice = signed_notice("event-1")
    replies = await asyncio.gather(*(client.post(hook, **notice) for _ in range(20)))
    assert {reply.status_code for reply in replies} == {204}
    assert await fetch_value(engine, "SELECT count(*) FROM service_notices") == 1
    assert await is_due(engine)


async def test_many_notices_make_one_turn_in_half_a_minute(engine, client, hook):
    await execute_sql(engine, "UPDATE payment_accounts SET checked_at = now()")
    for number in range(3):
        assert (await client.post(hook, **signed_notice(f"event-{number}"))).status_code == 204
    waits = "SELECT due_at = checked_at + interval '30 seconds' FROM payment_accounts"
    assert await fetch_value(engine, waits)
    await execute_sql(engine, "UPDATE payment_accounts SET checked_at = now() + interval '1 minute'")
    assert (await client.post(hook, **signed_notice("event-9"))).status_code == 204
    assert await fetch_value(engine, "SELECT due_at < checked_at FROM payment_accounts")


async def test_other_notices_are_refused(engine, client, hook):
    for sent in (signed_notice("event-1", secret="another"), {"content": b""}, {"content": b"{}"}):
        reply = await client.post(hook, **sent)
        assert (reply.status_code, "signature" in reply.text) == (403, True)
    assert (await client.post("/prolific/hook/x", **signed_notice("event-1"))).status_code == 404
    await execute_sql(engine, "UPDATE payment_accounts SET hook_secret = NULL")
    assert (await client.post(hook, **signed_notice("event-1"))).status_code == 403
    assert not await is_due(engine)


@pytest.mark.parametrize("secret", ["s" * 501, "s\x00s"])
async def test_a_secret_of_notices_that_cannot_be_one_is_refused(engine, researcher, program, page, secret):
    reply = await researcher.post(f"{page}/settings", data={"hook_secret": secret, "study": "study-1"})
    assert "one line of at most 500 characters" in words(reply)
    assert (await program("POST", "/settings", part="submissions", json={"hook_secret": secret})).status_code == 422
    assert await fetch_value(engine, "SELECT hook_secret FROM payment_accounts") is None
