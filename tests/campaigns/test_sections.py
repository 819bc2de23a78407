"""Settings that are stored in sections: nothing but their default is needed to add one."""

from dataclasses import replace
from typing import Any

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.completion import load_completion_and_store_server_call
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.visit_progress import load_visited_campaign_or_refuse
from app.annotation.platforms.platform import Completion
from app.campaigns.settings import CampaignSettings
from app.database.session import borrow_autocommit_driver
from app.database.tables import campaigns
from app.designs.campaign import SECTION_BY_SETTING, Campaign
from app.goal_monitor.monitor import store_goal_alert_and_stop_campaign_if_chosen
from app.goals.progress import Progress
from app.record.campaign import load_campaign
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign, execute_sql, fetch_value

CHANGED: dict[str, Any] = {
    "goal": "best",
    "best_items": 2,
    "goal_within": 0.1 + 0.2,
    "goal_width": 50.0,
    "goal_percent": 90,
    "false_alarms": 1e-17,
    "quality_rules": ["gold: exclude"],
    "questions": ['language: Which «language»? | "en" | \\ | 😀'],
    "consent": "Line 1\n\tline 2",
    "welcome": False,
    "return_completed": "C0DE",
}


def test_each_setting_has_a_column_of_its_own_or_is_in_a_section():
    assert SECTION_BY_SETTING.keys() <= CampaignSettings.model_fields.keys()
    assert {name for name in CampaignSettings.model_fields if name not in campaigns.c} == SECTION_BY_SETTING.keys()
    assert {*SECTION_BY_SETTING.values()} <= {*campaigns.c.keys()}


async def test_settings_come_back_from_their_sections_as_they_were(engine):
    campaign = await create_running_campaign(engine, **CHANGED)
    async with engine.connect() as connection:
        columns = (await load_campaign(connection, campaign.id)).column_values_of_campaign()
    assert repr({name: columns[name] for name in CHANGED}) == repr(CHANGED)


async def test_a_setting_that_its_section_lacks_has_the_default_of_its_model(engine):
    draft = await create_running_campaign(engine, launched=False, **CHANGED)
    found, expected = {}, {}
    for name, section in SECTION_BY_SETTING.items():
        default = CampaignSettings.model_fields[name].get_default(call_default_factory=True)
        expected[name] = draft.column_values_of_campaign() | {name: default}
        async with engine.connect() as connection:  # which is rolled back
            await connection.execute(text(f"UPDATE campaigns SET {section} = {section} - '{name}'"))
            found[name] = (await load_campaign(connection, draft.id)).column_values_of_campaign()
    assert found == expected


async def test_annotators_meet_the_defaults_of_settings_that_their_sections_lack(engine):
    campaign = await create_running_campaign(engine, **CHANGED)
    key = await create_annotator(engine, campaign)
    await execute_sql(engine, "UPDATE campaigns SET visit_settings = '{}', crowd_settings = '{}'")
    async with borrow_autocommit_driver(engine) as connection:
        visit = (await load_visited_campaign_or_refuse(connection, campaign.link_key)).settings
        assignment = await load_assignment_updating_posteriors_or_refuse(
            connection, PosteriorCache(), AssignmentQuery(key)
        )
        assert await load_completion_and_store_server_call(connection, assignment, "completed") == Completion()
    defaults = {name: getattr(Campaign, name, []) for name in VisitSettings.model_fields if name in SECTION_BY_SETTING}
    assert {name: getattr(visit, name) for name in defaults} == defaults


async def test_a_goal_that_lacks_a_setting_is_the_same_goal_until_it_is_changed(engine):
    campaign = await create_running_campaign(engine, **CHANGED | {"goal_percent": 95})
    reached = Progress("All are settled", 1.0, 1.0)
    await execute_sql(engine, "UPDATE campaigns SET goal_settings = goal_settings - 'goal_percent'")
    await store_goal_alert_and_stop_campaign_if_chosen(engine, replace(campaign, goal_percent=90), reached, now=NOW)
    assert await fetch_value(engine, "SELECT goal_reached FROM campaigns") is None
    await store_goal_alert_and_stop_campaign_if_chosen(engine, campaign, reached, now=NOW)
    assert await fetch_value(engine, "SELECT goal_reached FROM campaigns")
