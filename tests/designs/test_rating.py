from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.designs.rating import Rating
from tests.designs.recovery import answered_by_a_crowd, is_recovered
from tests.laws import OF_POINTS

LABELS = {"low_label": "not at all", "high_label": "perfectly"}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (1, "You see one item at a time and place it on a scale from “not at all” to “perfectly”."),
        (4, "You see 4 items at a time and place each by itself on a scale from “not at all” to “perfectly”."),
    ],
)
def test_annotators_are_told_whether_items_come_alone(items, said):
    assert Rating().describe_task(SimpleNamespace(items_per_hit=items, **LABELS)) == said


@pytest.mark.parametrize("law", ["ra", "trueskill"])
def test_a_law_of_orders_is_refused_where_items_come_alone(law):
    with pytest.raises(ValidationError, match="one item has none"):
        CampaignSettings(name="A", question="B?", design="rating", update_law=law)
    pair = CampaignSettings(name="A", question="B?", design="rating", update_law=law, items_per_hit=2)
    assert pair.update_law == law


@pytest.mark.parametrize("law", OF_POINTS)
async def test_every_law_that_it_offers_recovers_the_truth_and_replays_to_the_bit(engine, law):
    many = 1 if OF_POINTS[law].reads == "points" else 4
    await is_recovered(engine, await answered_by_a_crowd(engine, design="rating", update_law=law, items_per_hit=many))
