"""What an annotator gets whom others always were a moment ahead of; each race is lost here on purpose."""

from app.serving import leases
from tests.serving.campaigns import annotator, hit_of, next_hit, running, submit, value, values


async def test_who_loses_every_race_is_asked_to_wait(engine, monkeypatch):
    tries = []

    async def lost(*_, **__):
        tries.append(1)

    monkeypatch.setattr(leases, "leased", lost)
    work = await next_hit(engine, await annotator(engine, await running(engine)))
    assert (work.hit, work.reason) == (None, "wait")
    assert len(tries) == leases.PATIENCE
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
