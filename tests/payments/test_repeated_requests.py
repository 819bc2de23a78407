"""A request that comes twice, or after something changed, neither loses bonuses nor sends what nobody saw."""

import re

import pytest

from app.errors import Conflict, Invalid
from app.payments.by_hand import claim_payments_to_make_by_hand
from app.payments.send_request import ShownPayments, request_sending_of_prepared_payments_or_refuse
from tests.annotation.hits.campaigns import create_annotator, execute_sql, fetch_rows, fetch_value
from tests.payments.studies import create_study, words


@pytest.fixture
async def study(app, prolific):
    """Its connection is also the application's."""
    study = await create_study(app.state.database, prolific, budget=1_000)
    app.state.payment_connector = study.connector
    return study


@pytest.fixture
def page(study):
    return f"/admin/campaigns/{study.campaign.slug}/payments"


async def test_an_edited_list_is_added_although_the_form_was_sent_before(researcher, page, study):
    for bonuses in ("A1,1", "A2,2"):
        form = {"bonuses": bonuses, "request": "the same"}
        reply = await researcher.post(f"{page}/bonuses", data=form, follow_redirects=True)
        assert "Bonuses added" in words(reply)
    assert await study.states() == ["prepared", "prepared"]


async def test_a_list_that_was_added_before_says_so(researcher, page, study):
    form = {"bonuses": "A1,1", "request": "the same"}
    await researcher.post(f"{page}/bonuses", data=form)
    reply = await researcher.post(f"{page}/bonuses", data=form, follow_redirects=True)
    assert "were added before" in words(reply)
    assert await study.states() == ["prepared"]


