"""The page that says what a campaign's goal will cost."""

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from app.campaigns import settings_edits
from app.campaigns.forecast_findings import ForecastFindings, store_forecast_findings_if_current
from app.errors import NotFound, Refusal
from app.goals.estimates import GoalEvidence
from app.goals.progress import text_that_identifies_goal
from app.inference.online.laws import ONLINE_LAWS
from app.planning import forecast, goal_simulation
from app.planning.campaign_forecast import CampaignForecast
from app.planning.forecast import (
    ForecastRequest,
    ForecastRunner,
    forecast_cost_of_goal_or_refuse,
    goal_measure_caution_or_empty,
)
from app.planning.goal_simulation import MAX_ITEMS_MEASURED_BY_LAW, GoalForecast, forecast_goal
from app.record.answer_rates import load_recent_hits_per_hour_or_none
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table
from tests.unsaved import unsaved

FETCHED = {"x-easel": "fetch", "accept": "application/json"}

GOAL: dict[str, Any] = {"goal": "intervals", "goal_width": 20}


async def test_it_tells_how_much_more_is_needed_in_judgments_work_and_money(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, minutes_per_hit=2, pay_per_hit=0.5, **GOAL)
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=3, now=NOW, at_once=4)
    middle, low, high = found.goal_forecast.median_and_band_of_judgments_needed
    assert 0 < low <= middle <= high
    assert found.sentence_on_judgments_needed.startswith(f"About {middle:.0f} more judgments")
    hits = middle / 5
    assert found.phrases_on_costs_of_median_run == [
        f"{hits:.0f} tasks",
        f"{hits * 2 / 60:.1f} hours of work",
        f"${hits / 2:.2f}",
    ]
    assert (
        found.sentence_on_time_until_goal_or_empty
        == f"About {round(hits * 2 / 4)} min, with 4 annotators at the same time."
    )
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en&annotators=")).text
    assert "Chance that the goal is reached" in page
    assert "more judgments" in page
    assert "Assumes 200 annotators; no one has answered yet." in page


