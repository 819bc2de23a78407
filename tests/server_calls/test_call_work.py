"""When a visit ends, Easel's server calls the platform's: once, and again only if nothing can be counted twice."""

import asyncio
import json
import logging
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event, text

from app.server_calls import call_work, http_call
from app.server_calls.call_work import MAX_TRIES, TAKE_DUE_CALLS, ServerCallWork
from app.server_calls.ledger import COUNT_CALLS_TO_DECIDE, REPEAT_CALLS
from app.server_calls.restored_calls import hold_server_calls_after_restore_and_count_them
from tests.annotation.hits.campaigns import (
    create_annotator,
    execute_sql,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)
from tests.server_calls.visits import change_crowd_settings, create_study, let_person_finish, make_work

LONG = {"minutes": 400}

MORE_ASSIGNMENTS = """
    INSERT INTO assignments OVERRIDING SYSTEM VALUE SELECT another.* FROM assignments s, generate_series(1, 2000) AS n,
        jsonb_populate_record(s, jsonb_build_object('id', s.id + n, 'external_id', 'x' || n)) AS another
"""
CALLS_THAT_WAIT = """
    INSERT INTO server_calls (campaign_id, annotator_id, assignment_id, outcome, due_at)
    SELECT campaign_id, annotator_id, id, 'completed', CAST(:due AS timestamptz) FROM assignments
    WHERE starts_with(external_id, 'x')
"""


async def test_a_person_who_finished_is_credited_once(engine, platform):
    study = await create_study(engine, platform)
    await study.let_person_finish("p 1&x")
    assert await study.states() == ["prepared"]
    for _ in range(3):
        await study.work_again(**LONG)
    assert await study.states() == ["sent"]
    assert platform.credits == {"p 1&x": 1}
    ((method, path, _, headers),) = platform.calls
    assert (method, path) == ("GET", "/credit?token=s3cr3t&who=p%201%26x")
    assert headers["User-Agent"] == "Easel"


async def test_a_call_can_be_a_form_with_headers_of_the_researcher(engine, platform):
    study = await create_study(engine, platform, call_method="POST", call_headers=["Authorization: Bearer 0a1b"])
    await study.let_person_finish()
    await study.work_again()
    ((method, path, parameters, headers),) = platform.calls
    assert (method, path) == ("POST", "/credit")
    assert parameters == {"token": "s3cr3t", "who": "p1"}
    assert headers["Authorization"] == "Bearer 0a1b"


async def test_a_form_has_all_values_of_a_repeated_parameter_in_their_order(engine, platform):
    address = platform.address + "&tag=a&why=x&tag=b"
    study = await create_study(engine, platform, call_method="POST", call_completed=address)
    await study.let_person_finish()
    await study.work_again()
    assert platform.bodies == ["token=s3cr3t&who=p1&tag=a&why=x&tag=b"]
    assert platform.calls[0][3]["Content-Type"] == "application/x-www-form-urlencoded"


async def test_a_turn_on_a_cluster_updates_only_campaigns_with_calls_that_are_due(engine, platform, monkeypatch):
    monkeypatch.setattr(call_work, "leads_to_citus", lambda _connection: True)
    due, *waiting = [await create_study(engine, platform, name=f"Study {number}") for number in range(4)]
    for study in (due, *waiting):
        await study.let_person_finish()
    for study in waiting:
        later = "UPDATE server_calls SET due_at = :due WHERE campaign_id = :id"
        await execute_sql(engine, later, due=due.clock.now + timedelta(days=1), id=study.campaign.id)
    statements: list[str] = []
    with noting_statements(engine, statements):
        await due.work_again(minutes=1)
    assert platform.credits == {"p1": 1}
    assert sum("SET state = 'sending'" in statement for statement in statements) == 1


@contextmanager
def noting_statements(engine, statements):
    def note(_connection, _cursor, statement, *_):
        statements.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    yield
    event.remove(engine.sync_engine, "before_cursor_execute", note)


