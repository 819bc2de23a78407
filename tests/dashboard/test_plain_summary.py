"""The overview begins with sentences that need no statistics; the cards have the figures."""

import re

import pytest

from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    find_or_lease_next_hit,
    submit_scores,
)
from tests.campaigns.drafts import apply_action

pytestmark = pytest.mark.usefixtures("app")


async def answer_tasks(engine, campaign, annotators, tasks=3):
    for number in range(annotators):
        me = await create_annotator(engine, campaign, f"P{number}", assignment=f"visit {number}")
        for _ in range(tasks):
            if work := (await find_or_lease_next_hit(engine, me)).hit:
                scores = [min(100.0, 9.0 * item + 3.0 * number) for item in work.items]
                await submit_scores(engine, me, work, scores=scores)


async def summary_of(researcher, campaign):
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    found = re.search(r'<p class="in-words">(.*?)</p>', html)
    return found[1] if found else ""


async def test_before_the_first_answer_there_is_nothing_to_say(engine, researcher):
    assert await summary_of(researcher, await create_running_campaign(engine)) == ""


async def test_one_person_says_little_and_the_summary_says_so(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=4)
    await answer_tasks(engine, campaign, 1, tasks=2)
    assert await summary_of(researcher, campaign) == (
        "1 person has given 10 judgments: on average 1 of the 4 that each item should get. How sure the scores are "
        "cannot be told yet: that takes more judgments of the same items by others. Items whose lines overlap in the "
        "table may still change places."
    )


async def test_several_people_tell_how_sure_the_scores_are(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=40)
    await answer_tasks(engine, campaign, 5, tasks=2)
    summary = await summary_of(researcher, campaign)
    assert summary.startswith("5 people have given 50 judgments: on average 5 of the 40 that each item should get.")
    assert re.search(r"The score of a typical item is sure to about ± \d+\.\d points: if many more people", summary)


async def test_of_compared_items_the_summary_is_about_their_win_rate(engine, researcher):
    campaign = await create_running_campaign(engine, items=4, design="pairwise", items_per_hit=2, judgments_per_item=40)
    for number in range(8):
        me = await create_annotator(engine, campaign, f"P{number}", assignment=f"visit {number}")
        for _ in range(2):
            if work := (await find_or_lease_next_hit(engine, me)).hit:
                places = [1.0, 2.0] if work.items[0] > work.items[1] or number == 0 else [2.0, 1.0]
                await submit_scores(engine, me, work, scores=places)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert re.search(r"The win rate of a typical item is sure to about ± \d+\.\d %: if many more people", page)
    assert "typical interval of the win rate" in page


async def test_with_a_goal_the_summary_says_whether_it_is_reached(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=40, goal="best", best_items=3)
    await answer_tasks(engine, campaign, 3, tasks=2)
    assert (await summary_of(researcher, campaign)).endswith("The goal is not reached yet.")


async def test_few_judgments_of_many_items_are_not_said_to_be_none(engine, researcher):
    campaign = await create_running_campaign(engine, items=120, judgments_per_item=10)
    await answer_tasks(engine, campaign, 1, tasks=1)
    begin = "1 person has given 5 judgments: on average less than 0.1 of the 10 that each item should get."
    assert (await summary_of(researcher, campaign)).startswith(begin)


async def test_a_finished_campaign_is_not_told_to_stop_or_to_wait(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=40, goal="best", best_items=3)
    await answer_tasks(engine, campaign, 3, tasks=2)
    await apply_action(engine, campaign, "finish")
    assert (await summary_of(researcher, campaign)).endswith("The goal was not reached.")
