"""Tasks, hours, money and people that a campaign needs, with the places that gold items take, worked out by hand."""

import re

import pytest

from app.campaigns.summaries import load_campaign_with_progress_or_refuse
from app.campaigns.totals import CampaignTotals, sentences_on_totals
from app.record.campaign import load_campaign_for_page_or_refuse
from app.recruiting.study_plan import StudyPlan
from app.simulation.rehearsal_offer import load_rehearsal_offer_or_none_for_rehearsal
from tests.annotation.hits.campaigns import (
    create_annotator,
    execute_sql,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import outputs_table
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, create_draft, import_items

SENTENCES = "id,text,check,expected\n" + "".join(f"s{k},sentence {k},,\n" for k in range(60))
GOLD = "".join(f"g{k},gold {k},gold,80\n" for k in range(3))
STUDY = {
    "judgments_per_item": 10,
    "items_per_hit": 5,
    "hits_per_annotator": 2,
    "repeat_items": False,
    "checks_percent": 50,
    "pay_per_hit": 0.5,
    "currency": "GBP",
    "minutes_per_hit": 3,
}


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


async def study(engine, content=SENTENCES + GOLD, **settings):
    campaign = await create_draft(engine, **STUDY | settings)
    await import_items(engine, campaign, content)
    return campaign


async def totals_of(engine, campaign):
    async with engine.connect() as connection:
        return CampaignTotals.from_campaign(await load_campaign_for_page_or_refuse(connection, campaign.slug))


async def test_a_gold_item_takes_the_place_of_an_item(engine):
    # Half of the tasks show 4 items and a gold item, so a task brings 4.5 judgments: 600 need 133.3, so 134 tasks.
    found = await totals_of(engine, await study(engine))
    assert (found.tasks, found.check_places) == (134, 67)
    assert (found.hours, found.costs) == (pytest.approx(6.7), [pytest.approx(67)])


async def test_without_gold_items_or_a_share_of_tasks_all_places_are_for_items(engine):
    for campaign in (await study(engine, SENTENCES), await study(engine, checks_percent=None)):
        found = await totals_of(engine, campaign)
        assert (found.tasks, found.check_places, found.costs) == (120, 0, [60])


async def test_a_person_meets_each_gold_item_once(engine):
    # One of the two tasks of each visit has the only gold item: 0.5 a task, and 600 / 4.5 is 133.3.
    found = await totals_of(engine, await study(engine, SENTENCES + GOLD[: GOLD.index("g1")]))
    assert (found.tasks, found.check_places) == (134, 67)


async def test_tasks_too_small_for_one_check_are_all_checks(engine):
    # 60 items, 10 judgments each, 2 to a task: 300 tasks, and as many of checks alone.
    found = await totals_of(engine, await study(engine, items_per_hit=2, hits_per_annotator=1))
    assert (found.tasks, found.check_places) == (600, 600)


async def test_all_places_say_the_same_tasks(engine, researcher, api_client):  # noqa: F811  (the fixture)
    campaign = await study(engine)
    page = f"/admin/campaigns/{campaign.slug}"
    launch = words((await researcher.get(f"{page}/launch/confirm")).text)
    assert "need 600 judgments in 134 tasks, which also show gold items about 67 times." in launch
    rail = words((await researcher.get(f"{page}/settings/how-much")).text)
    assert "Tasks134" in rail
    assert "Gold itemsabout 67 times" in rail
    assert "£67.00" in rail
    assert "134 tasks of 5 items, which also show gold items about 67 times." in words(
        (await researcher.get(page)).text
    )
    found = (await api_client.get(f"{API}/campaigns/{campaign.slug}")).json()["totals"]
    assert (found["tasks"], found["check_places"], found["pay"]) == (134, 67, 67.0)
    async with engine.begin() as connection:
        offer = await load_rehearsal_offer_or_none_for_rehearsal(
            connection, await load_campaign_for_page_or_refuse(connection, campaign.slug)
        )
    assert offer is not None
    assert offer.min_annotators == 67
    assert "the campaign asks for 134 tasks" in offer.reason_for_minimum


async def test_only_the_kinds_of_checks_that_exist_are_named(engine):
    attention = GOLD.replace("gold", "attention")
    for checks, kinds in (
        (GOLD, "gold items"),
        (attention, "attention items"),
        (GOLD + attention.replace("g", "a"), "gold and attention items"),
    ):
        campaign = await study(engine, SENTENCES + checks)
        async with engine.connect() as connection:
            told = sentences_on_totals(await load_campaign_for_page_or_refuse(connection, campaign.slug))
            assert f"which also show {kinds} about 67 times" in told
            listed = await load_campaign_with_progress_or_refuse(connection, campaign.slug)
            assert sentences_on_totals(listed) == told


async def test_the_overview_expects_the_same_cost(engine, researcher):
    campaign = await apply_action(engine, await study(engine))
    assert "of about £67.00" in words((await researcher.get(f"/admin/campaigns/{campaign.slug}")).text)


async def test_the_overview_expects_the_cost_of_the_settings_while_tasks_bring_as_many_judgments_as_expected(
    engine, researcher
):
    settings = {"hits_per_annotator": 12, "checks_percent": 25}
    campaign = await apply_action(engine, await study(engine, **settings))
    assert (await totals_of(engine, campaign)).costs == [63.5]  # 3 gold items in 12 tasks: 600 / 4.75 is 126.3
    person = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, person)
    while len(hit.items_without_checks) < 5:  # a task without a gold item brings more than the average
        person = await create_annotator(engine, campaign, name=f"person {hit.id}")
        hit = await try_to_lease_hit(engine, person)
    await submit_scores(engine, person, hit)
    assert "£0.50 of about £63.50" in words((await researcher.get(f"/admin/campaigns/{campaign.slug}")).text)


