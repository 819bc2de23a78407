"""The goal of a campaign with several criteria is about the criterion that decides what is asked."""

from typing import Any

import pytest

from app.campaigns.settings import CampaignSettings
from app.goal_monitor.monitor import enforce_goal_and_return_state_or_none
from app.planning.forecast import forecast_cost_of_goal_or_refuse
from tests.annotation.hits.campaigns import NOW, fetch_value
from tests.annotation.hits.criteria import (
    create_campaign_that_agrees_about_fluency,
    create_campaign_with_criteria,
    criteria_settings,
)

GOAL: dict[str, Any] = {"goal": "best", "best_items": 2, "goal_within": 10, "judgments_per_item": 40}


@pytest.mark.parametrize(("decides", "status"), [("fluency", "finished"), ("adequacy", "running")])
async def test_a_campaign_stops_when_the_deciding_criterion_has_reached_the_goal(engine, decides, status):
    campaign = await create_campaign_that_agrees_about_fluency(engine, **GOAL, asked_by=decides, when_reached="finish")
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert await fetch_value(engine, "SELECT status FROM campaigns") == status


async def test_the_overview_measures_the_goal_by_its_criterion_alone(engine, researcher):
    campaign = await create_campaign_that_agrees_about_fluency(engine, **GOAL, asked_by="fluency")
    address = f"/admin/campaigns/{campaign.slug}?criterion="
    deciding, other = [(await researcher.get(address + name)).text for name in ("fluency", "adequacy")]
    assert "sure; the goal is 95 %" in deciding
    assert "cut after 2" in deciding
    assert "sure; the goal is 95 %" not in other
    assert "The goal is about fluency." in other
    assert "cut after 2" not in other


async def test_the_list_of_campaigns_shows_the_goal_by_the_deciding_criterion(engine, researcher):
    await create_campaign_that_agrees_about_fluency(engine, **GOAL, asked_by="fluency")
    assert "% of 95 %" in (await researcher.get("/admin")).text


async def test_the_plan_simulates_the_deciding_criterion(engine):
    campaign = await create_campaign_with_criteria(
        engine, items=8, asked_by="fluency", goal="intervals", goal_width=20, judgments_per_item=10
    )
    plan = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=2, now=NOW)
    assert plan.goal == "95 % of items have intervals of ±20 points or less by fluency"
    assert plan.goal_forecast.median_and_band_of_judgments_needed[0] > 0


def test_without_a_deciding_criterion_a_goal_is_refused_at_its_setting():
    with pytest.raises(ValueError, match="a goal is about one criterion") as refused:
        CampaignSettings.model_validate({"name": "a", "question": "b?", "criteria": criteria_settings(2)} | GOAL)
    assert "“Deciding criterion”" in str(refused.value)
