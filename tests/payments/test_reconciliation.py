"""Comparison of the platform's submissions with what is here, and what follows from it."""

import asyncio
from dataclasses import replace

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse
from sqlalchemy import text

from app.errors import Conflict
from app.payments import payment_work
from app.payments.connections import ConnectionSettings, check_and_store_payment_settings_or_refuse
from app.payments.review import list_submissions, store_review_settings_or_refuse
from app.privacy.erasure_list import person_hash
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    try_to_lease_hit,
    wait_until,
)
from tests.payments.fake_prolific import TOKEN
from tests.payments.studies import create_study


async def set_review(study, *, approves=False, of="study-1", hook_secret="", forgets_waiting=False):
    async with study.engine.begin() as connection:
        await store_review_settings_or_refuse(
            connection,
            study.connector,
            study.campaign,
            study=of,
            approves=approves,
            hook_secret=hook_secret,
            forgets_waiting=forgets_waiting,
            now=study.clock.now,
        )


async def findings(study):
    async with study.engine.begin() as connection:
        return [(row.external_id, row.finding) for row in await list_submissions(connection, study.campaign.id)]


async def test_what_differs_comes_first(engine, prolific):
    study = await create_study(engine, prolific, people=7)
    statuses = ["APPROVED", "AWAITING REVIEW", "RETURNED", "TIMED-OUT", "ACTIVE", "REJECTED", "AWAITING REVIEW"]
    for number, status in enumerate(statuses, 1):
        prolific.submissions[f"s{number}"]["status"] = status
    await execute_sql(engine, "UPDATE annotators SET barred = 'held' WHERE worker_id = 'p7'")
    prolific.add("without", person="someone who never came")
    await create_annotator(engine, study.campaign, "p8", "prolific", assignment="s8", STUDY_ID="study-1")
    prolific.add("s8", person="p8")
    await study.work_again(minutes=10)
    assert await findings(study) == [
        ("without", "missing_here"),
        ("s8", "unfinished_here"),
        ("s3", "ended_there"),
        ("s4", "ended_there"),
        ("s6", "rejected_there"),
        ("s5", "open_there"),
        ("s7", "held"),
        ("s2", "approvable"),
        ("s1", "agrees"),
    ]
    assert "203.0.113.9" not in str(await fetch_rows(engine, "SELECT * FROM submissions"))


@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT", "REJECTED", "SCREENED OUT"])
async def test_the_open_hit_of_an_ended_submission_goes_to_others(engine, prolific, status):
    study = await create_study(engine, prolific, people=0)
    prolific.add("s1", status, person="p1")
    annotator = await create_annotator(engine, study.campaign, "p1", "prolific", assignment="s1", STUDY_ID="study-1")
    hit = await try_to_lease_hit(engine, annotator)
    await study.work_again(minutes=10)
    assert await fetch_value(engine, "SELECT expires_at <= now() FROM hits WHERE id = :id", id=hit.id)


async def test_the_open_hit_of_an_active_submission_stays(engine, prolific):
    study = await create_study(engine, prolific, people=0)
    prolific.add("s1", "ACTIVE", person="p1")
    annotator = await create_annotator(engine, study.campaign, "p1", "prolific", assignment="s1", STUDY_ID="study-1")
    hit = await try_to_lease_hit(engine, annotator)
    await study.work_again(minutes=10)
    assert await fetch_value(engine, "SELECT expires_at > now() FROM hits WHERE id = :id", id=hit.id)


async def test_a_person_who_returned_and_takes_the_study_again_gets_a_hit(engine, prolific):
    study = await create_study(engine, prolific, people=0)
    prolific.add("s1", "RETURNED", person="p1")
    first = await create_annotator(engine, study.campaign, "p1", "prolific", assignment="s1", STUDY_ID="study-1")
    await try_to_lease_hit(engine, first)
    prolific.add("s2", "ACTIVE", person="p1")
    again = await create_annotator(engine, study.campaign, "p1", "prolific", assignment="s2", STUDY_ID="study-1")
    await study.work_again(minutes=10)
    work = await find_or_lease_next_hit(engine, again)
    assert work.hit is not None
    await study.work_again(minutes=10)
    assert await fetch_value(engine, "SELECT expires_at > now() FROM hits WHERE id = :id", id=work.hit.id)


