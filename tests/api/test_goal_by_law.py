"""By what a goal is measured: `easl-aware` knows who answers at random, plain means do not."""

from typing import Any

import numpy as np
import pytest

from app.goal_monitor.monitor import enforce_goal_and_return_state_or_none
from app.goals import estimates
from app.goals.estimates import GoalEvidence
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.quality import decisions
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.unsaved import unsaved

ITEMS, PEOPLE, BEST = 20, 6, 5
AT_RANDOM = {2, 5}
GOAL: dict[str, Any] = {
    "goal": "best",
    "best_items": BEST,
    "goal_within": 15,
    "when_reached": "pause",
    "items_per_hit": ITEMS // 2,
    "judgments_per_item": 20,
    "repeat_items": False,
}


def points_of(person: int) -> list[float]:
    """Return a person's points for all items; a third of the people answer at random, the others prefer the first
    five items.
    """
    rng = np.random.default_rng(person)
    careful = np.where(np.arange(ITEMS) < BEST, 85, 15 + 2 * np.arange(ITEMS)) + rng.normal(0, 6, ITEMS)
    points = 100 * rng.random(ITEMS) if person in AT_RANDOM else careful
    found: list[float] = np.clip(np.round(points), 0, 100).tolist()
    return found


async def answered(engine, law: str, **more: Any) -> Any:
    """Create a campaign under this law in which all people have judged all items."""
    campaign = await create_running_campaign(engine, items=ITEMS, update_law=law, **GOAL | more)
    for person in range(PEOPLE):
        assignment, points = await create_annotator(engine, campaign, f"p{person}"), points_of(person)
        for _ in range(2):
            hit = await try_to_lease_hit(engine, assignment)
            await submit_scores(engine, assignment, hit, scores=[points[item] for item in hit.items])
    return campaign


@pytest.mark.parametrize(("law", "said"), [("easl", ""), ("easl-aware", " Measured by the scores of EASL-aware.")])
async def test_people_who_answer_at_random_keep_no_campaign_from_its_goal_if_its_law_knows_them(
    engine, api_client, researcher, law, said
):
    campaign, knows = await answered(engine, law), law == "easl-aware"
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    goal = (await api_client.get(f"/api/v1/campaigns/{campaign.slug}/goal")).json()
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert await fetch_value(engine, "SELECT status FROM campaigns") == ("paused" if knows else "running")
    assert (goal["reached"], goal["measured_by"]) == (knows, law if knows else "means")
    assert f"Now it is {100 * goal['now']:.0f} %.{said}</span>" in page


async def test_a_law_measures_by_the_answers_that_count(engine):
    campaign = await answered(engine, "easl-aware")
    people = [number for (number,) in await fetch_rows(engine, "SELECT id FROM annotators ORDER BY id")]
    async with engine.begin() as connection:
        for person in {*range(1, PEOPLE)} - AT_RANDOM:
            await decisions.exclude_annotator(connection, campaign, people[person], reason="test", now=NOW)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "running"


async def test_items_are_released_by_what_the_law_knows(engine):
    settled = []
    for law in ("easl", "easl-aware"):
        campaign = await answered(engine, law, goal="intervals", goal_width=11, when_reached="release")
        await enforce_goal_and_return_state_or_none(engine, campaign.id, now=NOW)
        settled.append(await fetch_value(engine, "SELECT sum(releases) FROM campaigns"))
    assert settled == [0, 1]


def evidence_of(people: int, law: str = "easl-aware", pieces: int = 1) -> GoalEvidence:
    found = GoalEvidence.empty(ONLINE_LAWS[law], ITEMS)
    items, who = np.tile(np.arange(ITEMS), people), np.repeat(np.arange(people) + 7, ITEMS)
    scores = np.concatenate([points_of(person) for person in range(people)]) / 100
    for some in np.array_split(np.arange(len(items)), pieces):
        found = found.with_judgments_added(items[some], who[some], scores[some])
    return found


def source_of_estimates(found: GoalEvidence, goal: str = "best", when_reached: str = "pause") -> str:
    return found.goal_estimates(
        unsaved(goal=goal, when_reached=when_reached), moderated_means_of_tally(found.tally)
    ).source


def test_the_means_count_where_a_law_tells_nothing_of_its_own():
    assert source_of_estimates(evidence_of(PEOPLE)) == "easl-aware"
    assert source_of_estimates(evidence_of(PEOPLE, "easl")) == "means"
    assert {source_of_estimates(evidence_of(PEOPLE), goal) for goal in ("threshold", "halves", "order")} == {"means"}
    assert source_of_estimates(evidence_of(PEOPLE), "best", "release") == "means"
    assert source_of_estimates(evidence_of(1)) == "means"


def test_the_means_count_of_more_judgments_than_a_law_is_fitted_to_in_time(monkeypatch):
    monkeypatch.setattr(estimates, "MAX_FITTED_JUDGMENTS", PEOPLE * ITEMS - 1)
    found = evidence_of(PEOPLE, pieces=3)
    assert (source_of_estimates(found), found.fitted_judgment_count) == ("means", 0)


def test_what_a_law_says_does_not_depend_on_how_the_answers_come_in_pieces():
    whole, pieces = evidence_of(PEOPLE).law_estimates_or_none, evidence_of(PEOPLE, pieces=7).law_estimates_or_none
    assert whole is not None
    assert pieces is not None
    np.testing.assert_array_equal(whole.mean, pieces.mean)
    np.testing.assert_array_equal(whole.standard_error, pieces.standard_error)
