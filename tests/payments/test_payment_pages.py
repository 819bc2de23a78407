"""Payments on the page and in the API."""

import asyncio
import csv
import io
import re

import pytest
from fastapi.responses import PlainTextResponse
from sqlalchemy import text

from app.payments.connections import ConnectionSettings
from app.payments.send_request import request_sending_of_prepared_payments_or_refuse
from app.payments.token_encryption import TokenCipher
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import (
    execute_sql,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    wait_until,
)
from tests.conftest import http_client
from tests.payments.fake_prolific import TOKEN
from tests.payments.studies import KEY, Study, audit_lines, connector_to, create_study, words


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def study(app, engine, prolific):
    """Its connection is also the application's."""
    study = await create_study(engine, prolific, budget=1_000)
    app.state.payment_connector = study.connector
    return study


@pytest.fixture
def page(study: Study) -> str:
    return f"/admin/campaigns/{study.campaign.slug}/payments"


async def test_a_list_is_added_sent_and_shown(engine, researcher, study, page, prolific):
    reply = await researcher.post(f"{page}/bonuses", data={"bonuses": "A1,4.25,careful\np2,1"}, follow_redirects=True)
    assert "Send £5.25 in 2 payments" in words(reply)
    shown = dict(re.findall(r'name="(through|total)" value="(\d+)"', reply.text))
    reply = await researcher.post(f"{page}/send", data=shown, follow_redirects=True)
    assert "are being sent" in words(reply)
    await study.work_again()
    reply = await researcher.get(page)
    assert "Send £" not in words(reply)
    assert "Bonuses sent £5.25" in words(reply)
    assert prolific.paid_by_submission() == {"s1": [425], "s2": [100]}
    assert (await audit_lines(engine))[-2:] == ["payments.added", "payments.send"]


async def test_the_form_is_sent_twice_and_counts_once(researcher, page, study):
    for _ in range(2):
        await researcher.post(f"{page}/bonuses", data={"bonuses": "A1,1", "request": "the same"})
    assert await study.states() == ["prepared"]


async def test_a_refused_list_is_shown_again_with_the_reason(researcher, page, study):
    reply = await researcher.post(f"{page}/bonuses", data={"bonuses": "A1,4.25\nA9,1"})
    assert "no annotator of this campaign" in words(reply)
    assert "A1,4.25\nA9,1" in reply.text
    reply = await researcher.post(f"{page}/bonuses", data={"bonuses": "A1,10.01"})
    assert "more than what is left of the budget: £10.00 of £10.00" in words(reply)
    assert await study.states() == []


async def test_everyone_who_finished_gets_the_same_bonus(engine, researcher, page, study):
    await execute_sql(engine, "UPDATE annotators SET barred = 'held' WHERE worker_id = 'p2'")
    await researcher.post(f"{page}/everyone", data={"amount": "1.50", "reason": "thanks"})
    assert await fetch_rows(engine, "SELECT submission, amount, reason FROM payments") == [("s1", 150, "thanks")]


async def test_the_page_shows_both_sides_of_an_unclear_payment_and_takes_a_decision(engine, researcher, page, study):
    await study.add(("A1", 425))
    sql = """UPDATE payments SET state = 'unknown', sending_at = now() - interval '40 minutes', looked_at = now(),
             amounts_seen = '{100}', paid_before = 0, bulk_id = 'bulk-1', problem = 'Prolific did not reply.'"""
    await execute_sql(engine, sql)
    shown = words(await researcher.get(page))
    assert "Unclear: £4.25" in shown
    assert "Prolific showed these bonuses for the submission: £1.00 (" in shown
    payment = await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    await researcher.post(f"{page}/{payment}/decision", data={"decision": "sent"})
    assert await study.states() == ["sent"]
    assert (await audit_lines(engine))[-1] == "payments.decided"
    refused = await researcher.post(f"{page}/{payment}/decision", data={"decision": "again"})
    assert refused.status_code == 409


async def test_an_early_decision_is_neither_offered_nor_taken(engine, researcher, page, study):
    await study.add(("A1", 425))
    await execute_sql(engine, "UPDATE payments SET state = 'unknown', sending_at = now(), bulk_id = 'bulk-1'")
    shown = await researcher.get(page)
    assert "It was paid" not in shown.text
    assert "You can decide from" in words(shown)
    payment = await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    reply = await researcher.post(f"{page}/{payment}/decision", data={"decision": "sent"})
    assert (reply.status_code, "30 minutes" in words(reply)) == (409, True)