async def test_where_each_person_gets_one_reward_it_tells_the_rewards_of_all_people(engine, researcher):
    pay: dict[str, Any] = {"people_from": "prolific", "hits_per_annotator": 4, "pay_per_hit": 0.5, "repeat_items": True}
    campaign = await create_running_campaign(engine, items=8, **GOAL, **pay)
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=3, now=NOW, at_once=4)
    people = -(-round(found.goal_forecast.median_and_band_of_judgments_needed[0]) // 20)  # 4 tasks of 5 items each
    assert found.phrases_on_costs_of_median_run[-1] == f"${2 * people}.00"
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en&annotators=")).text
    assert "Chance that the goal is reached" in page


async def test_before_a_plan_it_tells_what_the_settings_alone_lead_to(engine, researcher):
    paid: dict[str, Any] = {"minutes_per_hit": 2, "pay_per_hit": 0.5, "judgments_per_item": 10}
    for settings, said in (
        (GOAL | paid, "With 10 judgments per item: 80 judgments in 16 tasks, 0.5 hours of work, $8.00."),
        (paid, "With 10 judgments per item: 80 judgments in 16 tasks, 0.5 hours of work, $8.00."),
        (GOAL | {"judgments_per_item": 1}, "With 1 judgment per item: 8 judgments in 2 tasks."),
    ):
        campaign = await create_running_campaign(engine, items=8, launched=False, **settings)
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
        assert said in page
        assert ("set the minutes and pay per task" in page) == ("pay_per_hit" not in settings)


async def test_a_plan_and_missing_items_take_the_place_of_what_the_settings_lead_to(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, launched=False, judgments_per_item=1, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}/plan"
    assert "With 1 judgment per item: 8 judgments" in (await researcher.get(address)).text
    assert "With 1 judgment per item: 8 judgments" not in (await researcher.get(f"{address}?like=mlqe-et-en")).text
    await execute_sql(engine, "DELETE FROM items")
    assert "judgment per item:" not in (await researcher.get(address)).text


async def test_the_newest_plan_is_repeated_until_the_settings_change(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, judgments_per_item=3, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}/plan"
    async with engine.begin() as connection:
        findings = ForecastFindings(8, 3, "It ends before.", 9, [60, 40, 72])
        await store_forecast_findings_if_current(connection, campaign.slug, findings)
    said = "The last plan found that 9 of 10 campaigns like this one reach the goal with 9 judgments per item."
    assert said in (await researcher.get(address)).text
    await execute_sql(engine, "UPDATE campaigns SET judgments_per_item = 4")
    page = (await researcher.get(address)).text
    assert said not in page
    assert "With 4 judgments per item: 32 judgments" in page


async def test_the_sentence_and_the_curve_come_before_the_assumptions_which_one_line_names(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}/plan"
    page = (await researcher.get(f"{address}?like=mlqe-ro-en&annotators=40&at_once=3")).text
    places = [page.index(text) for text in ('class="needed"', "<figure", '<form method="get"', "<summary>Assumptions")]
    assert places == sorted(places)
    assert summary_of_assumptions(page) == (
        "Assumptions: annotators like people who rated Romanian–English translations, 40 in all, 3 at the same time"
    )
    assert summary_of_assumptions((await researcher.get(address)).text) == (
        "Assumptions: annotators like people who rated Estonian–English translations, unknown number in all, "
        "5 at the same time"
    )


def summary_of_assumptions(page: str) -> str:
    """Return the line that names the assumptions, without its markup."""
    line = page.partition("<summary>Assumptions")[2].partition("</summary>")[0]
    return "Assumptions" + re.sub("<[^>]*>", "", line)


async def test_the_overview_repeats_what_the_plan_found_until_the_settings_change(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}"
    assert "Estimate the cost" in (await researcher.get(address)).text
    findings = ForecastFindings(8, campaign.judgments_per_item, "", 9, [60, 40, 72])
    async with engine.begin() as connection:
        await store_forecast_findings_if_current(connection, campaign.slug, findings)
    page = (await researcher.get(address)).text
    assert "Needs about 60 more (40 to 72)" in page
    assert f"With {campaign.judgments_per_item} per item it probably will not get there." in page
    assert f'href="{address}/settings?setting=judgments_per_item">Ask for 9 each</a>' in page
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update={"judgments_per_item": 9})
        )
    assert "Estimate the cost" in (await researcher.get(address)).text


@pytest.mark.parametrize(
    ("law", "goal", "items", "warns"),
    [
        ("easl", "best", MAX_ITEMS_MEASURED_BY_LAW + 1, False),
        ("easl-aware", "halves", MAX_ITEMS_MEASURED_BY_LAW + 1, False),
        ("easl-aware", "best", MAX_ITEMS_MEASURED_BY_LAW, False),
        ("easl-aware", "best", MAX_ITEMS_MEASURED_BY_LAW + 1, True),
    ],
)
def test_it_says_where_it_measures_the_goal_otherwise_than_the_campaign(law, goal, items, warns):
    known = GoalEvidence.empty(ONLINE_LAWS[law], items)
    for reached in (True, False):
        found = GoalForecast(np.zeros(1), np.zeros((1, 1)), np.array([9.0 if reached else np.inf]), np.zeros(1, bool))
        said = goal_measure_caution_or_empty(unsaved(goal=goal, when_reached="tell"), known, found)
        assert ("measures the goal by plain means" in said) == warns
        more = law == "easl-aware" and goal == "best" and not warns and not reached
        assert ("With more annotators the goal" in said) == more


async def test_of_a_goal_that_is_reached_it_says_that_alone(engine, monkeypatch):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    there = GoalForecast(np.zeros(1), np.zeros((1, 1)), np.zeros(1), np.zeros(1, bool))
    monkeypatch.setattr(forecast, "forecast_goal", lambda *_known, **_asked: there)
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, now=NOW)
    assert (found.sentence_on_judgments_needed, found.annotators_note, found.caution) == (
        "The goal is reached.",
        "",
        "",
    )


