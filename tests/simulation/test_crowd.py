from collections import Counter
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sqlalchemy import text

from app.campaigns.lifecycle import change_campaign_status_or_refuse
from app.errors import Conflict, Invalid
from app.quality.checks import load_check_outcomes
from app.quality.run_rules import scan_annotators_and_record_findings
from app.record.replay import verify_by_replay_or_refuse
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import create_campaign_with_criteria
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import create_launched_campaign


def clock():
    """Return a clock that advances by a minute each time it is read."""
    minutes = count()
    return lambda: NOW + timedelta(minutes=next(minutes))


async def rehearse(engine, campaign, *, seed=1, **chosen):
    defaults: dict[str, Any] = {
        "hits": 40,
        "annotators": 5,
        "population": population_with_random_bias_only(0.1),
        "truth_column": None,
    }
    rng = np.random.default_rng(seed)
    return await answer_hits_by_simulated_annotators_and_count(
        engine, campaign, rng=rng, clock=clock(), **defaults | chosen
    )


async def test_a_simulated_crowd_recovers_the_truth_through_the_real_path(engine):
    campaign = await create_running_campaign(
        engine, items=40, launched=False, judgments_per_item=8, hits_per_annotator=1000
    )
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET fields = jsonb_build_object('oracle', number * 2.5)"))
        campaign = await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    await rehearse(engine, campaign, hits=1000, truth_column="oracle")
    scores = [score for (score,) in await fetch_rows(engine, "SELECT score FROM current_posteriors ORDER BY number")]
    assert stats.spearmanr(scores, np.arange(40)).statistic > 0.95
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    async with engine.begin() as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).mismatches == []


async def test_a_simulated_crowd_answers_by_every_criterion(engine):
    campaign = await create_campaign_with_criteria(engine, 3, items=30, judgments_per_item=8, cannot_be_judged=True)
    assert await rehearse(engine, campaign, hits=500, annotators=6, unjudgeable=0.1) > 40
    rows = await fetch_rows(
        engine, "SELECT score FROM current_posteriors WHERE judgments > 0 ORDER BY criterion, number"
    )
    correlations = np.corrcoef(np.reshape(rows, (3, -1)))[np.triu_indices(3, 1)]
    assert (np.abs(correlations) < 0.9).all()
    assert correlations.max() > 0.1
    async with engine.begin() as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def test_the_same_seed_gives_the_same_answers(engine):
    answers = []
    for _ in range(2):
        campaign = await create_running_campaign(engine)
        await rehearse(engine, campaign, hits=5)
        answers.append(
            await fetch_rows(
                engine, "SELECT items, values FROM responses WHERE campaign_id = :c ORDER BY seq", c=campaign.id
            )
        )
    assert answers[0] == answers[1]


@pytest.mark.parametrize(("status", "said"), [("draft", "launch it first"), ("finished", "hands out no HITs")])
async def test_a_campaign_that_is_not_open_gets_no_simulated_annotators(engine, status, said):
    campaign = await create_running_campaign(engine, launched=status != "draft")
    if status == "finished":
        async with engine.begin() as connection:
            campaign = await change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    with pytest.raises(Conflict, match=said) as refusal:
        await rehearse(engine, campaign)
    assert refusal.value.code == "not_running"
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


async def test_simulated_answers_never_mix_with_those_of_people(engine):
    campaign = await create_running_campaign(engine)
    await submit_scores(engine, me := await create_annotator(engine, campaign), await try_to_lease_hit(engine, me))
    with pytest.raises(Conflict) as refusal:
        await rehearse(engine, campaign)
    assert refusal.value.code == "people_have_answered"
    assert "another campaign" in refusal.value.message
    assert "EASEL_DATA_DIR" in refusal.value.message


async def test_simulated_answers_are_marked(engine):
    await rehearse(engine, await create_running_campaign(engine), hits=2)
    assert set(
        await fetch_rows(engine, "SELECT source, platform FROM responses JOIN annotators a ON a.id = annotator_id")
    ) == {("simulation", "simulation")}


@pytest.mark.parametrize(
    ("fields", "code"),
    [('{"verb": "run", "oracl": 1}', "column_unknown"), ('{"oracle": "seldom"}', "truth_not_numeric")],
)
async def test_a_truth_that_is_not_a_number_or_not_there_is_refused(engine, fields, code):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET fields = CAST(:fields AS jsonb)"), {"fields": fields})
    with pytest.raises(Invalid) as refusal:
        await rehearse(engine, campaign, truth_column="oracle")
    assert refusal.value.code == code
    assert code != "column_unknown" or "no column “oracle”. Choose one of verb" in refusal.value.message


