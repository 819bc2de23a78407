"""An annotator who is always a moment too late still gets an answer; each race is lost here on purpose."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.annotation.hits import leases
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.platforms.assignments import AssignmentId
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)

# Stores no lease, as when another request has just taken the items, and counts how often that came about.
COUNTER = "CREATE SEQUENCE races_lost"
TOO_LATE = """
    CREATE FUNCTION too_late() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM nextval('races_lost'); RETURN NULL; END$$
"""
ALWAYS = "CREATE TRIGGER too_late BEFORE INSERT ON hits FOR EACH ROW EXECUTE FUNCTION too_late()"


@pytest.mark.own_database
async def test_who_loses_every_race_is_asked_to_wait(engine):
    me = await create_annotator(engine, await create_running_campaign(engine))
    for statement in (COUNTER, TOO_LATE, ALWAYS):
        await execute_sql(engine, statement)
    work = await find_or_lease_next_hit(engine, me)
    assert (work.hit, work.reason) == (None, "wait")
    assert await fetch_value(engine, "SELECT last_value FROM races_lost") == leases.MAX_LEASE_ATTEMPTS
    assert await fetch_rows(engine, "SELECT id FROM hits") == []


@pytest.mark.parametrize(("selection", "kept"), [("streaming", [True, False, True]), ("iterations", [False] * 3)])
def test_the_state_is_read_again_after_each_second_lost_race_and_always_where_iterations_are_planned(selection, kept):
    state: Any = SimpleNamespace(selection=selection)
    request, seen = leases.PendingRequest(leases.NextHitRequest(AssignmentQuery(AssignmentId(1, 1)), NOW)), []
    for _ in kept:
        request.assignment = state
        request.prepare_redraw_after_lost_race()
        seen.append(request.assignment is state)
    assert seen == kept


async def test_who_could_go_on_with_what_another_holds_is_asked_to_wait(engine):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=1, repeat_items=False)
    me, other = await create_annotator(engine, campaign), await create_annotator(engine, campaign, "other")
    mine, held = await try_to_lease_hit(engine, me), await try_to_lease_hit(engine, other)
    await submit_scores(engine, me, mine)
    assert not set(mine.items) & set(held.items)
    assert (await find_or_lease_next_hit(engine, me)).reason == "wait"


async def test_an_iteration_is_not_planned_when_the_last_answer_came_a_moment_before(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1, selection="iterations")
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    # As the campaign looks to a request that read it before that answer was committed.
    async with engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE campaigns SET status = 'running'")
    assert (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "late"))).reason == "all_done"
    assert await fetch_rows(engine, "SELECT status, iteration FROM campaigns") == [("finished", 0)]
