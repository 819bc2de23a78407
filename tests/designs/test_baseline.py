"""Every other item against the baseline: it is in each HIT, is never drawn, and has no cap."""

import asyncio

import numpy as np
import pytest
from scipy.stats import pearsonr

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import lifecycle, summaries
from app.campaigns.settings import CampaignSettings
from app.database.bulk import open_snapshot
from app.database.session import create_engine
from app.designs.baseline import Baseline
from app.errors import Conflict, Gone
from app.record import replay
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.selection.index import AlgorithmOne
from app.selection.rule import ItemValues, SelectionSettings
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.designs.test_pairwise import LAWS


def against(name="v3", **settings):
    """The settings of a campaign with this baseline."""
    return {"design": "baseline", "design_settings": {"baseline": name}} | settings


async def verified(engine, campaign):
    async with open_snapshot(engine) as connection:
        return await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )


async def judgments(engine):
    return [taken for (taken,) in await fetch_rows(engine, "SELECT judgments FROM current_posteriors ORDER BY number")]


async def work_until_done(engine, assignment, cache, rng):
    while True:
        work = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if work.reason == "wait":
            await asyncio.sleep(0.01)
        elif work.hit is None:
            return work.reason
        else:
            places = [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]][rng.integers(3)]
            await asyncio.gather(*(submit_scores(engine, assignment, work.hit, scores=places) for _ in range(2)))


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
async def test_many_clients_give_every_other_item_what_it_wants_and_no_more(database_url, selection):
    engines = [create_engine(database_url, pool_size=8) for _ in range(2)]
    processes = [PosteriorCache(), PosteriorCache()]  # each stands for one server process with its own copy
    try:
        campaign = await create_running_campaign(
            engines[0], items=20, judgments_per_item=5, **against(selection=selection)
        )
        crowd = [await create_annotator(engines[0], campaign, f"a{k}") for k in range(16)]
        reasons = await asyncio.gather(
            *(
                work_until_done(engines[k % 2], who, processes[k % 2], np.random.default_rng(k))
                for k, who in enumerate(crowd)
            )
        )
        assert set(reasons) == {"all_done"}
        assert await judgments(engines[0]) == [5 * 19 if item == 3 else 5 for item in range(20)]
        assert set(await fetch_rows(engines[0], "SELECT cardinality(items), 3 = ANY(items) FROM responses")) == {
            (2, True)
        }
        assert (
            25 < await fetch_value(engines[0], "SELECT count(*) FROM responses WHERE items[1] = 3") < 70
        )  # a random side
        assert await fetch_value(engines[0], "SELECT status FROM campaigns") == "finished"
        assert (await verified(engines[0], campaign)).has_no_mismatches
    finally:
        for engine in engines:
            await engine.dispose()


async def test_who_sees_items_once_sees_the_baseline_in_each_hit(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=2, **against(repeat_items=False))
    who, cache = await create_annotator(engine, campaign), PosteriorCache()
    others = []
    for _ in range(4):
        hit = await try_to_lease_hit(engine, who, cache=cache)
        assert 3 in hit.items
        others += [item for item in hit.items if item != 3]
        await submit_scores(engine, who, hit, scores=[1.0, 2.0])
    assert sorted(others) == [0, 1, 2, 4]
    assert (await find_or_lease_next_hit(engine, who, cache=cache)).reason == "seen_all"
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "running"


async def test_the_last_item_alone_is_still_asked(engine):
    campaign = await create_running_campaign(engine, items=2, judgments_per_item=3, **against("v1"))
    who = await create_annotator(engine, campaign)
    for _ in range(3):
        await submit_scores(engine, who, await try_to_lease_hit(engine, who), scores=[1.0, 1.0])
    assert (await find_or_lease_next_hit(engine, who)).reason == "all_done"
    assert await judgments(engine) == [3, 3]


async def test_many_hold_the_baseline_at_once_but_an_item_only_as_often_as_it_is_wanted(engine):
    campaign = await create_running_campaign(engine, items=4, judgments_per_item=1, **against())
    crowd = [await create_annotator(engine, campaign, f"a{k}") for k in range(4)]
    hits = [await try_to_lease_hit(engine, who) for who in crowd[:3]]
    assert sorted(item for hit in hits for item in hit.items) == [0, 1, 2, 3, 3, 3]
    assert (await find_or_lease_next_hit(engine, crowd[3])).reason == "wait"
    await expire_leases(engine, hits[0])
    taken_over = await try_to_lease_hit(engine, crowd[3])
    assert sorted(taken_over.items) == sorted(hits[0].items)
    await submit_scores(engine, crowd[3], taken_over, scores=[1.0, 2.0])
    with pytest.raises(Gone) as refused:
        await submit_scores(engine, crowd[0], hits[0], scores=[1.0, 2.0])
    assert refused.value.code == "lease_expired"
    await expire_leases(engine, hits[1])
    await submit_scores(engine, crowd[1], hits[1], scores=[2.0, 1.0])  # late, and nobody needed its item
    assert (await try_to_lease_hit(engine, crowd[2])).id == hits[2].id  # still theirs
    await expire_leases(engine, hits[2])
    assert (await try_to_lease_hit(engine, crowd[2])).id == hits[2].id  # renewed
    await submit_scores(engine, crowd[2], hits[2], scores=[2.0, 1.0])
    assert await judgments(engine) == [1, 1, 1, 3]
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await verified(engine, campaign) == replay.Verification(3, 4, 0, [])


