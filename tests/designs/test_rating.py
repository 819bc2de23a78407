from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.designs.rating import Rating
from tests.designs.recovery import assert_order_recovered, run_campaign_with_crowd
from tests.laws import SCORE_LAWS

LABELS = {"low_label": "not at all", "high_label": "perfectly"}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (1, "You see one item at a time and place it on a scale from “not at all” to “perfectly”."),
        (4, "You see 4 items at a time and place each by itself on a scale from “not at all” to “perfectly”."),
    ],
)
def test_annotators_are_told_whether_items_come_alone(items, said):
    assert Rating().task_message_for_first_page(SimpleNamespace(items_per_hit=items, **LABELS)) == said


@pytest.mark.parametrize("law", ["ra", "trueskill"])
def test_a_law_of_orders_is_refused_where_items_come_alone(law):
    with pytest.raises(ValidationError, match="a task needs two items or more"):
        CampaignSettings(name="A", question="B?", design="rating", update_law=law)
    pair = CampaignSettings(name="A", question="B?", design="rating", update_law=law, items_per_hit=2)
    assert pair.update_law == law


# One law that reads orders, and the one that keeps most; test_every_law.py has the arithmetic of all.
@pytest.mark.parametrize("law", ["trueskill", "easl-aware"])
async def test_a_law_of_orders_and_one_of_points_recover_the_truth_and_replays_to_the_bit(engine, law):
    many = 1 if SCORE_LAWS[law].reads == "points" else 4
    await assert_order_recovered(
        engine, await run_campaign_with_crowd(engine, design="rating", update_law=law, items_per_hit=many)
    )