async def test_complete_submissions_are_approved_if_the_campaign_says_so(engine, prolific):
    study = await create_study(engine, prolific, people=3)
    await execute_sql(engine, "UPDATE annotators SET barred = 'held' WHERE worker_id = 'p2'")
    await execute_sql(engine, "UPDATE assignments SET completed_at = NULL WHERE external_id = 's3'")
    await study.work_again(minutes=10)
    assert {row["status"] for row in prolific.submissions.values()} == {"AWAITING REVIEW"}
    await set_review(study, approves=True)
    await study.work_again(minutes=10)
    assert [prolific.submissions[f"s{number}"]["status"] for number in (1, 2, 3)] == [
        "APPROVED",
        "AWAITING REVIEW",
        "AWAITING REVIEW",
    ]
    assert await findings(study) == [("s3", "unfinished_here"), ("s2", "held"), ("s1", "agrees")]


async def test_a_refused_approval_is_told_and_not_tried_again(engine, prolific):
    study = await create_study(engine, prolific)
    await set_review(study, approves=True)
    prolific.trouble = lambda call: JSONResponse({"error": {"detail": "no money"}}, 400) if "s1/tr" in call else None
    for _ in range(2):
        await study.work_again(minutes=10)
    assert sum("s1/transition" in call for call in prolific.calls) == 1
    assert "no money" in await fetch_value(engine, "SELECT problem FROM submissions WHERE external_id = 's1'")
    assert prolific.submissions["s2"]["status"] == "APPROVED"


