"""Campaigns for the best items or a threshold ask about items that may lie on either side, on the serving path."""

from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.errors import Conflict
from app.selection.expected_gain import log_gain_from_posterior
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import replay_is_clean


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
@pytest.mark.parametrize("law", ["easl", "easl-aware", "ra"])
@pytest.mark.parametrize("goal", [{"rule": "best", "best_items": 3}, {"rule": "threshold", "threshold": 18}])
async def test_the_next_hit_is_led_by_the_item_of_which_an_answer_settles_most(engine, goal, law, selection):
    campaign = await create_running_campaign(
        engine, items=12, items_per_hit=3, judgments_per_item=20, selection=selection, update_law=law, **goal
    )
    for name in range(4 * 3):  # three judgments of every item, and as many whole iterations
        me = await create_annotator(engine, campaign, f"ann {name}")
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=[9.0 * item for item in hit.items])
    known = await fetch_rows(engine, "SELECT score, variance, judgments FROM current_posteriors ORDER BY number")
    score, variance, judgments = (np.array(column) for column in zip(*known, strict=True))
    best = np.sort(score)[::-1]
    line = (best[2] + best[3]) / 2 if goal["rule"] == "best" else 0.18
    gains, distance = log_gain_from_posterior(score - line, variance, judgments), np.abs(score - line)
    hits = [
        await try_to_lease_hit(engine, await create_annotator(engine, campaign, name))
        for name in ("one", "two", "three", "four")
    ]
    leaders = [leader for (leader,) in await fetch_rows(engine, "SELECT leader FROM hits ORDER BY id DESC LIMIT 4")]
    assert len(hits) == 4
    if selection == "streaming":
        assert distance[leaders[-1]] == pytest.approx(distance[judgments == judgments[leaders[-1]]].min())
    else:  # whose order within an iteration is another matter
        assert min(gains[leaders]) >= np.sort(gains)[-4] - 1e-9
    assert await replay_is_clean(engine, campaign.slug)


async def test_far_from_the_line_less_is_asked(engine):
    campaign = await create_running_campaign(
        engine, items=20, items_per_hit=2, judgments_per_item=30, rule="threshold", threshold=50, gamma=0.02
    )
    for name in range(120):
        me = await create_annotator(engine, campaign, f"ann {name}")
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=[5.0 * item for item in hit.items])
    judgments = dict(await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors"))
    assert min(judgments[item] for item in (9, 10)) > 3 * max(judgments[item] for item in (0, 1, 18, 19))


async def test_for_the_whole_scale_everything_is_asked_about_as_often(engine):
    campaign = await create_running_campaign(engine, items=17, items_per_hit=3, judgments_per_item=20, rule="scores")
    for name in range(20):
        me = await create_annotator(engine, campaign, f"ann {name}")
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
        judgments = [count for (count,) in await fetch_rows(engine, "SELECT judgments FROM current_posteriors")]
        assert max(judgments) - min(judgments) <= 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_of_each_hit_it_is_stored_why_it_was_drawn_and_how_probable_its_leader_was(engine):
    campaign = await create_running_campaign(engine, items=6, items_per_hit=2, judgments_per_item=20)
    first = await create_annotator(engine, campaign, "first")
    hit = await try_to_lease_hit(engine, first)
    await submit_scores(engine, first, hit, scores=[50.0, 90.0])
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "second"))
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "third"))
    assert await fetch_rows(engine, "SELECT drawn_because, leader_probability FROM hits ORDER BY id") == [
        ("least_certain", 1 / 6),
        ("least_certain", 1 / 4),
        ("least_certain", 1 / 3),
    ]


async def test_of_a_plan_too(engine):
    campaign = await create_running_campaign(
        engine, items=6, items_per_hit=2, judgments_per_item=20, selection="iterations"
    )
    me = await create_annotator(engine, campaign, "me")
    for _ in range(4):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    found = await fetch_rows(engine, "SELECT drawn_because, leader_probability FROM hits ORDER BY id")
    assert found[:3] == [("first_round", 1.0)] * 3
    assert found[3][0] == "least_certain"
    assert 0 < found[3][1] <= 1


async def test_of_systems_two_neighbours_come_that_are_hard_to_tell_apart(engine):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=25), items_per_hit=2, judgments_per_item=50, rule="systems"
    )
    me = await create_annotator(engine, campaign, "me")
    for _ in range(24):
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=[{0: 10.0, 1: 12.0, 2: 50.0, 3: 90.0}[item] for item in hit.items])
    asked = await fetch_rows(engine, "SELECT items, drawn_because FROM hits ORDER BY id DESC LIMIT 16")
    pairs = Counter((min(items), max(items)) for items, _ in asked)
    assert {after - before for before, after in pairs} == {1}
    assert pairs[0, 1] > 2 * max(pairs[1, 2], pairs[2, 3])
    assert {because for _, because in asked} == {"hardest_neighbours"}
    assert await replay_is_clean(engine, campaign.slug)


async def test_the_rule_for_systems_is_refused_where_items_are_none(engine):
    with pytest.raises(Conflict) as refused:
        await create_running_campaign(engine, items=6, rule="systems")
    assert refused.value.code == "rule_needs_systems"


def test_a_goal_that_the_scores_cannot_tell_of_is_refused(subtests):
    for chosen in (
        {"rule": "threshold", "update_law": "trueskill", "design": "pairwise"},
        {"rule": "best", "design": "categories", "design_settings": {"labels": ["a", "b"]}},
        {"rule": "best", "best_items": 0},
        {"rule": "threshold", "threshold": 101},
    ):
        with subtests.test(chosen=chosen), pytest.raises(ValidationError):
            CampaignSettings.model_validate({"name": "A", "question": "B?"} | chosen)