async def test_programs_are_told_that_a_key_has_other_bonuses(program, study):
    await program("POST", json={"bonuses": [{"id": "A1", "amount": 1}], "key": "monday"})
    reply = await program("POST", json={"bonuses": [{"id": "A1", "amount": 2}], "key": "monday"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "request_key_used")
    assert await study.states() == ["prepared"]


async def test_the_bonus_for_everyone_counts_once_although_others_finish_meanwhile(researcher, page, study):
    form = {"amount": "1", "reason": "thanks", "request": "the same"}
    await execute_sql(study.engine, "UPDATE assignments SET completed_at = NULL WHERE external_id = 's2'")
    await researcher.post(f"{page}/everyone", data=form)
    await execute_sql(study.engine, "UPDATE assignments SET completed_at = now()")
    reply = await researcher.post(f"{page}/everyone", data=form, follow_redirects=True)
    assert "were added before" in words(reply)
    assert await study.states() == ["prepared"]


async def test_a_bonus_for_everyone_needs_somebody_who_finished(researcher, page, study):
    await execute_sql(study.engine, "UPDATE assignments SET completed_at = NULL")
    reply = await researcher.post(f"{page}/everyone", data={"amount": "1"})
    assert "Nobody has finished yet" in words(reply)


async def test_what_a_colleague_added_after_the_page_was_loaded_is_not_sent(researcher, page, study, prolific):
    await study.add(("A1", 100))
    shown = dict(re.findall(r'name="(through|total)" value="(\d+)"', (await researcher.get(page)).text))
    await study.add(("A2", 200), key="of a colleague")
    reply = await researcher.post(f"{page}/send", data=shown)
    assert "have changed since you loaded the page" in words(reply)
    await study.work_again()
    assert prolific.paid == []


async def test_programs_send_what_they_saw(program, study):
    await study.add(("A1", 100))
    refused = await program("POST", "/send", json={"through": 1, "amount": 99})
    details = refused.json()["error"]
    assert details["code"] == "payments_changed"
    async with study.engine.begin() as connection:
        payment = await fetch_value(study.engine, "SELECT id FROM payments WHERE kind = 'bonus'")
        await request_sending_of_prepared_payments_or_refuse(
            connection, study.campaign, shown_payments=ShownPayments(payment, 100), now=study.clock.now
        )
    await study.work.pay_and_reconcile_due_campaigns()
    assert await study.states() == ["sent"]


async def test_a_name_that_a_visitor_brought_as_an_id_pays_nobody(study):
    pseudonym = await fetch_value(study.engine, "SELECT pseudonym FROM annotators WHERE worker_id = 'p1'")
    await create_annotator(study.engine, study.campaign, pseudonym, "prolific", assignment="s9")
    with pytest.raises(Invalid) as refused:
        await study.add((pseudonym, 100))
    assert refused.value.code == "recipient_ambiguous"
    assert await study.add(("s1", 100)) == 1


async def test_everyone_is_paid_although_a_visitor_brought_a_name_of_another(researcher, page, study):
    await create_annotator(study.engine, study.campaign, "A1", "prolific", assignment="s9")
    await researcher.post(f"{page}/everyone", data={"amount": "1"})
    assert await fetch_rows(study.engine, "SELECT submission FROM payments ORDER BY id") == [
        ("s1",),
        ("s2",),
    ]


async def test_each_study_has_a_list_of_its_own_that_can_be_downloaded_again(researcher, page, study, prolific):
    await execute_sql(study.engine, "UPDATE payment_accounts SET other_studies = '{study-2}'")
    prolific.add("t1", study="study-2", person="p1")
    await create_annotator(study.engine, study.campaign, "p1", "prolific", assignment="t1", STUDY_ID="study-2")
    await study.add(("t1", 200), ("s2", 100))
    assert (await researcher.post(f"{page}/by-hand", data={"study": "study-2"})).text == "t1,2.00\n"
    assert await study.states() == ["unknown", "prepared"]
    batch = await fetch_value(study.engine, "SELECT batch FROM payments WHERE kind = 'bonus' AND state = 'unknown'")
    assert "again" in words(await researcher.get(page))
    assert (await researcher.post(f"{page}/by-hand", data={"batch": batch})).text == "t1,2.00\n"


async def test_a_payment_that_equals_an_unclear_one_is_not_paid_by_hand(study):
    await study.add(("A1", 100), ("A1", 100), ("A1", 50))
    await execute_sql(study.engine, "UPDATE payments SET paid_before = 3")
    await execute_sql(study.engine, "UPDATE payments SET state = 'unknown', sending_at = now() WHERE line = 1")
    async with study.engine.begin() as connection:
        rows = await claim_payments_to_make_by_hand(connection, study.campaign, "study-1", now=study.clock.now)
    assert [row.amount for row in rows] == [50]
    assert await fetch_value(study.engine, "SELECT paid_before FROM payments WHERE amount = 50") is None


async def test_without_the_token_no_payment_stays_in_the_middle_of_sending(researcher, page, study):
    await study.add(("A1", 100), ("A2", 100))
    await execute_sql(study.engine, "UPDATE payments SET state = 'sending', batch = 'b', sending_at = now()")
    await execute_sql(study.engine, "UPDATE payments SET bulk_id = 'bulk-1' WHERE submission = 's2'")
    await researcher.post(f"{page}/disconnect")
    assert await study.states() == ["prepared", "unknown"]


async def test_all_failed_payments_are_sent_again_within_the_budget(program, study, prolific):
    await study.add(("A1", 400), ("A2", 400))
    prolific.missing_for_bonuses = {"s1", "s2"}
    await study.send()
    assert await study.states() == ["failed", "failed"]
    prolific.missing_for_bonuses = set()
    await study.add(("A1", 300), key="list 2")
    assert (await program("POST", "/retry")).json()["error"]["code"] == "over_budget"
    assert await study.states() == ["failed", "failed", "prepared"]
    await execute_sql(study.engine, "UPDATE payment_accounts SET budget = 5000")
    assert (await program("POST", "/retry")).status_code == 200
    await study.work_again()
    assert await study.states() == ["sent", "sent", "prepared"]
    with pytest.raises(Conflict):
        async with study.engine.begin() as connection:
            await claim_payments_to_make_by_hand(connection, study.campaign, "study-9", now=study.clock.now)


async def test_a_campaign_with_unsettled_payments_is_not_deleted(researcher, page, study):
    await execute_sql(study.engine, "UPDATE campaigns SET status = 'finished'")
    await study.add(("A1", 100))
    reply = await researcher.post(page.replace("/payments", "/delete"))
    assert "Send or cancel them" in words(reply)
    assert await study.states() == ["prepared"]


async def test_share_leads_managers_to_payments_before_anyone_has_come(researcher, study):
    shown = await researcher.get(f"/admin/campaigns/{study.campaign.slug}/share")
    assert f'href="/admin/campaigns/{study.campaign.slug}/study"' in shown.text
    assert f'href="/admin/campaigns/{study.campaign.slug}/payments"' in shown.text
