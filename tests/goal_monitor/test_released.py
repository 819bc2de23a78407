"""Items that are released one by one as they settle."""

import asyncio
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sqlalchemy import text

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.campaigns.summaries import load_campaign_with_progress_or_refuse
from app.database.bulk import open_snapshot
from app.database.session import borrow_driver_in_transaction
from app.goal_monitor import release
from app.goal_monitor.monitor import (
    enforce_goal_and_return_state_or_none,
    store_goal_alert_and_stop_campaign_if_chosen,
)
from app.goals.progress import Progress, goal_progress_or_none
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.quality import decisions
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    store_settings,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.campaigns.drafts import replay_is_clean
from tests.unsaved import unsaved

RELEASES: dict[str, Any] = {
    "goal": "threshold",
    "threshold": 50,
    "when_reached": "release",
    "judgments_per_item": 8,
    "repeat_items": False,
}
UNSURE = {8, 9}
SETTLED = "SELECT number FROM current_posteriors WHERE settled ORDER BY number"


def score_by(person: int, item: int) -> float:
    """Return a score on which all people agree, except for the last two items."""
    if item in UNSURE:
        return 30.0 if (person + item) % 2 else 70.0
    return [90.0, 10.0][item % 2] + 3 * (person % 3 - 1)


async def answered(engine, campaign, people, cache=None):
    """Let these people answer every HIT that they get."""
    for person in people:
        assignment = await create_annotator(engine, campaign, f"p{person}")
        while (hit := (await find_or_lease_next_hit(engine, assignment, cache=cache)).hit) is not None:
            await submit_scores(engine, assignment, hit, scores=[score_by(person, item) for item in hit.items])


async def settled_items(engine, campaign) -> set[int]:
    """Return the items that are settled after a scan."""
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    return {number for (number,) in await fetch_rows(engine, SETTLED)}


async def judgments(engine) -> list[int]:
    return [count for (count,) in await fetch_rows(engine, "SELECT judgments FROM current_posteriors ORDER BY number")]


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
async def test_who_comes_later_is_asked_about_the_others_until_these_have_all_judgments(engine, selection):
    campaign = await create_running_campaign(engine, items=10, selection=selection, **RELEASES)
    assert await settled_items(engine, campaign) == set()
    await answered(engine, campaign, range(4))
    assert await settled_items(engine, campaign) == {*range(10)} - UNSURE
    await answered(engine, campaign, range(4, 9))
    assert await judgments(engine) == [4] * 8 + [8, 8]
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await replay_is_clean(engine, campaign.slug)


async def test_another_process_learns_of_it_with_its_next_request(engine):
    campaign, other = await create_running_campaign(engine, items=10, **RELEASES), PosteriorCache()
    await answered(engine, campaign, range(4), cache=other)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "late"), cache=other)
    assert {*hit.items} == UNSURE
    await execute_sql(engine, "UPDATE campaigns SET threshold = 90")
    assert 0 not in await settled_items(engine, campaign)
    later = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "later"), cache=other)
    assert {*later.items} - UNSURE


async def test_what_is_settled_no_longer_since_answers_count_no_more_is_asked_about_again(engine):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    await answered(engine, campaign, range(4))
    assert await settled_items(engine, campaign)
    async with engine.begin() as connection:
        people = (await connection.execute(text("SELECT id FROM annotators ORDER BY id"))).scalars().all()
        for person in people[1:]:
            await decisions.exclude_annotator(connection, campaign, person, reason="test", now=NOW)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await settled_items(engine, campaign) == set()
    assert await replay_is_clean(engine, campaign.slug)
    await answered(engine, campaign, range(4, 7))
    assert await judgments(engine) == [4] * 10


async def test_a_hit_with_a_settled_item_can_still_be_answered(engine):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    late = await create_annotator(engine, campaign, "late")
    hit = await try_to_lease_hit(engine, late)
    await answered(engine, campaign, range(4))
    settled = await settled_items(engine, campaign)
    assert settled & {*hit.items}
    assert (await submit_scores(engine, late, hit, scores=[score_by(5, item) for item in hit.items])).seq
    assert await settled_items(engine, campaign) == settled


@pytest.mark.parametrize(
    "chosen", [{"goal": "none"}, {"when_reached": "tell"}, {"goal": "intervals", "goal_width": 1.0}], ids=str
)
async def test_items_of_another_goal_are_asked_about_again(engine, chosen):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    await answered(engine, campaign, range(4))
    assert await settled_items(engine, campaign)
    await store_settings(engine, **chosen)
    assert await settled_items(engine, campaign) == set()


async def test_a_campaign_ends_when_all_its_items_are_settled(engine):
    campaign = await create_running_campaign(engine, items=8, **RELEASES)
    await answered(engine, campaign, range(4))
    assert await settled_items(engine, campaign) == {*range(8)}
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"


@pytest.mark.parametrize("chosen", [{"goal": "none"}, {"goal_percent": 99}], ids=str)
async def test_who_reopens_what_ended_so_goes_on_until_the_next_look(engine, chosen):
    campaign = await create_running_campaign(engine, items=8, **RELEASES)
    await answered(engine, campaign, range(4))
    assert await settled_items(engine, campaign)
    await store_settings(engine, **chosen)
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "reopen", now=NOW)
    assert await fetch_rows(engine, SETTLED) == []
    await answered(engine, campaign, [4])
    assert await judgments(engine) == [5] * 8
    assert await replay_is_clean(engine, campaign.slug)