@pytest.mark.parametrize(
    ("settings", "items", "code", "said"),
    [
        (against("nobody"), 4, "baseline_unknown", "“nobody” is not the id of an item"),
        ({"design": "baseline"}, 4, "baseline_unknown", "No baseline is chosen"),
        (against("v0"), 1, "no_drawn_items", "has only the items"),
        (against("v0"), 0, "no_items", "no items yet"),
    ],
)
async def test_a_launch_without_the_baseline_or_without_others_is_refused(engine, settings, items, code, said):
    campaign = await create_running_campaign(engine, items=4, launched=False, **settings)
    async with engine.begin() as connection:
        await connection.exec_driver_sql(f"DELETE FROM items WHERE number >= {items}")
    with pytest.raises(Conflict, match=said) as refused:
        async with engine.begin() as connection:
            await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    assert refused.value.code == code
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "draft"


async def test_what_is_wanted_is_counted_without_the_baseline(app, researcher):
    campaign = await create_running_campaign(
        app.state.database, items=5, judgments_per_item=3, launched=False, **against()
    )
    assert "12 tasks" in (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    async with app.state.database.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    assert await fetch_value(app.state.database, "SELECT always_shown FROM campaigns") == [3]
    who = await create_annotator(app.state.database, campaign)
    await submit_scores(app.state.database, who, await try_to_lease_hit(app.state.database, who), scores=[1.0, 2.0])
    async with app.state.database.begin() as connection:
        found = await summaries.load_campaign_with_progress_or_refuse(connection, campaign.slug)
        assert (found.judgments_taken, found.judgments_wanted) == (1, 12)
    for page in ("", "/analysis", "/analysis?part=scores", "/settings/question", "/export", "/share"):
        reply = await researcher.get(f"/admin/campaigns/{campaign.slug}{page}")
        assert reply.status_code == 200, page
    assert "1 of 12" in (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text


async def test_previews_and_trials_show_the_baseline_too(app, client, researcher):
    campaign = await create_running_campaign(app.state.database, items=5, **against())
    preview = (await client.get(f"/mturk/{campaign.link_key}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")).text
    assert "verb 3" in preview
    for number in range(5):
        trial = (await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit?number={number}")).text
        assert trial.count('class="text"') == 2
        assert "verb 3" in trial
        assert "baseline" not in trial  # nobody is told which one it is


@pytest.mark.parametrize("law", LAWS)
async def test_what_a_simulated_crowd_believes_is_found_again_and_replayed_to_the_bit(engine, law):
    campaign = await create_running_campaign(engine, items=20, judgments_per_item=16, **against("v2", update_law=law))
    rng = np.random.default_rng(5)
    hits = await answer_hits_by_simulated_annotators_and_count(
        engine,
        campaign,
        hits=500,
        annotators=8,
        population=population_with_random_bias_only(0.3),
        truth_column=None,
        rng=rng,
        clock=lambda: NOW,
    )
    truth = np.random.default_rng(5).random(20)  # what the crowd drew first
    scores = [score for (score,) in await fetch_rows(engine, "SELECT score FROM current_posteriors ORDER BY number")]
    assert hits == 19 * 16
    assert pearsonr(scores, truth).statistic > 0.85
    assert await verified(engine, campaign) == replay.Verification(hits, 20, 0, [])


@pytest.mark.parametrize("iteration", [0, 1])
def test_an_iteration_asks_about_each_other_item_once(iteration):
    asking = SelectionSettings(judgments_per_item=4, items_per_hit=1, gamma=0.1, never_drawn=(3,))
    rng = np.random.default_rng(1)
    plan = AlgorithmOne().schedule_hits_of_iteration(
        ItemValues(np.full(6, 0.5), np.full(6, 0.1), np.zeros(6)), asking, iteration=iteration, rng=rng
    )
    assert sorted(draw.items for draw in plan) == [[0], [1], [2], [4], [5]]
    assert all(draw.items == [draw.leader] for draw in plan)


def test_an_index_never_draws_the_baseline_whatever_becomes_of_it():
    asking = SelectionSettings(judgments_per_item=2, items_per_hit=1, gamma=0.1, never_drawn=(1,))
    index = AlgorithmOne().make_selection_index(ItemValues(np.full(3, 0.5), np.full(3, 0.1), np.zeros(3)), asking)
    rng = np.random.default_rng(1)
    for taken in range(1, 5):
        index.update([1], [0.5], [0.2], [taken])
        index.require_consistency()
        draw = index.draw_hit_or_none(1, seen={0}, full={2}, leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng)
        assert draw is not None
        assert draw.items == [0]
    assert index.has_open_items_left_after_hit([0, 1], seen_items=[], seen_as_last_resort=True)
    index.update([0, 2], [0.5, 0.5], [0.1, 0.1], [2, 2])
    assert not index.has_open_items_left_after_hit([], seen_items=[], seen_as_last_resort=True)


def test_settings_say_what_is_drawn():
    assert Baseline(baseline="a").always_shown == ("a",)
    settings = CampaignSettings(name="A", question="B?", **against("a"))
    assert (settings.items_per_hit, settings.update_law) == (2, "trueskill")