async def test_it_says_how_many_annotators_it_supposes_and_takes_a_number_of_yours(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, hits_per_annotator=2, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en&annotators="
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, annotators=3, runs=2, now=NOW)
    assert found.annotators_note == "Planned for 3 annotators."
    assert found.annotators_run_out_warning_or_empty.startswith(
        "In 2 of 2 simulated campaigns, the 3 annotators run out of tasks"
    )
    *_, last = (await researcher.get(address + "2", headers=FETCHED)).text.splitlines()
    assert json.loads(last)["error"]["code"] == "too_few_annotators"
    assert "needs 5 more tasks, and each annotator may answer 2. Enter 3 or more, or leave the number empty." in last


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("annotators=0", "invalid", "“Total annotators” must be a whole number from 1 to 100,000, or be left"),
        ("like=mlqe-et-en&annotators=1e9", "invalid", "“Total annotators” must be"),
        ("at_once=many", "invalid", "“Annotators at a time” must be a whole number from 1 to 1,000."),
        ("at_once=", "invalid", "“Annotators at a time” must be"),
        ("like=nobody", "campaign_not_found", "There is no campaign “nobody”."),
    ],
)
async def test_what_the_form_cannot_mean_is_said_beside_it(engine, researcher, query, code, said):
    status = {"invalid": 422, "campaign_not_found": 404}[code]
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}/plan?{query}"
    page = await researcher.get(address)
    assert (page.status_code, said in page.text, "data-plan>" in page.text) == (status, True, True)
    fetched = await researcher.get(address, headers=FETCHED)
    assert (fetched.status_code, fetched.json()["error"]["code"]) == (status, code)
    assert said in fetched.json()["error"]["message"]


async def test_of_systems_everybody_may_judge_each_as_often_as_there_are_segments(engine):
    asked: dict[str, Any] = {"judgments_per_item": 50, "repeat_items": False, "goal": "intervals", "goal_width": 10}
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=25), **asked)
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, annotators=4, runs=1, now=NOW)
    assert found.annotators_run_out_warning_or_empty.startswith(
        "In 1 of 1 simulated campaign, the 4 annotators run out of tasks"
    )
    with pytest.raises(Refusal, match="needs 100 more tasks, and each annotator may answer 25"):
        await forecast_cost_of_goal_or_refuse(engine, campaign.slug, annotators=3, runs=1, now=NOW)


async def test_a_plan_starts_from_the_priors_of_the_campaign_and_its_items(engine, monkeypatch):
    campaign = await create_running_campaign(engine, items=8, prior=[2, 3], **GOAL)
    await execute_sql(engine, "UPDATE items SET prior = ARRAY[5, 1] WHERE number = 7")
    begun: list[Any] = []

    def noted(*known: Any, **asked: Any) -> GoalForecast:
        begun.append(asked["priors"].T.tolist())
        return forecast_goal(*known, **asked)

    monkeypatch.setattr(forecast, "forecast_goal", noted)
    await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
    await execute_sql(engine, "UPDATE campaigns SET status = 'draft', prior = NULL")
    await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
    assert begun == [[first] * 7 + [[5, 1]] for first in ([2, 3], [1, 1])]


async def test_a_plan_by_comparisons_goes_on_from_those_that_count(engine, monkeypatch):
    comparing: dict[str, Any] = {"rule": "pairs", "update_law": "trueskill", "items_per_hit": 2, "goal": "halves"}
    campaign = await create_running_campaign(engine, items=8, **comparing)
    for k in range(3):
        annotator = await create_annotator(engine, campaign, f"a{k}")
        hit = await try_to_lease_hit(engine, annotator)
        await submit_scores(engine, annotator, hit, scores=[80, 20])
    shown = await fetch_value(engine, "SELECT array_agg(items ORDER BY seq) FROM responses")
    begun: list[Any] = []

    def noted(*known: Any, **asked: Any) -> GoalForecast:
        begun.append(asked["comparisons"])
        return forecast_goal(*known, **asked)

    monkeypatch.setattr(forecast, "forecast_goal", noted)
    await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
    (comparisons,) = begun
    assert comparisons.hits.tolist() == [0, 0, 1, 1, 2, 2]
    assert comparisons.items.reshape(-1, 2).tolist() == shown
    assert comparisons.scores.tolist() == [0.8, 0.2] * 3


