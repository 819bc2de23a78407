"""The page that says what a campaign's goal will cost."""

from typing import Any

import pytest

from app.errors import Refusal
from app.simulation.planned import plan
from tests.serving.campaigns import execute, running

GOAL: dict[str, Any] = {"goal": "intervals", "goal_width": 20}


async def test_it_tells_how_much_more_is_needed_in_judgments_work_and_money(engine, researcher):
    campaign = await running(engine, items=8, minutes_per_hit=2, pay_per_hit=0.5, **GOAL)
    found = await plan(engine, campaign.slug, runs=3)
    middle, low, high = found.found.band
    assert 0 < low <= middle <= high
    assert found.needed.startswith(f"About {middle:.0f} more judgments")
    hits = middle / 5
    assert found.costs == [f"{hits:.0f} HITs", f"{hits * 2 / 60:.1f} hours of work", f"{hits / 2:.2f} USD"]
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert "Chance that the goal is reached" in page
    assert "more judgments" in page
    assert "What will it cost?" in (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text


async def test_without_a_goal_it_says_where_to_choose_one(engine, researcher):
    campaign = await running(engine, items=8)
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")
    assert (reply.status_code, "has no goal" in reply.text) == (200, True)


@pytest.mark.parametrize(
    ("settings", "items", "like", "code"),
    [
        ({}, 8, "mlqe-et-en", "no_goal"),
        (GOAL, 2001, "mlqe-et-en", "too_large_to_plan"),
        (GOAL, 8, "nobody", "campaign_not_found"),
        (GOAL, 8, "verbs", "too_few_judgments"),
    ],
)
async def test_what_cannot_be_planned_is_refused(engine, settings, items, like, code):
    campaign = await running(engine, items=items, launched=False, **settings)
    with pytest.raises(Refusal) as refused:
        await plan(engine, campaign.slug, like, runs=2)
    assert refused.value.code == code


async def test_whoever_waits_too_long_for_a_plan_is_told_so_and_nobody_else_waits_for_it(engine, app, researcher):
    campaign = await running(engine, items=8, **GOAL)
    app.state.plans.most_seconds = 0
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")
    assert (reply.status_code, f"`easel plan {campaign.slug}` takes the time" in reply.text) == (200, True)
    assert not app.state.plans.turn.locked()


async def test_without_items_there_is_nothing_to_plan(engine):
    campaign = await running(engine, items=8, launched=False, **GOAL)
    await execute(engine, "DELETE FROM items")
    with pytest.raises(Refusal) as refused:
        await plan(engine, campaign.slug, runs=2)
    assert refused.value.code == "no_items"