async def test_the_list_for_paying_by_hand_is_what_prolific_takes(engine, researcher, page, study):
    await study.add(("A1", 425), ("A2", 5))
    reply = await researcher.post(f"{page}/by-hand", data={"study": "study-1"})
    assert reply.text == "s1,4.25\ns2,0.05\n"
    assert "attachment" in reply.headers["content-disposition"]
    assert "to make it by hand" in words(await researcher.get(page))
    assert (await researcher.post(f"{page}/by-hand", data={"study": "study-1"})).status_code == 409
    assert (await audit_lines(engine))[-1] == "payments.by_hand"


async def test_the_ledger_as_csv_has_every_payment_and_is_noted(engine, researcher, page, study):
    await study.add(("A1", 425), reason="=careful")
    rows = list(csv.DictReader(io.StringIO((await researcher.get(f"{page}.csv")).text)))
    assert [(row["annotator"], row["amount"], row["state"], row["reason"]) for row in rows] == [
        ("A1", "4.25", "prepared", "'=careful")
    ]
    assert (await audit_lines(engine))[-1] == "people.downloaded"


async def test_the_token_is_stored_encrypted_and_shown_nowhere(engine, researcher, page, program, caplog):
    form = {"budget": "20", "token": TOKEN, "workspace": "workspace1"}
    await researcher.post(f"{page}/connection", data=form)
    shown = [(await researcher.get(page)).text, (await program("GET")).text]
    shown.append((await researcher.get(page.replace("/payments", "/log"))).text)
    shown.append(str(await fetch_rows(engine, "SELECT * FROM payment_accounts")))
    shown.append(str(await fetch_rows(engine, "SELECT before, after FROM audit_log")))
    refused = await researcher.post(f"{page}/connection", data=form | {"budget": "no"})
    assert not any(TOKEN in text for text in (*shown, refused.text, caplog.text))
    assert "not an amount" in words(refused)
    stored = await fetch_value(engine, "SELECT token FROM payment_accounts")
    assert TokenCipher(KEY).decrypt_or_none(bytes(stored)) == TOKEN
    await researcher.post(f"{page}/disconnect")
    assert await fetch_value(engine, "SELECT token FROM payment_accounts") is None
    assert (await audit_lines(engine))[-1] == "payments.disconnected"


async def test_a_token_of_the_environment_is_named_and_not_stored(engine, researcher, page, study, monkeypatch):
    reply = await researcher.post(f"{page}/connection", data={"budget": "20", "token_variable": "DATABASE_URL"})
    assert "no environment variable of this name" in words(reply)
    monkeypatch.setenv("EASEL_SERVICE_TOKEN_LAB", TOKEN)
    await researcher.post(
        f"{page}/connection",
        data={"budget": "20", "workspace": "workspace1", "token_variable": "EASEL_SERVICE_TOKEN_LAB"},
    )
    assert await fetch_rows(engine, "SELECT token, token_variable FROM payment_accounts") == [
        (None, "EASEL_SERVICE_TOKEN_LAB")
    ]
    await study.add(("A1", 425))
    await study.send()
    assert await study.states() == ["sent"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"token": "wrong-token"}, "token_refused"),
        ({"token": "a b"}, "token_unreadable"),
        ({"token": TOKEN, "token_variable": "EASEL_SERVICE_TOKEN_LAB"}, "token_twice"),
        ({"token": TOKEN, "workspace": "a/../b"}, "service_id_unreadable"),
        ({"budget": 0}, "invalid"),
    ],
)
async def test_a_connection_that_cannot_work_is_refused(program, body, code):
    reply = await program("POST", "/connection", json={"budget": 100, "workspace": "workspace1"} | body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, code)


async def test_a_workspace_in_another_currency_is_refused(engine, program, study):
    await execute_sql(engine, "UPDATE campaigns SET currency = 'EUR'")
    reply = await program("POST", "/connection", json={"budget": 100, "token": TOKEN, "workspace": "workspace1"})
    assert reply.json()["error"]["code"] == "currency_differs"
    reply = await program("POST", "/connection", json={"budget": 100, "workspace": "workspace1"})
    assert reply.json()["error"]["code"] == "currency_fixed"