async def test_the_plan_of_a_large_campaign_says_that_it_asks_evenly(engine, monkeypatch):
    comparing: dict[str, Any] = {"rule": "pairs", "update_law": "trueskill", "items_per_hit": 2, "goal": "halves"}
    campaign = await create_running_campaign(engine, items=8, **comparing)
    assert (await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)).caution == ""
    monkeypatch.setattr(goal_simulation, "MAX_ITEMS_ASKED_BY_COMPARISONS", 7)
    caution = (await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)).caution
    assert caution.endswith("but this campaign uses the rule “pairs”. It may need fewer judgments.")


async def test_the_page_names_the_rule_that_suits_the_goal(engine, researcher):
    draft = await create_running_campaign(engine, items=8, launched=False, **(GOAL | {"goal": "best", "best_items": 2}))
    page = (await researcher.get(f"/admin/campaigns/{draft.slug}/plan")).text
    assert "The selection rule “best” suits this goal" in page
    assert f'<a href="/admin/campaigns/{draft.slug}/settings?setting=rule">Settings</a>' in page
    assert "can’t be changed after launch" not in page


async def test_items_that_left_the_pool_are_not_planned(engine):
    campaign = await create_running_campaign(engine, items=8, cannot_be_judged=True, unjudged_people=2, **GOAL)
    for gone, wanted in ((0, 24), (3, 15)):
        await execute_sql(engine, f"UPDATE posteriors SET unjudged = 2 WHERE subject < {gone}")
        assert (
            await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
        ).judgments_wanted == wanted
    await execute_sql(engine, "UPDATE posteriors SET unjudged = 2")
    with pytest.raises(Refusal, match="“Verbs” has no item left") as refused:
        await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
    assert refused.value.code == "no_items_left"


async def test_the_plan_is_a_tab_of_every_campaign_so_that_tabs_do_not_move(engine, researcher):
    async def tabs(campaign):
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
        return page.partition('<nav class="tabs"')[2].partition("</nav>")[0]

    draft, other = [await create_running_campaign(engine, items=8, launched=False, **goal) for goal in (GOAL, {})]
    plan_of = f'<a href="/admin/campaigns/{draft.slug}/plan" data-campaign-tab="plan"'
    assert plan_of + ">Plan</a>" in await tabs(draft)
    assert f'/{other.slug}/plan" data-campaign-tab="plan">Plan</a>' in await tabs(other)
    assert (
        "collects all its judgments, so there is nothing to plan."
        in (await researcher.get(f"/admin/campaigns/{other.slug}/plan")).text
    )
    page = (await researcher.get(f"/admin/campaigns/{draft.slug}/plan")).text
    assert plan_of + ' aria-current="page">Plan</a>' in page
    ended = await create_running_campaign(engine, items=8, **GOAL)
    await execute_sql(engine, f"UPDATE campaigns SET status = 'finished' WHERE id = {ended.id}")
    assert f'/{ended.slug}/plan" data-campaign-tab="plan">Plan</a>' in await tabs(ended)


async def test_a_plan_by_a_law_that_learns_of_annotators_is_said_to_take_longer(engine, researcher):
    campaign = await create_running_campaign(engine, items=40, launched=False, update_law="easl-aware", **GOAL)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert "takes about 10 seconds, and up to 50 seconds" in page
    large = await create_running_campaign(engine, items=300, launched=False, update_law="easl-aware", **GOAL)
    page = (await researcher.get(f"/admin/campaigns/{large.slug}/plan")).text
    assert f"This page waits at most 3 minutes; “easel plan {large.slug}” has no time limit." in page
    earlier = await create_running_campaign(engine, items=8, **GOAL)
    with pytest.raises(Refusal) as refused:
        await forecast_cost_of_goal_or_refuse(engine, campaign.slug, earlier.slug, runs=2, now=NOW)
    assert refused.value.code == "too_few_judgments"


