"""Annotator-aware means with moderated errors: the fit of `annotator_aware` to all judgments, with its errors.

Its errors come from one variance of all judgments around the scores, so all items contribute to it. As in
`moderated_means`, several judgments of an item by one annotator are not independent: where annotator j gave n_j of the
n, the error is that of n^2 / sum n_j^2 judgments, and they count once for the variance.
"""

import numpy as np

from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.ratings import annotator_aware
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally

MIN_AWARE_DEGREES_OF_FREEDOM = 20  # degrees of freedom: with fewer, how far annotators differ is mostly chance
MAX_BELIEF_ROUNDS, BELIEF_TOLERANCE = 200, 1e-4  # of beliefs about annotators, on a logarithmic scale


def moderated_means_by_annotator_aware_fit_or_none(judgments: LongJudgments, tally: Tally) -> ModeratedMeans | None:
    """Return the means of all items, on 0 to 1.

    None where the judgments do not tell how far annotators differ, or the fit does not settle. `tally` holds the sums
    of the same judgments.
    """
    if moderated_means_of_tally(tally).degrees_of_freedom_limit < MIN_AWARE_DEGREES_OF_FREEDOM:
        return None
    annotator_numbers = np.unique(judgments.annotators, return_inverse=True)[1]
    columns = judgments.items, annotator_numbers, judgments.scores
    aware_scores = annotator_aware.fit(
        *columns, n_items=judgments.n_items, max_iterations=MAX_BELIEF_ROUNDS, tolerance=BELIEF_TOLERANCE
    )
    if not aware_scores.converged:
        return None
    error = aware_scores.standard_error.copy()
    error[aware_scores.estimable] *= np.sqrt(tally.repeats / np.maximum(tally.judgments, 1))[aware_scores.estimable]
    judgment_worth = min(float(aware_scores.weight.sum()), float(tally.annotators.sum()))
    freedom = max(1.0, judgment_worth - np.count_nonzero(aware_scores.estimable))
    return ModeratedMeans(aware_scores.score, error, np.full(len(error), freedom), (0.0, 1.0), freedom)
