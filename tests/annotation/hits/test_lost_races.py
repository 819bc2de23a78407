"""An annotator who is always a moment too late still gets an answer; each race is lost here on purpose."""

import pytest

from app.annotation.hits import leases
from tests.annotation.hits.campaigns import annotator, execute, hit_of, next_hit, running, submit, value, values

# Stores no lease, as when another request has just taken the items, and counts how often that came about.
COUNTER = "CREATE SEQUENCE races_lost"
TOO_LATE = """
    CREATE FUNCTION too_late() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM nextval('races_lost'); RETURN NULL; END$$
"""
ALWAYS = "CREATE TRIGGER too_late BEFORE INSERT ON hits FOR EACH ROW EXECUTE FUNCTION too_late()"


@pytest.mark.own_database
async def test_who_loses_every_race_is_asked_to_wait(engine):
    me = await annotator(engine, await running(engine))
    for statement in (COUNTER, TOO_LATE, ALWAYS):
        await execute(engine, statement)
    work = await next_hit(engine, me)
    assert (work.hit, work.reason) == (None, "wait")
    assert await value(engine, "SELECT last_value FROM races_lost") == leases.MAX_LEASE_ATTEMPTS
    assert await values(engine, "SELECT id FROM hits") == []


async def test_who_could_go_on_with_what_another_holds_is_asked_to_wait(engine):
    campaign = await running(engine, items=10, judgments_per_item=1, repeat_items=False)
    me, other = await annotator(engine, campaign), await annotator(engine, campaign, "other")
    mine, held = await hit_of(engine, me), await hit_of(engine, other)
    await submit(engine, me, mine)
    assert not set(mine.items) & set(held.items)
    assert (await next_hit(engine, me)).reason == "wait"


async def test_an_iteration_is_not_planned_when_the_last_answer_came_a_moment_before(engine):
    campaign = await running(engine, items=5, judgments_per_item=1, selection="iterations")
    me = await annotator(engine, campaign)
    await submit(engine, me, await hit_of(engine, me))
    assert await value(engine, "SELECT status FROM campaigns") == "finished"
    # As the campaign looks to a request that read it before that answer was committed.
    async with engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE campaigns SET status = 'running'")
    assert (await next_hit(engine, await annotator(engine, campaign, "late"))).reason == "all_done"
    assert await values(engine, "SELECT status, iteration FROM campaigns") == [("finished", 0)]