async def test_tasks_that_were_paid_and_do_not_count_are_expected_to_cost_more(engine, researcher):
    campaign = await apply_action(engine, await study(engine, SENTENCES))
    person = await create_annotator(engine, campaign)
    await submit_scores(engine, person, await try_to_lease_hit(engine, person))
    page = f"/admin/campaigns/{campaign.slug}"
    assert "£0.50 of about £60.00" in words((await researcher.get(page)).text)
    await researcher.post(f"{page}/annotators/A1/exclude", data={"reason": "at random"})
    assert "£0.50 of about £60.50" in words((await researcher.get(page)).text)


async def test_no_one_meets_more_gold_items_than_tasks(engine, researcher):
    campaign = await study(engine, hits_per_annotator=2)
    for part in ("launch/confirm", "checks"):
        page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/{part}")).text)
        assert "One person sees at most 2 gold items" in page
        assert "at most 3 gold items" not in page


async def test_a_limit_of_tasks_tells_how_many_people_to_recruit(engine):
    # A person brings 9 judgments in 2 tasks, so 600 need 66.7, so 67 people. If no one judges an item twice, the last
    # 10 judgments may need 10 people. The others need 590 / 9, so 66 people: 76 in all.
    people = (await totals_of(engine, await study(engine))).people
    assert (people.at_least, people.at_most, people.range_text) == (67, 76, "67 to 76")
    assert (people.tasks, people.minutes, people.reward) == (2, 6, 1.0)


async def test_items_that_are_shown_again_keep_no_one_from_the_limit(engine):
    people = (await totals_of(engine, await study(engine, repeat_items=True))).people
    assert people.range_text == "67"


async def test_each_judgment_of_an_item_is_by_another_person(engine):
    # One person could judge 9 times, but there are 6 items: each wants 10 people, and each person judges all.
    content = "id,text\n" + "".join(f"s{k},sentence {k}\n" for k in range(6))
    people = (await totals_of(engine, await study(engine, content, checks_percent=None))).people
    assert people.range_text == "10"