async def test_a_burst_is_called_for_in_one_turn_four_at_a_time(engine, platform):
    study = await create_study(engine, platform)
    for number in range(13):
        await study.let_person_finish(f"p{number}")
    at_a_time = []
    under_way = 0

    async def make_call(call):
        nonlocal under_way
        under_way += 1
        at_a_time.append(under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return http_call.CallResult("accepted")

    work = ServerCallWork(engine, study.clock, make_call)
    await work.make_due_calls()
    assert await study.states() == ["sent"] * 13
    assert max(at_a_time) <= 4


async def test_failed_and_unclear_calls_raise_one_alert_a_day_each(engine, platform):
    study = await create_study(engine, platform)
    platform.behaviours = ["404", "404", "500", "ok"]
    for number in range(4):
        await study.let_person_finish(f"p{number}")
        await study.work_again()
    alerts = "SELECT about, because FROM alerts WHERE kind = 'calls' ORDER BY id"
    assert await fetch_rows(engine, alerts) == [
        ("a call failed", "The platform answered with status 404."),
        ("it is unclear whether a call was counted", "The platform answered with status 500."),
    ]
    platform.behaviours = ["404"]
    await study.let_person_finish("later")
    await study.work_again(hours=25)
    assert len(await fetch_rows(engine, alerts)) == 3


def count_rows_read(plan: dict[str, Any], table: str) -> float:
    """Return how many rows of a table the nodes of an executed plan read, including filtered ones."""
    own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    children = sum(count_rows_read(child, table) for child in plan.get("Plans", ()))
    return children + (own if plan.get("Relation Name") == table else 0)


async def test_calls_that_wait_for_a_later_time_are_not_read_to_find_those_that_are_due(engine, platform):
    study = await create_study(engine, platform)
    await study.let_person_finish()
    await execute_sql(engine, MORE_ASSIGNMENTS)
    await execute_sql(engine, CALLS_THAT_WAIT, due=study.clock.now + timedelta(hours=1))
    await execute_sql(engine, "ANALYZE server_calls")
    parameters = {"now": study.clock.now, "attempt": "a", "busy": [], "calling": [], "most_of_one": 4, "most": 16}
    explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {TAKE_DUE_CALLS}")
    async with engine.connect() as connection:
        ((explanation,),) = (await connection.execute(explained, parameters)).all()
        await connection.rollback()
    assert 0 < count_rows_read(explanation[0]["Plan"], "server_calls") < 20
    await study.work_again()
    assert sorted(await study.states()) == ["prepared"] * 2000 + ["sent"]


@pytest.mark.parametrize("statement", [COUNT_CALLS_TO_DECIDE, REPEAT_CALLS])
async def test_settled_calls_are_not_read_to_find_those_that_a_person_decides_about(engine, platform, statement):
    study = await create_study(engine, platform)
    platform.behaviours = ["404"]
    await study.let_person_finish()
    await study.work_again()
    await execute_sql(engine, MORE_ASSIGNMENTS)
    await execute_sql(engine, CALLS_THAT_WAIT, due=study.clock.now)
    await execute_sql(engine, "UPDATE server_calls SET state = 'sent' WHERE state = 'prepared'")
    await execute_sql(engine, "ANALYZE server_calls")
    parameters = {"campaign": study.campaign.id, "repeated": "failed", "state": "prepared", "by": "Ann"}
    known = {name: parameters[name] for name in statement.compile().params}
    async with engine.connect() as connection:
        explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        ((explanation,),) = (await connection.execute(explained, known)).all()
        await connection.rollback()
    assert 0 < count_rows_read(explanation[0]["Plan"], "server_calls") < 20


async def test_people_of_other_platforms_and_unfinished_visits_make_no_call(engine, platform):
    study = await create_study(engine, platform, hits_per_annotator=2)
    for origin in ("panel", "link"):
        assignment = await create_annotator(engine, study.campaign, "q", origin, id="q")
        await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    assert await study.states() == []


@pytest.mark.parametrize(
    ("behaviour", "once", "repeatable"),
    [
        ("404", "failed", "failed"),
        ("429", "prepared", "prepared"),
        ("500", "unknown", "prepared"),
        ("credit then 500", "unknown", "prepared"),
        ("drop", "unknown", "prepared"),
        ("credit then drop", "unknown", "prepared"),
    ],
)
async def test_only_what_cannot_be_counted_twice_is_repeated(engine, platform, behaviour, once, repeatable):
    for is_repeatable, expected in ((False, once), (True, repeatable)):
        study = await create_study(engine, platform, name=f"C {is_repeatable}", call_repeatable=is_repeatable)
        await execute_sql(engine, "DELETE FROM server_calls")
        platform.behaviours, platform.credits = [behaviour], type(platform.credits)()
        await study.let_person_finish()
        await study.work_again()
        assert await study.states() == [expected]
        for _ in range(3):
            await study.work_again(**LONG)
        assert max(platform.credits.values(), default=0) <= 1
        assert await study.states() == ["sent" if expected == "prepared" else expected]


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        ("<Result><credit_status>G</credit_status></Result>", "sent"),
        ("<Errors>already credited</Errors>", "failed"),
        ("", "failed"),
        ("x" * 10_000_000 + "credit_status>G<", "failed"),
    ],
    ids=["confirmed", "refused", "empty", "endless"],
)
async def test_a_platform_can_confirm_calls_by_a_text(engine, platform, reply, state):
    study = await create_study(engine, platform, call_confirmation="credit_status>G<")
    platform.reply = reply
    await study.let_person_finish()
    await study.work_again()
    assert await study.states() == [state]