async def test_an_approval_without_a_reply_is_seen_at_the_next_look(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await set_review(study, approves=True)
    prolific.after = lambda call: PlainTextResponse("", 504) if "transition" in call else None
    await study.work_again(minutes=10)
    assert await findings(study) == [("s1", "approvable")]
    await study.work_again(minutes=10)
    assert await findings(study) == [("s1", "agrees")]
    assert sum("transition" in call for call in prolific.calls) == 1


async def test_a_study_that_was_deleted_is_told(engine, prolific):
    study = await create_study(engine, prolific)
    await set_review(study, of="gone")
    await study.work_again(minutes=10)
    assert "(404)" in await fetch_value(engine, "SELECT problem FROM payment_accounts")


async def test_a_study_that_only_an_annotators_link_names_is_neither_read_nor_approved(engine, prolific):
    study = await create_study(engine, prolific)
    await create_annotator(engine, study.campaign, "p3", "prolific", assignment="s3", STUDY_ID="another-study")
    await execute_sql(engine, "UPDATE assignments SET completed_at = now()")
    prolific.add("s3", study="another-study", person="p3")
    await set_review(study, approves=True)
    await study.work_again(minutes=10)
    assert not any("another-study" in call for call in prolific.calls)
    assert prolific.submissions["s3"]["status"] == "AWAITING REVIEW"
    assert prolific.submissions["s1"]["status"] == "APPROVED"


async def test_submissions_of_a_study_that_is_no_longer_entered_are_forgotten(engine, prolific):
    study = await create_study(engine, prolific)
    await study.work_again(minutes=10)
    assert await findings(study) == [("s1", "approvable"), ("s2", "approvable")]
    with pytest.raises(Conflict) as refused:
        await set_review(study, of="study-2", approves=True)
    assert (refused.value.code, refused.value.details["waiting"]) == ("submissions_wait", 2)
    assert await findings(study) == [("s1", "approvable"), ("s2", "approvable")]
    await set_review(study, of="study-2", approves=True, forgets_waiting=True)
    assert await findings(study) == []
    await study.work_again(minutes=10)
    assert prolific.submissions["s1"]["status"] == "AWAITING REVIEW"


async def test_several_studies_of_a_campaign_are_read(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    prolific.add("t1", study="study-2")
    await set_review(study, of="study-1, study-2 study-1")
    await study.work_again(minutes=10)
    assert await findings(study) == [("t1", "missing_here"), ("s1", "approvable")]


async def test_a_study_that_cannot_be_read_does_not_hold_up_the_others(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.submissions["s2"]["status"] = "RETURNED"
    await execute_sql(engine, "UPDATE assignments SET completed_at = NULL WHERE external_id = 's2'")
    await set_review(study, of="gone study-0 study-1", approves=True)
    prolific.trouble = lambda call: PlainTextResponse("", 502) if "study-0" in call else None
    await study.work_again(minutes=10)
    problem = await fetch_value(engine, "SELECT problem FROM payment_accounts")
    assert "gone: " in problem
    assert "(404)" in problem
    assert "study-0: " in problem
    assert prolific.submissions["s1"]["status"] == "APPROVED"
    assert await fetch_value(engine, "SELECT status FROM submissions WHERE external_id = 's2'") == "returned"


async def test_a_problem_of_a_submission_ends_when_its_status_changes(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await set_review(study, approves=True)
    prolific.trouble = lambda call: JSONResponse({"error": {"detail": "no"}}, 400) if "s1/tr" in call else None
    await study.work_again(minutes=10)
    assert "no" in await fetch_value(engine, "SELECT problem FROM submissions")
    prolific.submissions["s1"]["status"] = "APPROVED"
    await study.work_again(minutes=10)
    assert await fetch_rows(engine, "SELECT status, problem FROM submissions") == [("approved", "")]


async def test_a_balance_that_is_too_low_stops_approvals_until_the_next_turn(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.studies["study-1"] = {"id": "study-1", "status": "ACTIVE", "reward": 90, "total_available_places": 2}
    await set_review(study, approves=True)
    prolific.balance = 80
    prolific.trouble = lambda call: PlainTextResponse("not enough money", 400) if "/transition" in call else None
    await study.work_again(minutes=10)
    assert sum("/transition" in call for call in prolific.calls) == 1
    assert await fetch_rows(engine, "SELECT DISTINCT problem FROM submissions") == [("",)]
    assert "not enough money" in await fetch_value(engine, "SELECT problem FROM payment_accounts")
    prolific.trouble = lambda _call: None
    await study.work_again(minutes=10)
    assert {row["status"] for row in prolific.submissions.values()} == {"APPROVED"}


async def test_a_person_who_approves_while_a_refused_approval_is_under_way_keeps_the_last_word(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await set_review(study, approves=True)

    def approved_by_another(call):
        if "s1/transition" not in call:
            return None
        prolific.submissions["s1"]["status"] = "APPROVED"
        return JSONResponse({"error": {"detail": "The submission is APPROVED"}}, 400)

    prolific.trouble = approved_by_another
    await study.work_again(minutes=10)
    assert await fetch_rows(engine, "SELECT status, problem FROM submissions") == [("approved", "")]


async def test_a_submission_that_the_service_no_longer_lists_is_forgotten(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.add("without", person="someone who never came")
    await study.work_again(minutes=10)
    del prolific.submissions["without"]
    await study.work_again(minutes=10)
    assert await findings(study) == [("s1", "approvable"), ("s2", "approvable")]


async def test_ids_of_people_who_never_came_go_with_the_identifiers(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.add("without", person="someone who never came")
    await study.work_again(minutes=10)
    sql = "INSERT INTO retention_runs (campaign_id, kind, ran_at, counts) VALUES (:id, 'identifiers', now(), '{}')"
    await execute_sql(engine, sql, id=study.campaign.id)
    await study.work_again(minutes=10)
    assert "without" not in [name for name, _ in await findings(study)]


async def test_the_study_of_the_settings_is_read_before_anyone_came(engine, prolific):
    study = await create_study(engine, prolific, people=0)
    prolific.add("t1", study="study-2")
    await set_review(study, of="study-2")
    await study.work_again(minutes=10)
    assert await findings(study) == [("t1", "missing_here")]


async def test_an_erased_person_does_not_come_back_and_keeps_amounts_alone(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425), ("A1", 100), reason="typed by a researcher")
    await study.send()
    await study.add(("A1", 50), key="list 2")
    await erase_person_and_return_erasure(engine, study.campaign.slug, "A1", "anonymise", now=study.clock.now)
    await study.send()
    await study.work_again(minutes=10)
    facts = "amount, state, reason, left(submission, 7), settled_at IS NULL"
    rows = await fetch_rows(engine, f"SELECT {facts} FROM payments WHERE kind = 'bonus' ORDER BY id")
    assert rows == [
        (425, "sent", "erased", "erased:", False),
        (100, "sent", "erased", "erased:", False),
        (50, "cancelled", "erased", "erased:", False),
    ]
    stored = str(await fetch_rows(engine, "SELECT * FROM submissions")) + str(
        await fetch_rows(engine, "SELECT * FROM payments")
    )
    assert "'s1'" not in stored
    assert "p1" not in stored
    assert prolific.paid_by_submission() == {"s1": [425, 100]}


async def test_two_processes_take_a_campaign_once(engine, prolific):
    study = await create_study(engine, prolific)
    taken = await study.work.claim_due_account_or_none()
    assert taken is not None
    assert await study.work.claim_due_account_or_none() is None
    await execute_sql(engine, "UPDATE payment_accounts SET due_at = :now", now=study.clock.now)  # such as a notice
    assert await study.work.claim_due_account_or_none() is None
    await study.work.pay_and_reconcile_account(taken)
    assert await study.work.claim_due_account_or_none() is not None


async def test_a_campaign_whose_process_was_killed_is_taken_after_the_deadline(engine, prolific):
    study = await create_study(engine, prolific)
    assert await study.work.claim_due_account_or_none() is not None
    study.clock.advance(minutes=10)
    assert await study.work.claim_due_account_or_none() is not None


async def test_a_turn_without_time_left_goes_on_in_the_next(engine, prolific, monkeypatch):
    study = await create_study(engine, prolific)
    monkeypatch.setattr(payment_work, "TIME_OF_STEP_SECONDS", 0.0)
    account = await study.work.claim_due_account_or_none()
    assert account is not None
    await study.work.pay_and_reconcile_account(account)
    assert await fetch_rows(engine, "SELECT due_at <= :now, problem FROM payment_accounts", now=study.clock.now) == [
        (True, "")
    ]


async def test_a_payment_that_fails_does_not_hold_up_submissions(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = lambda call: PlainTextResponse("", 502) if call == "GET /submissions/s1/" else None
    await study.send()
    assert await findings(study) == [("s1", "approvable"), ("s2", "approvable")]
    assert "502" in await fetch_value(engine, "SELECT problem FROM payments WHERE kind = 'bonus'")


async def test_an_erasure_while_submissions_are_read_leaves_no_id(engine, prolific):
    study = await create_study(engine, prolific)
    async with engine.begin() as erasing:  # the reading waits for it
        await erasing.execute(text("SELECT 1 FROM annotators WHERE worker_id = 'p1' FOR UPDATE"))
        reading = asyncio.create_task(study.work_again(minutes=10))
        await wait_until(engine, requests_are_waiting_sql(1))
        hashed = person_hash(study.campaign.link_key, "prolific", "p1")
        await erasing.execute(text("UPDATE annotators SET worker_id = 'erased:1' WHERE worker_id = 'p1'"))
        sql = """INSERT INTO erasures (campaign_id, receipt, annotator_id, rule, requested_by, requested_at, due_at,
            identifiers_erased_at, counts, person_hashes)
            SELECT campaign_id, 'R', id, 'anonymise', 'ada', now(), now(), now(), '{}', ARRAY[CAST(:hash AS bytea)]
            FROM annotators WHERE worker_id = 'erased:1'"""
        await erasing.execute(text(sql), {"hash": hashed})
    await reading
    assert await fetch_rows(engine, "SELECT external_id FROM submissions") == [("s2",)]


async def test_a_retention_that_begins_while_submissions_are_read_leaves_no_id(engine, prolific):
    study = await create_study(engine, prolific)
    async with engine.begin() as retention:
        await retention.execute(text("SELECT 1 FROM campaigns FOR UPDATE"))
        reading = asyncio.create_task(study.work_again(minutes=10))
        await wait_until(engine, requests_are_waiting_sql(1))
        sql = "INSERT INTO retention_runs (campaign_id, kind, ran_at, counts) VALUES (:id, 'identifiers', now(), '{}')"
        await retention.execute(text(sql), {"id": study.campaign.id})
    await reading
    assert await fetch_rows(engine, "SELECT external_id FROM submissions") == []


async def test_a_study_that_another_campaign_of_the_workspace_reads_is_refused(engine, prolific):
    study = await create_study(engine, prolific)
    other = await create_running_campaign(engine, name="Other", currency="GBP")
    chosen = ConnectionSettings(token=TOKEN, workspace="workspace1", budget=1_000)
    await check_and_store_payment_settings_or_refuse(engine, study.connector, other, chosen, now=study.clock.now)
    second = replace(study, campaign=other)
    with pytest.raises(Conflict) as refused:
        await set_review(second, of="study-2 study-1")
    assert refused.value.code == "study_taken"
    assert "Another campaign already reads the study study-1" in refused.value.message
    await set_review(second, of="study-2")
    await set_review(study, of="study-1")  # which stays


async def test_a_study_that_two_campaigns_read_is_a_problem_of_both(engine, prolific):
    study = await create_study(engine, prolific)
    other = await create_running_campaign(engine, name="Other", currency="GBP")
    chosen = ConnectionSettings(budget=1_000)
    await check_and_store_payment_settings_or_refuse(engine, study.connector, other, chosen, now=study.clock.now)
    await set_review(replace(study, campaign=other))  # before it has a token
    chosen = ConnectionSettings(token=TOKEN, workspace="workspace1", budget=1_000)
    await check_and_store_payment_settings_or_refuse(engine, study.connector, other, chosen, now=study.clock.now)
    await study.work_again(minutes=10)
    for (problem,) in await fetch_rows(engine, "SELECT problem FROM payment_accounts"):
        assert "Another campaign reads study study-1, too" in problem


async def test_no_campaign_approves_by_itself_in_a_study_that_two_campaigns_read(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    other = await create_running_campaign(engine, name="Other", currency="GBP")
    chosen = ConnectionSettings(budget=1_000)
    await check_and_store_payment_settings_or_refuse(engine, study.connector, other, chosen, now=study.clock.now)
    await set_review(replace(study, campaign=other))  # before it has a token
    chosen = ConnectionSettings(token=TOKEN, workspace="workspace1", budget=1_000)
    await check_and_store_payment_settings_or_refuse(engine, study.connector, other, chosen, now=study.clock.now)
    await set_review(study, approves=True)
    await study.work_again(minutes=10)
    assert prolific.submissions["s1"]["status"] == "AWAITING REVIEW"
    await set_review(replace(study, campaign=other), of="")
    await study.work_again(minutes=10)
    assert prolific.submissions["s1"]["status"] == "APPROVED"


async def test_strangers_and_settled_submissions_do_not_hold_a_study(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    prolific.add("t1", study="study-2", person="stranger")
    prolific.submissions["s1"]["status"] = "APPROVED"
    await set_review(study, of="study-1 study-2")
    await study.work_again(minutes=10)
    await set_review(study, of="study-3")
    assert await findings(study) == []
