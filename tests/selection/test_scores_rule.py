"""Hits of the rule that draws by scores begin with the items that have the fewest judgments."""

import numpy as np

from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings


def test_items_with_the_fewest_judgments_come_first():
    settings = SelectionSettings(judgments_per_item=3, items_per_hit=2, gamma=0.1)
    values = ItemValues(score=[0.5] * 4, variance=[0.1] * 4, judgments=[2, 0, 0, 2])
    index = SELECTION_RULES["scores"].make_selection_index(values, settings)
    draw = index.draw_hit_or_none(
        2, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=False, rng=np.random.default_rng(1)
    )
    assert draw is not None
    assert sorted(draw.items) == [1, 2]