async def test_a_call_without_a_reply_in_time_is_unclear(engine, platform, monkeypatch):
    monkeypatch.setattr(http_call, "CALL_TIMEOUT_SECONDS", 0.3)
    study = await create_study(engine, platform)
    platform.behaviours = ["credit then hang"]
    await study.let_person_finish()
    await study.work_again()
    assert await study.states() == ["unknown"]
    assert await study.problems() == ["The call was made, and no reply came (TimeoutError)."]


async def test_a_platform_that_cannot_be_reached_is_tried_again_and_in_the_end_it_is_said(engine, platform):
    study = await create_study(engine, platform, call_completed="http://127.0.0.1:9/credit?who={id}")
    await study.let_person_finish()
    await study.work_again()
    assert await study.states() == ["prepared"]
    for _ in range(MAX_TRIES):
        await study.work_again(**LONG)
    assert await study.states() == ["failed"]
    assert await fetch_rows(engine, "SELECT tries FROM server_calls") == [(MAX_TRIES,)]


async def test_a_call_that_has_to_wait_is_not_made_before(engine, platform):
    study = await create_study(engine, platform)
    platform.behaviours = ["429"]  # and asks for ten minutes
    await study.let_person_finish()
    await study.work_again()
    await study.work_again(minutes=9)
    assert len(platform.calls) == 1
    await study.work_again(minutes=2)
    assert await study.states() == ["sent"]


async def test_nothing_goes_to_a_private_network_unless_the_operator_allows_it(engine, platform):
    study = await create_study(engine, platform, call_completed="https://127.0.0.1:1/credit?who={id}")
    await study.let_person_finish()
    await ServerCallWork(engine, study.clock, partial(http_call.make_server_call, allow_private=False)).make_due_calls()
    assert await study.states() == ["failed"]
    assert "private network" in (await study.problems())[0]


async def test_no_redirect_is_followed(engine, platform):
    study = await create_study(engine, platform)
    platform.behaviours = ["302"]
    await study.let_person_finish()
    await study.work_again()
    assert await study.states() == ["failed"]
    assert len(platform.calls) == 1


@pytest.mark.parametrize(("is_repeatable", "state"), [(False, "unknown"), (True, "prepared")])
async def test_a_call_whose_process_was_killed_may_have_been_counted(engine, platform, is_repeatable, state):
    study = await create_study(engine, platform, call_repeatable=is_repeatable)
    await study.let_person_finish()
    await execute_sql(
        engine,
        "UPDATE server_calls SET state = 'sending', tries = 1, attempt = 'dead', sending_at = :now",
        now=study.clock.now,
    )
    await study.work_again(minutes=4)
    assert await study.states() == ["sending"]
    study.clock.advance(minutes=2)
    platform.behaviours = ["429"]
    await study.work.make_due_calls()
    assert await study.states() == [state]