async def test_the_setup_the_launch_and_share_tell_whom_to_recruit(engine, researcher):
    campaign = await study(engine)
    for part in ("settings/how-much", "launch/confirm", "share"):
        page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/{part}")).text)
        assert re.search("People ?67 to 76", page), part
        assert re.search("Reward of one person ?£1.00", page), part
        assert re.search("Minutes of one person ?6", page), part
        assert ("Each person does 2 tasks. No one judges an item twice" in page) == (part != "settings/how-much")


async def test_without_a_limit_of_tasks_the_number_of_people_depends(engine, researcher):
    campaign = await study(engine, hits_per_annotator=None)
    for part in ("launch/confirm", "share"):
        page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/{part}")).text)
        assert "How many people you need depends on how many tasks each of them does." in page


async def test_programs_read_how_many_people_to_recruit(engine, api_client):  # noqa: F811  (the fixture)
    campaign = await study(engine)
    found = (await api_client.get(f"{API}/campaigns/{campaign.slug}")).json()["totals"]
    assert (found["people"], found["people_at_most"]) == (67, 76)
    assert (found["minutes_per_person"], found["pay_per_person"]) == (6, 1.0)
    assert (found["pay"], found["pay_at_most"]) == (67.0, 67.0)


async def test_programs_read_the_rewards_of_all_people_where_a_platform_pays_each_of_them(
    engine,
    api_client,  # noqa: F811  (the fixture)
):
    campaign = await study(engine, people_from="prolific", hits_per_annotator=4)
    found = (await api_client.get(f"{API}/campaigns/{campaign.slug}")).json()["totals"]
    # 35 to 43 people get the reward of 4 tasks each, although there are no more than 136 tasks.
    assert found["pay_per_person"] == 2.0
    assert (found["pay"], found["pay_at_most"]) == (2.0 * found["people"], 2.0 * found["people_at_most"])
    assert found["people"] < found["people_at_most"]
    assert found["pay"] != found["tasks"] * 0.5


async def test_a_study_has_as_many_places(engine):
    campaign = await study(engine)
    async with engine.connect() as connection:
        plan = StudyPlan.from_campaign(await load_campaign_with_progress_or_refuse(connection, campaign.slug))
    assert (plan.places, plan.reward, plan.minutes) == (67, 100, 6)


async def test_a_study_about_few_segments_pays_for_one_task_of_each(engine):
    campaign = await study(
        engine, outputs_table(segments=4), items_per_hit=2, hits_per_annotator=5, checks_percent=None
    )
    async with engine.connect() as connection:
        plan = StudyPlan.from_campaign(await load_campaign_with_progress_or_refuse(connection, campaign.slug))
    assert (plan.places, plan.reward, plan.minutes) == (5, 200, 12)


async def test_the_launch_command_tells_it_too(engine):
    campaign = await study(engine)
    async with engine.connect() as connection:
        told = sentences_on_totals(await load_campaign_for_page_or_refuse(connection, campaign.slug))
    assert told == (
        "600 judgments need 134 tasks, which also show gold items about 67 times; they pay £67.00. "
        "Recruit 67 to 76 people."
    )


REWARD = {
    "people_from": "prolific",
    "prolific_completion_code": "C1A2B3C4",
    "hits_per_annotator": 12,
    "checks_percent": 25,
    "pay_per_hit": 0.125,
    "currency": "USD",
}


async def test_all_places_say_the_same_cost_of_a_study_that_pays_each_person_one_reward(engine, researcher):
    # A person brings 12 * 4.75 = 57 judgments, so 600 need 11 people at $1.50. The last 10 may need 10 people more.
    campaign = await study(engine, **REWARD)
    page = f"/admin/campaigns/{campaign.slug}"
    before = [words((await researcher.get(f"{page}/{part}")).text) for part in ("settings/how-much", "launch/confirm")]
    await apply_action(engine, campaign)
    after = [words((await researcher.get(f"{page}{part}")).text) for part in ("", "/plan", "/share")]
    assert ["$16.50 to $31.50" in text for text in before + after] == [True] * 5
    assert not any("$15.88" in text for text in before + after)  # 127 tasks at $0.125


