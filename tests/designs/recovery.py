"""A campaign answered by a simulated crowd that knows the truth: does a law find it?"""

from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
from scipy import stats
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns.lifecycle import change_campaign_status_or_refuse
from app.designs.campaign import Campaign
from app.record.replay import verify_by_replay_or_refuse
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows

ITEMS = 24


async def run_campaign_with_crowd(engine: AsyncEngine, **settings: Any) -> Campaign:
    """A campaign to its end, whose items stand at even distances on the scale, the last the highest."""
    campaign = await create_running_campaign(engine, items=ITEMS, launched=False, judgments_per_item=8, **settings)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET fields = jsonb_build_object('oracle', number)"))
        campaign = await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    minutes, rng = count(), np.random.default_rng(1)
    crowd: dict[str, Any] = {"hits": 1000, "annotators": 8, "truth_column": "oracle", "rng": rng}
    await answer_hits_by_simulated_annotators_and_count(
        engine,
        campaign,
        population=population_with_random_bias_only(0.1),
        clock=lambda: NOW + timedelta(minutes=next(minutes)),
        **crowd,
    )
    return campaign


async def assert_order_recovered(engine: AsyncEngine, campaign: Campaign) -> None:
    """The order of the scores is nearly the true one, and what is stored of them is their replay, to the bit."""
    scores = [score for (score,) in await fetch_rows(engine, "SELECT score FROM current_posteriors ORDER BY number")]
    assert stats.spearmanr(scores, np.arange(ITEMS)).statistic > 0.93
    async with engine.begin() as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).mismatches == []