async def test_a_workspace_that_is_entered_after_the_token_is_checked_with_it(engine, program, study, prolific):
    for currency, code in (("EUR", "currency_differs"), ("", "currency_unknown")):
        prolific.currency_by_workspace["workspace2"] = currency
        reply = await program("POST", "/connection", json={"budget": 100, "workspace": "workspace2"})
        assert reply.json()["error"]["code"] == code
    assert await fetch_value(engine, "SELECT workspace FROM payment_accounts") == "workspace1"
    prolific.currency_by_workspace["workspace2"] = "GBP"
    assert (await program("POST", "/connection", json={"budget": 100, "workspace": "workspace2"})).status_code == 200


async def test_a_budget_is_changed_while_the_service_is_down(app, program, study):
    app.state.payment_connector = connector_to("http://127.0.0.1:1/api/v1")
    reply = await program("POST", "/connection", json={"budget": 100, "workspace": "workspace1"})
    assert reply.status_code == 200


@pytest.mark.parametrize("body", [{"token": TOKEN}, {}])
async def test_a_token_needs_the_workspace_that_pays(program, study, body):
    reply = await program("POST", "/connection", json={"budget": 100} | body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "workspace_missing")


async def test_a_budget_needs_no_workspace_without_a_token(engine, program, study):
    await execute_sql(engine, "UPDATE payment_accounts SET token = NULL")
    assert (await program("POST", "/connection", json={"budget": 100})).status_code == 200


async def test_a_workspace_that_was_not_checked_is_not_stored_for_a_token_of_another_person(engine, program, study):
    token = await fetch_value(engine, "SELECT token FROM payment_accounts")
    await execute_sql(engine, "UPDATE payment_accounts SET token = NULL, workspace = ''")
    async with engine.begin() as other:  # it is waited for
        sql = text("UPDATE payment_accounts SET token = :token, workspace = 'workspace1'")
        await other.execute(sql, {"token": token})
        stored = asyncio.create_task(program("POST", "/connection", json={"budget": 100, "workspace": "workspace2"}))
        await wait_until(engine, requests_are_waiting_sql(1))
    reply = await stored
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "connection_changed")
    assert await fetch_value(engine, "SELECT workspace FROM payment_accounts") == "workspace1"


async def test_a_token_of_the_environment_is_stripped_and_checked(engine, program, study, prolific, monkeypatch):
    monkeypatch.setenv("EASEL_SERVICE_TOKEN_LAB", f" {TOKEN}\n")
    body = {"budget": 1_000, "workspace": "workspace1", "token_variable": "EASEL_SERVICE_TOKEN_LAB"}
    assert (await program("POST", "/connection", json=body)).status_code == 200
    await study.add(("A1", 425))
    await study.send()
    assert await study.states() == ["sent"]
    logged = str(await fetch_rows(engine, "SELECT before, after FROM audit_log"))
    assert "EASEL_SERVICE_TOKEN" not in logged
    assert "environment" in logged
    monkeypatch.setenv("EASEL_SERVICE_TOKEN_LAB", "two words")
    reply = await program("POST", "/connection", json=body)
    assert reply.json()["error"]["code"] == "token_unreadable"


def test_a_token_is_not_part_of_the_settings_text():
    assert TOKEN not in repr(ConnectionSettings(token=TOKEN, budget=100))


async def test_programs_that_read_ids_are_logged_like_downloads(engine, program, study):
    await program("GET")
    await program("GET", part="submissions")
    lines = await fetch_rows(engine, "SELECT action, about FROM audit_log ORDER BY id DESC LIMIT 2")
    assert lines == [("people.downloaded", "submissions"), ("people.downloaded", "payments")]