async def test_after_a_completion_no_call_of_another_outcome_is_made(engine, platform):
    study = await create_study(engine, platform, call_failed_checks=platform.address.replace("who", "failed"))
    await study.let_person_finish()
    await execute_sql(
        engine,
        """
        INSERT INTO server_calls (campaign_id, annotator_id, assignment_id, outcome, state)
        SELECT campaign_id, annotator_id, assignment_id, 'failed_checks', 'prepared' FROM server_calls
        """,
    )
    await study.work_again()
    assert await study.states() == ["sent", "cancelled"]
    assert len(platform.calls) == 1


async def test_two_processes_make_one_call(engine, platform):
    study = await create_study(engine, platform)
    for number in range(12):
        await study.let_person_finish(f"p{number}")
    works = [make_work(engine, study.clock) for _ in range(3)]
    for _ in range(4):
        await asyncio.gather(*(work.make_due_calls() for work in works))
    assert await study.states() == ["sent"] * 12
    assert set(platform.credits.values()) == {1}


async def test_a_process_that_slept_makes_no_call(engine, platform):
    study = await create_study(engine, platform)
    await study.let_person_finish()

    class SleepingClock:
        async def __call__(self):
            study.clock.advance(seconds=30)
            return study.clock.now

    work = make_work(engine, SleepingClock())
    await work.start_due_calls_and_count_them()
    await work.calling.wait()
    assert (await study.states(), platform.calls) == (["prepared"], [])


async def test_an_erased_person_is_not_named_any_more(engine, platform):
    study = await create_study(engine, platform)
    await study.let_person_finish()
    await execute_sql(engine, "UPDATE assignments SET arrival = '{}', external_id = 'erased:1'")
    await study.work_again()
    assert (await study.states(), platform.calls) == (["cancelled"], [])


async def test_the_address_is_that_of_the_present_settings(engine, platform):
    study = await create_study(engine, platform)
    platform.behaviours = ["404"]
    await study.let_person_finish()
    await study.work_again()
    await change_crowd_settings(engine, json.dumps({"call_completed": None}))
    await execute_sql(engine, "UPDATE server_calls SET state = 'prepared'")
    await study.work_again()
    assert await study.problems() == ["The settings have no address for this outcome any more."]
    assert len(platform.calls) == 1


async def test_after_a_restore_nothing_is_called_by_itself(engine, platform):
    study = await create_study(engine, platform)
    await study.let_person_finish("p1")
    await study.work_again()
    for name in ("p2", "p3"):
        await study.let_person_finish(name)
    await execute_sql(engine, "UPDATE server_calls SET state = 'sending', attempt = 'a' WHERE id = 2")
    assert await hold_server_calls_after_restore_and_count_them(engine) == 2
    for _ in range(3):
        await study.work_again(**LONG)
    assert await study.states() == ["sent", "unknown", "unknown"]
    assert platform.credits == {"p1": 1}


async def test_secrets_of_an_address_are_in_no_row_and_no_log(app, engine, platform, caplog):
    caplog.set_level(logging.DEBUG)
    study = await create_study(engine, platform, call_headers=["X-Key: he4der"])
    platform.behaviours = ["ok", "404", "500", "drop"]
    for number in range(4):
        await study.let_person_finish(f"person-{number}")
    await study.work_again()
    assert len(platform.calls) == 4
    rows = str(await fetch_rows(engine, "SELECT t.* FROM server_calls t"))
    logged = " ".join(record.getMessage() for record in caplog.records if not record.name.startswith("tests"))
    for secret in ("s3cr3t", "he4der", "person-"):
        assert secret not in rows
    for secret in ("s3cr3t", "he4der"):
        assert secret not in logged


async def test_other_campaigns_do_not_wait_for_one_whose_platform_hangs(engine, platform, monkeypatch):
    monkeypatch.setattr(http_call, "CALL_TIMEOUT_SECONDS", 1.0)
    slow = await create_study(engine, platform, name="Slow")
    other = await create_study(engine, platform, name="Other")
    people = [f"s{number}" for number in range(4)]
    for person in people:
        await let_person_finish(engine, slow.campaign, person)
    await let_person_finish(engine, other.campaign, "p1")
    platform.people_whose_calls_hang = frozenset(people)
    await other.work.make_due_calls()
    assert platform.credits["p1"] == 1
    assert not any(platform.credits[person] for person in people)