async def test_a_campaign_that_ended_without_its_goal_leads_to_how_many_judgments_it_takes(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished'")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert f'/{campaign.slug}/plan">Estimate the missing judgments</a>' in page
    assert "Estimate the cost" not in page
    said = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en")).text
    assert "About" in said.partition('class="needed"')[2]
    await execute_sql(engine, f"UPDATE campaigns SET goal_reached = '{text_that_identifies_goal(campaign)}'")
    assert "Estimate the missing" not in (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text


async def test_it_works_out_nothing_before_it_is_asked_and_says_how_long_that_takes(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, launched=False, **GOAL)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert "Simulating 20 campaigns with all items takes about 5 seconds" in page
    assert "Annotators at a time" in page
    assert "Chance that the goal is reached" not in page


@pytest.mark.parametrize(
    ("each", "said"), [(2, "ends at 2 judgments of each item, after 16 more, and will probably not have"), (60, "")]
)
async def test_it_says_when_the_campaign_may_end_before_its_goal(engine, each, said):
    campaign = await create_running_campaign(engine, items=8, launched=False, judgments_per_item=each, **GOAL)
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=2, now=NOW)
    assert said in found.campaign_ends_before_goal_warning_or_empty
    assert bool(said) == bool(found.campaign_ends_before_goal_warning_or_empty)
    some = replace(
        found,
        judgments_wanted=16,
        goal_forecast=replace(found.goal_forecast, judgments_needed=np.array([5.0, 10.0, 20.0])),
    )
    assert (
        "after 16 more, and may not have reached its goal by then." in some.campaign_ends_before_goal_warning_or_empty
    )
    assert (
        "as many as it asks for, and has not reached its goal. Collect"
        in replace(some, judgments=16).campaign_ends_before_goal_warning_or_empty
    )


async def test_a_launch_says_again_what_the_plan_found_and_offers_as_many_judgments_as_are_enough(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, launched=False, judgments_per_item=2, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}"
    said = "will probably not have reached its goal by then"
    assert said not in (await researcher.get(f"{address}/launch/confirm")).text
    assert said in (await researcher.get(f"{address}/plan?like=mlqe-et-en")).text
    html = (await researcher.get(f"{address}/launch/confirm")).text
    assert said in html
    enough = int(html.partition('name="judgments_per_item" value="')[2].partition('"')[0])
    assert enough > 2
    assert f"Set to {enough} judgments per item" in html
    done = await researcher.post(f"{address}/judgments-per-item", data={"judgments_per_item": str(enough)})
    assert done.headers["location"] == f"{address}/launch/confirm?done=saved"
    html = (await researcher.get(f"{address}/launch/confirm")).text
    assert said not in html
    assert f"with {enough} judgments each" in html


def test_the_headline_and_each_choice_on_the_curve_tell_what_they_cost():
    needed = np.array([40.0, 40.0, 60.0, 80.0])
    checkpoints = np.array([0.0, 20.0, 40.0, 60.0, 80.0, 100.0])
    found = GoalForecast(checkpoints, np.full((4, 6), 0.1), needed, np.zeros(4, bool))
    forecast = CampaignForecast("It is settled", 20, 20, 10, 80, 4, 5, 3.0, 0.25, "EUR", None, 5, NOW, found)
    assert forecast.sentence_on_judgments_per_item == (
        "With 5 judgments per item, 9 of 10 campaigns like this one reach the goal: 18 tasks, 0.9 hours of work, €4.50."
    )
    assert [choice.judgments_per_item for choice in forecast.budget_choices_on_curve] == [1, 2, 3, 4, 5]
    assert forecast.budget_choices_on_curve[2].sentence == (
        "3 judgments per item: 50 % of simulated campaigns reach the goal; 10 tasks, 0.5 hours of work, €2.50."
    )
    xs = [choice.x for choice in forecast.budget_choices_on_curve]
    assert xs == sorted(xs)
    reached = replace(forecast, goal_forecast=replace(found, judgments_needed=np.zeros(4)))
    assert reached.sentence_on_judgments_per_item == "The goal is reached."
    never = replace(forecast, goal_forecast=replace(found, judgments_needed=np.full(4, np.inf)))
    assert never.sentence_on_judgments_per_item.startswith("The goal needs more than 5 judgments per item.")


async def test_systems_are_planned_for_twice_the_judgments_that_the_campaign_asks_for(engine, researcher):
    asked: dict[str, Any] = {"design": "rating", "items_per_hit": 1, "goal": "intervals", "goal_width": 1}
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=25), judgments_per_item=50, **asked)
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
    assert found.sentence_on_judgments_per_item.startswith("The goal needs more than 100 judgments per system.")
    assert "ends at 50 judgments of each system, after 200 more, and will probably not" in (
        found.campaign_ends_before_goal_warning_or_empty
    )
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert "With 50 judgments per system: 200 judgments in 200 tasks" in page