async def test_a_service_that_cannot_be_reached_is_told(app, program):
    app.state.payment_connector = connector_to("http://127.0.0.1:1/api/v1")
    reply = await program("POST", "/connection", json={"budget": 100, "token": TOKEN, "workspace": "workspace1"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "service_unavailable")


async def test_a_token_under_another_server_key_is_asked_for_again(engine, researcher, study, page):
    await execute_sql(engine, "UPDATE payment_accounts SET token = 'x'")
    await study.add(("A1", 425))
    await study.send()
    assert await study.states() == ["prepared"]
    assert "The token cannot be read" in words(await researcher.get(page))


async def test_programs_add_send_and_decide(engine, program, study, prolific):
    bonuses = {"bonuses": [{"id": "A1", "amount": 425, "reason": "careful"}], "key": "monday"}
    assert (await program("POST", json=bonuses)).json() == {"added": 1}
    assert (await program("POST", json=bonuses)).json() == {"added": 0}
    assert (await program("POST", "/send")).status_code == 202
    await study.work_again()
    ledger = (await program("GET")).json()
    assert (ledger["left"], ledger["budget_covers_rewards"]) == (1_000 - 425 - 2 * 90, True)
    assert (ledger["amounts"], ledger["rewards"]) == ({"sent": 425, "prepared": 180}, {"prepared": 180})
    (bonus,) = [payment for payment in ledger["payments"] if payment["kind"] == "bonus"]
    assert bonus["state"] == "sent"
    payment = bonus["id"]
    reply = await program("POST", f"/{payment}/decision", json={"decision": "again"})
    assert reply.json()["error"]["code"] == "payment_decided"
    assert (await program("POST", "/999/decision", json={"decision": "sent"})).status_code == 404
    too_much = await program("POST", json={"bonuses": [{"id": "A1", "amount": 396}]})
    assert too_much.json()["error"]["code"] == "over_budget"


async def test_without_a_token_nothing_can_be_told_to_send(engine, program, study):
    await execute_sql(engine, "UPDATE payment_accounts SET token = NULL")
    await study.add(("A1", 425))
    assert (await program("POST", "/send")).json()["error"]["code"] == "no_token"


async def test_viewers_see_no_payments(app, study, page):
    async with http_client(app) as viewer:
        await log_in_with_role(app, viewer, "guest", "viewer", study.campaign)
        assert (await viewer.get(page)).status_code == 403
        assert (await viewer.post(f"{page}/send")).status_code == 403


async def test_two_managers_who_press_send_pay_once(engine, study, prolific):
    await study.add(("A1", 425))
    for _ in range(2):
        async with engine.begin() as connection:
            await request_sending_of_prepared_payments_or_refuse(connection, study.campaign, now=study.clock.now)
        await study.work.pay_and_reconcile_due_campaigns()
    assert prolific.paid_by_submission() == {"s1": [425]}


@pytest.mark.parametrize(
    ("recipient", "reason"),
    [
        ("A\x001", "has an invisible character, U+0000"),
        ("A\ufeff1", "has an invisible character, U+FEFF"),
        ("\u200bA1", "has an invisible character, U+200B"),
        ("", "is empty"),
        ("A;1", "has a semicolon"),
        ("A 1", "has a blank"),
    ],
)
async def test_an_id_that_cannot_be_one_is_explained_and_the_list_stays(researcher, page, study, recipient, reason):
    reply = await researcher.post(f"{page}/bonuses", data={"bonuses": f"A1,4.25\n{recipient},1"})
    assert f"of bonus 2 cannot be used: it {reason}" in words(reply)
    assert "A1,4.25" in reply.text
    assert await study.states() == []


async def test_a_list_may_begin_with_the_mark_of_its_encoding(researcher, page, study):
    await researcher.post(f"{page}/bonuses", data={"bonuses": "\ufeffA1,4.25"})
    assert await study.states() == ["prepared"]


@pytest.mark.parametrize(
    ("path", "body"), [("/connection", {"budget": True}), ("", {"bonuses": [{"id": "A1", "amount": True}]})]
)
async def test_true_is_no_amount_of_money(program, path, body, study):
    assert (await program("POST", path, json=body)).status_code == 422
    assert await study.states() == []


async def test_the_page_says_what_the_budget_covers(engine, researcher, page, study, prolific):
    prolific.add("without", "APPROVED", person="a stranger")
    await study.work_again(minutes=10)
    shown = words(await researcher.get(page))
    assert "Rewards waiting for review £1.80" in shown
    assert "covers rewards and bonuses together" in shown
    assert "1 paid submission is not in these amounts" in shown
    await execute_sql(engine, "UPDATE payment_accounts SET budget_covers_rewards = false")
    assert "covers bonuses alone. Save it again" in words(await researcher.get(page))


async def test_the_page_warns_of_a_bonus_by_hand_where_a_person_decides(engine, researcher, page, study, prolific):
    await study.add(("A1", 425))
    prolific.trouble = lambda call: PlainTextResponse("", 502) if "/pay/" in call else None
    await study.send()
    prolific.pay_by_hand("s1", 300)
    await study.work_again(minutes=40)
    assert "A bonus of £4.25 that someone paid A1 on Prolific’s own page meanwhile" in words(await researcher.get(page))
