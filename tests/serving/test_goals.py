"""Campaigns for the best items or a threshold ask, through the serving path, about whoever may lie on either side."""

import numpy as np
import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.selection.cut import log_gain
from tests.campaigns.drafts import is_clean
from tests.serving.campaigns import annotator, hit_of, running, submit, values


@pytest.mark.parametrize("selection", ["streaming", "iterations"])
@pytest.mark.parametrize("law", ["easl", "easl-aware", "ra"])
@pytest.mark.parametrize("goal", [{"rule": "best", "best_items": 3}, {"rule": "threshold", "threshold": 18}])
async def test_the_next_hit_is_led_by_the_item_of_which_an_answer_settles_most(engine, goal, law, selection):
    campaign = await running(
        engine, items=12, items_per_hit=3, judgments_per_item=20, selection=selection, update_law=law, **goal
    )
    for name in range(4 * 3):  # three judgments of every item, and as many whole iterations
        me = await annotator(engine, campaign, f"ann {name}")
        hit = await hit_of(engine, me)
        await submit(engine, me, hit, scores=[9.0 * item for item in hit.items])
    known = await values(engine, "SELECT score, variance, judgments FROM current_posteriors ORDER BY number")
    score, variance, judgments = (np.array(column) for column in zip(*known, strict=True))
    best = np.sort(score)[::-1]
    line = (best[2] + best[3]) / 2 if goal["rule"] == "best" else 0.18
    gains = log_gain(score - line, variance, judgments)
    hits = [await hit_of(engine, await annotator(engine, campaign, name)) for name in ("one", "two", "three", "four")]
    leaders = [leader for (leader,) in await values(engine, "SELECT leader FROM hits ORDER BY id DESC LIMIT 4")]
    assert len(hits) == 4
    if selection == "streaming":
        assert gains[leaders[-1]] == pytest.approx(gains.max())
    else:  # whose order within an iteration is another matter
        assert min(gains[leaders]) >= np.sort(gains)[-4] - 1e-9
    assert await is_clean(engine, campaign.slug)


async def test_far_from_the_line_less_is_asked(engine):
    campaign = await running(
        engine, items=20, items_per_hit=2, judgments_per_item=30, rule="threshold", threshold=50, gamma=0.02
    )
    for name in range(120):
        me = await annotator(engine, campaign, f"ann {name}")
        hit = await hit_of(engine, me)
        await submit(engine, me, hit, scores=[5.0 * item for item in hit.items])
    judgments = dict(await values(engine, "SELECT number, judgments FROM current_posteriors"))
    assert min(judgments[item] for item in (9, 10)) > 3 * max(judgments[item] for item in (0, 1, 18, 19))


@pytest.mark.parametrize(
    "chosen",
    [
        {"rule": "threshold", "update_law": "trueskill", "design": "pairwise"},
        {"rule": "best", "design": "categories", "design_settings": {"labels": ["a", "b"]}},
        {"rule": "best", "best_items": 0},
        {"rule": "threshold", "threshold": 101},
    ],
)
def test_a_goal_that_the_scores_cannot_tell_of_is_refused(chosen):
    with pytest.raises(ValidationError):
        CampaignSettings.model_validate({"name": "A", "question": "B?"} | chosen)