async def test_beyond_the_simulated_judgments_the_plan_does_not_say_that_the_goal_is_unlikely(engine):
    campaign = await create_running_campaign(
        engine, items=8, launched=False, judgments_per_item=200, **GOAL | {"goal_width": 1}
    )
    found = await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=1, now=NOW)
    assert found.sentence_on_judgments_per_item.startswith("The goal needs more than 60 judgments per item.")
    assert "after 1,600 more, and may not have reached" in found.campaign_ends_before_goal_warning_or_empty


async def test_a_number_chosen_on_the_plan_is_saved_and_leads_back_to_it(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, judgments_per_item=2, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}"
    assert f'action="{address}/judgments-per-item"' in (await researcher.get(f"{address}/plan?like=mlqe-et-en")).text
    done = await researcher.post(f"{address}/judgments-per-item", data={"judgments_per_item": "7", "from": "plan"})
    assert done.headers["location"] == f"{address}/plan?done=saved"
    assert "7" in (await researcher.get(f"{address}/settings/how-much")).text
    refused = await researcher.post(f"{address}/judgments-per-item", data={"judgments_per_item": "0", "from": "plan"})
    assert refused.status_code == 422


async def test_a_viewer_can_plan_but_stores_nothing(app, engine, client):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    page = (await client.get(f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en")).text
    assert "Chance that the goal is reached" in page
    assert "judgments-per-item" not in page
    assert await fetch_value(engine, "SELECT newest_plan FROM campaigns") is None


async def test_our_script_is_told_how_far_it_is(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, launched=False, **GOAL)
    address = f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en"
    lines = [json.loads(line) for line in (await researcher.get(address, headers=FETCHED)).text.splitlines()]
    assert [line["runs"] for line in lines[:-1]] == [*range(21)]
    assert "Chance that the goal is reached" in lines[-1]["found"]
    await execute_sql(engine, "DELETE FROM items")
    page = (await researcher.get(address, headers=FETCHED)).text
    assert "has no items" in page


async def test_an_earlier_campaign_that_tells_too_little_is_said_to(engine, researcher):
    earlier, campaign = (
        await create_running_campaign(engine, items=8, **GOAL),
        await create_running_campaign(engine, items=8, launched=False, **GOAL),
    )
    address = f"/admin/campaigns/{campaign.slug}/plan?like={earlier.slug}"
    *_, last = (await researcher.get(address, headers=FETCHED)).text.splitlines()
    assert json.loads(last)["error"]["code"] == "too_few_judgments"
    assert "has too few judgments" in (await researcher.get(address)).text


async def test_who_stops_waiting_leaves_no_process_and_the_next_one_has_its_turn(engine):
    campaign = await create_running_campaign(engine, items=200, launched=False, **(GOAL | {"goal_width": 2}))
    runner, begun = ForecastRunner(engine), asyncio.Event()
    first = asyncio.create_task(
        runner.run(campaign.slug, ForecastRequest("mlqe-et-en"), NOW, lambda _runs: begun.set())
    )
    second = asyncio.create_task(runner.run("nobody", ForecastRequest("mlqe-et-en"), NOW, lambda _runs: None))
    await begun.wait()
    assert not second.done()
    first.cancel()
    with pytest.raises(NotFound):
        await second
    assert first.cancelled()
    assert not runner.lock.locked()


def test_a_campaign_that_goes_on_as_now_reaches_its_goal_by_the_clock():
    found = GoalForecast(np.array([0.0, 60.0]), np.array([[0.1, np.nan]] * 3), np.array([60.0] * 3), np.zeros(3, bool))
    forecast = CampaignForecast("It is settled", 8, 8, 0, 80, 10, 5, 2.0, None, "USD", 24.0, 5, NOW, found)
    assert forecast.sentence_on_time_until_goal_or_empty == "About 30 min, at the current pace of 24 tasks per hour."
    assert forecast.time_of_reaching_goal_or_none == NOW + timedelta(minutes=30)
    assert replace(forecast, hits_per_hour=None, minutes_per_hit=None).sentence_on_time_until_goal_or_empty == ""
    assert replace(forecast, hits_per_hour=None).time_of_reaching_goal_or_none is None
    never = replace(found, judgments_needed=np.full(3, np.inf), ran_out=np.array([True, True, False]))
    assert (
        replace(forecast, goal_forecast=never, annotators=9).sentence_on_judgments_needed
        == "There are not enough annotators to reach the goal."
    )
    said = replace(forecast, goal_forecast=never, annotators=9).annotators_run_out_warning_or_empty
    assert said.startswith("In 2 of 3 simulated campaigns, the 9 annotators run out of tasks before the")
    assert forecast.annotators_run_out_warning_or_empty == ""


async def test_the_pace_of_a_campaign_is_that_of_its_last_answers(engine):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    async with engine.connect() as connection:
        assert await load_recent_hits_per_hour_or_none(connection, campaign.id, now=NOW) is None
    me = await create_annotator(engine, campaign, "a")
    for k in range(3):
        when = NOW + timedelta(minutes=10 * k)
        await submit_scores(engine, me, await try_to_lease_hit(engine, me, now=when), now=when)
    async with engine.connect() as connection:
        assert await load_recent_hits_per_hour_or_none(
            connection, campaign.id, now=NOW + timedelta(minutes=30)
        ) == pytest.approx(4)


async def test_without_a_goal_it_says_where_to_choose_one(engine, researcher):
    campaign = await create_running_campaign(engine, items=8)
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en")
    assert (reply.status_code, "nothing to plan" in reply.text) == (200, True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"criteria": [{"name": name, "question": f"How {name}?"} for name in ("apt", "fluent")]},
            "a goal is about one criterion, so a draft first needs a “Deciding criterion”.",
        ),
        (
            {"design": "categories", "design_settings": {"labels": ["a", "b"]}},
            "a goal needs answers on a scale",
        ),
    ],
)
async def test_a_campaign_that_can_have_no_goal_is_not_told_to_choose_one(engine, researcher, settings, said):
    campaign = await create_running_campaign(engine, items=8, launched=False, **settings)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert f"cannot have a goal: {said}" in page
    assert "To find out whether the judgments suffice, rehearse it before the launch." in page
    assert "setting=goal" not in page