async def test_the_overview_counts_the_rewards_of_people_who_finished(engine, researcher):
    campaign = await apply_action(engine, await study(engine, **REWARD, judgments_per_item=2))
    page = f"/admin/campaigns/{campaign.slug}"
    for name, tasks in (("all tasks", 12), ("a part", 3)):
        person = await create_annotator(engine, campaign, name=name, platform="prolific")
        for _ in range(tasks):
            await submit_scores(engine, person, await try_to_lease_hit(engine, person))
        await find_or_lease_next_hit(engine, person)
    # 120 judgments need 3 people; the last 2 judgments may need 2 people.
    assert "$1.50 of about $4.50 to $7.50" in words((await researcher.get(page)).text)


async def test_everyone_in_a_rehearsal_of_such_a_study_gets_the_reward(engine, researcher):
    campaign = await apply_action(engine, await study(engine, **REWARD, judgments_per_item=2))
    await execute_sql(engine, "UPDATE campaigns SET rehearsal_of = id")
    person = await create_annotator(engine, campaign, name="simulated 1", platform="simulation")
    await submit_scores(engine, person, await try_to_lease_hit(engine, person))
    assert "$1.50 of about $4.50 to $7.50" in words((await researcher.get(f"/admin/campaigns/{campaign.slug}")).text)


async def test_the_small_preview_names_the_reward_of_a_person(engine, researcher):
    campaign = await study(engine, **REWARD, recruiting_minutes=8)
    preview = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit")).text)
    assert "about 8 minutes · $1.50 in all" in preview


async def test_before_the_launch_one_press_gives_each_person_the_tasks_that_show_all_items(engine, researcher):
    campaign = await study(engine, **REWARD)
    page = f"/admin/campaigns/{campaign.slug}"
    said = "Each person judges about 57 of the 60 items in 12 tasks, not all: gold items fill places, too."
    assert said in words((await researcher.get(f"{page}/launch/confirm")).text)
    assert (await researcher.post(f"{page}/tasks-for-all-items")).status_code == 303
    launch = words((await researcher.get(f"{page}/launch/confirm")).text)
    assert "Each person does 13 tasks." in launch
    assert "not all" not in launch
    people = (await totals_of(engine, campaign)).people
    assert people is not None
    assert people.reward == 1.5  # which stays
    line = "SELECT after ->> 'hits_per_annotator' FROM audit_log WHERE action = 'settings.changed'"
    assert await fetch_value(engine, line) == "13"


@pytest.mark.parametrize("tasks", [5, 13, None])
async def test_people_who_see_all_items_or_a_part_on_purpose_are_not_given_more_tasks(engine, researcher, tasks):
    campaign = await study(engine, **REWARD | {"hits_per_annotator": tasks})
    page = f"/admin/campaigns/{campaign.slug}/launch/confirm"
    assert "to show all items" not in words((await researcher.get(page)).text)


async def test_the_tasks_that_show_all_items_are_named_where_tasks_per_annotator_are_set(engine, researcher):
    campaign = await study(engine, **REWARD)
    page = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    assert "A task is 5 items, so 13 tasks show one person all 60 items." in words((await researcher.get(page)).text)
    entered = words((await researcher.get(f"{page}/totals", params={"items_per_hit": "4"})).text)
    assert "show one person all 60 items." in entered


async def test_where_an_assignment_is_one_task_the_assignments_and_their_reward_are_shown(engine, researcher, subtests):
    campaign = await study(engine, people_from="mturk")
    address = f"/admin/campaigns/{campaign.slug}"
    for page in (f"{address}/launch/confirm", f"{address}/plan", f"{address}/settings/how-much"):
        with subtests.test(page=page):
            text = words((await researcher.get(page)).text)
            assert "Assignments134" in text
            assert "Reward of one assignment£0.50" in text
            assert "Reward of one person" not in text
            assert "People67 to 76" in text
    recruit = words((await researcher.get(f"{address}/launch/confirm")).text)
    assert "One assignment is one task, and a person can do several: at most 2." in recruit
