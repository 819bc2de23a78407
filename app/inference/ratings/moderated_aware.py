"""`Moderated` scores that know their annotators: the fit of `annotator_aware` to all judgments, with its errors.

Its errors come from one variance of all judgments around the scores, so it is known as well as all items tell it. As in
`moderated`, several judgments of an item by one annotator are not independent: where annotator j gave n_j of the n, the
error is that of n^2 / sum n_j^2 judgments, and they tell of the variance but once.
"""

import numpy as np

from app.inference.observations.said import Said
from app.inference.observations.tally import Tally
from app.inference.ratings import annotator_aware
from app.inference.ratings.moderated import Moderated, moderated

FEWEST = 20  # degrees of freedom: with fewer, how far annotators differ is mostly chance
MOST_ROUNDS, TOLERANCE = 200, 1e-4  # of beliefs about annotators, on a logarithmic scale


def moderated_aware(said: Said, tally: Tally) -> Moderated | None:
    """Of all items, on 0 to 1; None where nothing tells how far annotators differ, or the fit does not settle. tally:
    what the same judgments add up to.
    """
    if moderated(tally).together < FEWEST:
        return None
    numbers = np.unique(said.annotators, return_inverse=True)[1]
    three = said.items, numbers, said.scores
    found = annotator_aware.fit(*three, n_items=said.n_items, max_iterations=MOST_ROUNDS, tolerance=TOLERANCE)
    if not found.converged:
        return None
    error = found.standard_error.copy()
    error[found.estimable] *= np.sqrt(tally.repeats / np.maximum(tally.judgments, 1))[found.estimable]
    counted = min(float(found.weight.sum()), float(tally.annotators.sum()))
    freedom = max(1.0, counted - np.count_nonzero(found.estimable))
    return Moderated(found.score, error, np.full(len(error), freedom), (0.0, 1.0), freedom)