@pytest.mark.parametrize(
    ("settings", "items", "like", "code"),
    [
        ({}, 8, "mlqe-et-en", "no_goal"),
        ({"goal": "best", "best_items": 1}, 2501, "mlqe-et-en", "too_large_to_plan"),
        ({"goal": "order"}, 1001, "mlqe-et-en", "too_large_to_plan"),
        (GOAL, 8, "nobody", "campaign_not_found"),
        (GOAL, 8, "verbs", "too_few_judgments"),
    ],
)
async def test_what_cannot_be_planned_is_refused(engine, settings, items, like, code):
    campaign = await create_running_campaign(engine, items=items, launched=False, **settings)
    with pytest.raises(Refusal) as refused:
        await forecast_cost_of_goal_or_refuse(engine, campaign.slug, like, runs=2, now=NOW)
    assert refused.value.code == code


async def test_whoever_waits_too_long_for_a_plan_is_told_so_and_nobody_else_waits_for_it(engine, app, researcher):
    campaign = await create_running_campaign(engine, items=8, **GOAL)
    app.state.forecasts.max_seconds = 0
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/plan?like=mlqe-et-en")
    assert (reply.status_code, f"`easel plan {campaign.slug}` has no time limit" in reply.text) == (200, True)
    assert not app.state.forecasts.lock.locked()


async def test_without_items_there_is_nothing_to_plan(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, launched=False, **GOAL)
    await execute_sql(engine, "DELETE FROM items")
    with pytest.raises(Refusal) as refused:
        await forecast_cost_of_goal_or_refuse(engine, campaign.slug, runs=2, now=NOW)
    assert refused.value.code == "no_items"
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert f'<a class="button" href="/admin/campaigns/{campaign.slug}/items">Items</a>' in page


async def test_a_campaign_for_all_judgments_is_led_straight_to_the_goal(engine, researcher):
    campaign = await create_running_campaign(engine, items=8)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/plan")).text
    assert "collects all its judgments, so there is nothing to plan" in page
    assert f'href="/admin/campaigns/{campaign.slug}/settings?setting=goal">Choose a goal</a>' in page