async def test_a_simulated_crowd_judges_outputs_of_systems(engine):
    """The part of a segment that all systems share says nothing about them."""
    content = outputs_table(tuple(f"system {k}" for k in range(6)), segments=20)
    campaign = await create_campaign_of_systems(engine, content, items_per_hit=3, judgments_per_item=40)
    truth = np.random.default_rng(1)
    await rehearse(engine, campaign, hits=200, population=population_with_random_bias_only(0.15))
    scores = [score for (score,) in await fetch_rows(engine, "SELECT score FROM current_posteriors ORDER BY number")]
    assert stats.spearmanr(scores, truth.random(6)).statistic > 0.9
    used = [count for (count,) in await fetch_rows(engine, "SELECT count(*) FROM responses GROUP BY segment")]
    assert (len(used), max(used) - min(used)) == (20, 1)


async def test_who_may_answer_no_more_leaves_the_others_to_go_on(engine):
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=50, hits_per_annotator=2)
    assert await rehearse(engine, campaign) == 10
    told = await fetch_rows(engine, "SELECT count(*) FROM responses GROUP BY annotator_id")
    assert told == [(2,)] * 5


async def test_who_has_seen_all_items_leaves_the_others_to_go_on(engine):
    campaign = await create_running_campaign(
        engine, items=12, judgments_per_item=50, items_per_hit=6, repeat_items=False
    )
    assert await rehearse(engine, campaign) == 10
    assert set(await fetch_rows(engine, "SELECT count(*) FROM responses GROUP BY annotator_id")) == {(2,)}


CHECKED = "id,text,check,expected,tolerance\n" + "".join(f"v{k},verb {k},,,\n" for k in range(30))
SCORED = "".join(f"g{k},gold {k},gold,{value},15\n" for k, value in enumerate((10, 90, 50, 80)))
LABELLED = "".join(
    f"g{k},gold {k},gold,{label},\n" for k, label in enumerate(("agree", "disagree", "neutral", "agree"))
)
ORDERED = "".join(f"g{k},gold {k},gold,{1 + k % 2},\n" for k in range(8))


@pytest.mark.parametrize(
    ("design", "size", "gold", "chance"),
    [("slider", 5, SCORED, 0.26), ("ordinal", 5, LABELLED, 0.2), ("pairwise", 2, ORDERED, 0.5)],
)
async def test_simulated_annotators_get_gold_items_which_careful_ones_meet_and_guessers_meet_by_chance(
    engine, design, size, gold, chance
):
    settings = {"design": design, "items_per_hit": size, "checks_percent": 50, "hits_per_annotator": 8}
    campaign = await create_launched_campaign(engine, CHECKED + gold, judgments_per_item=90, **settings)
    population = population_with_random_bias_only(0.1, 0.5)
    assert await rehearse(engine, campaign, hits=160, annotators=20, population=population) == 160
    async with engine.connect() as connection:
        outcomes = await load_check_outcomes(connection, campaign)
    assert len(outcomes) == 80  # four for each, one in every second task
    met = {
        number: np.mean([one.met for one in outcomes if one.annotator_id == number])
        for number in {one.annotator_id for one in outcomes}
    }
    shares = sorted(met.values())
    assert np.mean(shares[10:]) > 0.9  # the careful half
    assert np.mean(shares[:10]) < chance + 0.2
    assert await fetch_value(engine, "SELECT max(judgments) FROM posteriors") > 0


SEGMENTS = "system,segment,output,check,expected,tolerance\n" + "".join(
    f"{system},s{k},{system} on {k},,,\n" for k in range(40) for system in ("ape", "bee", "cat", "doe")
)
BROKEN = "".join(f"bad,s{k},broken {k},gold,{5 + k % 3},15\n" for k in range(0, 40, 2))


async def test_annotators_of_systems_who_guess_are_flagged_by_gold_outputs_and_careful_ones_are_not(engine):
    settings = {"items_per_hit": 3, "checks_percent": 50, "hits_per_annotator": 30, "judgments_per_item": 9000}
    campaign = await create_campaign_of_systems(engine, SEGMENTS + BROKEN, **settings)
    population = population_with_random_bias_only(0.1, 0.3)
    assert await rehearse(engine, campaign, hits=450, annotators=15, population=population) == 450
    async with engine.connect() as connection:
        outcomes = await load_check_outcomes(connection, campaign)
    assert len(outcomes) == 225
    failures = Counter(one.annotator_id for one in outcomes if not one.met)
    guessers = {number for number, failed in failures.items() if failed > 7}
    await scan_annotators_and_record_findings(engine, campaign.id, now=NOW)
    flagged = await fetch_rows(engine, "SELECT annotator_id FROM findings WHERE rule = 'gold'")
    assert {number for (number,) in flagged} == guessers
    assert 3 <= len(guessers) <= 6
    async with engine.begin() as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).mismatches == []
