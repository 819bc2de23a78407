"""The rule `pairs` in a campaign whose comparisons tell it what to ask."""

import numpy as np

from app.selection.pairs_rule import PAIRS_RULE


class PairsWithComparisons:
    """The rule `pairs` in a campaign in which each item was compared with six other items."""

    name = "pairs with comparisons"
    schedule_hits_of_iteration = staticmethod(PAIRS_RULE.schedule_hits_of_iteration)

    @staticmethod
    def make_selection_index(values, settings):
        index, items, rng = (
            PAIRS_RULE.make_selection_index(values, settings),
            len(values.score),
            np.random.default_rng(8),
        )
        for apart in (1, 2, 3):
            for item in range(items):
                index.learn_comparisons_of_hit(
                    [item, (item + apart) % items], rng.permutation(2).tolist(), tie_margin=0, ties=True
                )
        return index