async def test_what_a_look_finds_of_a_goal_that_is_another_one_meanwhile_counts_no_more(engine):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    await answered(engine, campaign, range(4))
    await store_settings(engine, goal="none")
    late = release.SettledChange(np.array([0]), np.array([True]))
    assert not await release.try_to_store_settled_flags(engine, campaign, late)
    await store_goal_alert_and_stop_campaign_if_chosen(engine, campaign, Progress("All are settled", 1.0, 1.0), now=NOW)
    assert await fetch_rows(engine, "SELECT releases, goal_reached FROM campaigns") == [(0, None)]


async def test_of_several_looks_at_once_one_releases(engine):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    await answered(engine, campaign, range(4))
    await asyncio.gather(*(enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW) for _ in range(3)))
    assert await fetch_value(engine, "SELECT releases FROM campaigns") == 1
    assert await settled_items(engine, campaign) == {*range(10)} - UNSURE


async def test_an_item_is_released_once_every_lease_that_came_first_is_committed(engine):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    annotator = await create_annotator(engine, campaign)
    change = release.SettledChange(np.arange(10), np.ones(10, bool))
    async with borrow_driver_in_transaction(engine) as holding:  # the lease has counted the room, and waits to insert
        await holding.execute("LOCK TABLE hits IN SHARE MODE")
        leasing = asyncio.create_task(try_to_lease_hit(engine, annotator))
        await wait_until(engine, requests_are_waiting_sql(1))
        releasing = asyncio.create_task(release.try_to_store_settled_flags(engine, campaign, change))
        await wait_until(engine, requests_are_waiting_sql(2))
    assert (await leasing).items
    assert await releasing


async def test_a_look_of_before_another_release_changes_nothing(engine):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    await answered(engine, campaign, range(4))
    settled = await settled_items(engine, campaign)
    late = release.SettledChange(np.array([0, 8]), np.array([False, True]))
    assert not await release.try_to_store_settled_flags(engine, campaign, late)
    assert await settled_items(engine, campaign) == settled


async def test_what_is_settled_is_told(engine, researcher):
    campaign = await create_running_campaign(engine, items=10, **RELEASES)
    await answered(engine, campaign, range(4))
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert "8 items are settled, and annotators are no longer asked about them" in page
    assert page.count('class="settled"') == 8
    async with open_snapshot(engine) as connection:
        assert (
            await load_campaign_with_progress_or_refuse(connection, campaign.slug)
        ).judgments_wanted == 8 * 4 + 2 * 8


@pytest.mark.parametrize("goal", ["halves", "order"])
def test_what_is_said_of_all_items_together_releases_none(goal):
    with pytest.raises(ValidationError, match="no item can be released on its own"):
        CampaignSettings.model_validate({"name": "A", "question": "B?", "goal": goal, "when_reached": "release"})


@pytest.mark.parametrize(("goal", "settled"), [("threshold", [0, 1]), ("best", [0, 1, 2]), ("intervals", [0, 1])])
def test_each_goal_says_which_items_are_settled(goal, settled):
    """Two items that annotators agree on, high and low, and one in the middle that they do not: of the line it is on
    neither side, but surely none is better than the first.
    """
    noise = np.array([1, -1] * 4)
    scores = np.concatenate((0.9 + 0.02 * noise, 0.1 + 0.02 * noise, 0.5 + 0.3 * noise))
    known = moderated_means_of_tally(
        Tally.empty(3).with_judgments_added(np.repeat([0, 1, 2], 8).tolist(), [*range(8)] * 3, scores)
    )
    numbers: dict[str, Any] = {"threshold": 50, "best_items": 1, "goal_correlation": 0.9}
    numbers |= {"goal_percent": 95, "goal_within": 5, "goal_width": 20}
    found = goal_progress_or_none(unsaved(goal=goal, when_reached="release", **numbers), known, known.mean)
    assert found is not None
    assert found.settled_items.tolist() == settled
    assert found.value == pytest.approx(len(settled) / 3)


@pytest.mark.parametrize(("people", "settled"), [(10, 0), (11, 2)])
def test_nothing_is_settled_before_it_is_known_how_far_annotators_differ(people, settled):
    """Ten scores of two items tell it with 18 degrees of freedom, eleven with 20."""
    noise = np.resize([0.01, -0.01], people)
    scores = np.concatenate((0.9 + noise, 0.1 + noise))
    known = moderated_means_of_tally(
        Tally.empty(2).with_judgments_added(np.repeat([0, 1], people).tolist(), [*range(people)] * 2, scores)
    )
    narrow = {"goal": "intervals", "goal_width": 20, "goal_percent": 95, "goal_within": 5, "goal_correlation": 0.9}
    campaign = unsaved(when_reached="release", threshold=50, best_items=1, **narrow)
    found = goal_progress_or_none(campaign, known, known.mean)
    assert found is not None
    assert len(found.settled_items) == settled
