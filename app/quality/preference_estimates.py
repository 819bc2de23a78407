"""Probabilities of answering at random for designs whose answers are an order, such as pairs: no update law of these
designs learns about annotators, so the rules estimate them from all comparisons, as the analysis does.
"""

from collections.abc import Mapping

import numpy as np

from app.database.bulk import NumberColumn
from app.designs.design import Design
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.comparisons import pair_outcome_columns_from_hits
from app.inference.observations.pair_weights import independent_pair_weights
from app.inference.preferences import aware_bradley_terry
from app.quality.sequential_limits import MIN_OTHER_ANNOTATORS

MAX_FITTED_JUDGMENTS = 100_000  # the newest ones; a scan with more would take minutes
MAX_ROUNDS, TOLERANCE = 100, 0.01  # a probability of .99 does not need the last digits of scores


def estimate_random_answer_probability_by_annotator(
    design: Design, judgments: Mapping[str, NumberColumn]
) -> dict[int, float]:
    """Return each annotator's probability of answering at random, by annotator id, from the newest judgments.

    Annotators with fewer than three decided pairs are left out, and so are all if an annotator has fewer than
    `MIN_OTHER_ANNOTATORS` others: among a few, one who is right alone can look random.

    Args:
        design: A design whose values are places.
        judgments: The columns `seq`, `annotator`, `item` and `value`, (J,) each, those of a HIT with the same `seq`.

    """
    newest = np.argsort(judgments["seq"], kind="stable")[-MAX_FITTED_JUDGMENTS:]
    columns = {name: column[newest] for name, column in judgments.items()}
    annotator_ids, annotators = np.unique(columns["annotator"], return_inverse=True)
    hits = np.unique(columns["seq"], return_inverse=True)[1]
    items = np.unique(columns["item"], return_inverse=True)[1]
    shares = design.values_to_points(columns["value"], hits) / 100.0
    first, second, outcomes, pair_hits = pair_outcome_columns_from_hits(
        hits, items, shares, ties=design.equal_means == "tie"
    )
    annotator_of_hit = annotators[np.flatnonzero(np.diff(hits, prepend=-1))]
    try:
        fit = aware_bradley_terry.fit(
            *(first, second, outcomes, annotator_of_hit[pair_hits]),
            n_annotators=len(annotator_ids),
            weights=independent_pair_weights(hits, shares)[pair_hits],
            max_iterations=MAX_ROUNDS,
            tolerance=TOLERANCE,
        )
    except Inestimable:
        return {}
    if fit.annotator_estimable.sum() <= MIN_OTHER_ANNOTATORS:
        return {}
    probabilities = zip(annotator_ids.tolist(), fit.random.tolist(), strict=True)
    return {number: probability for number, probability in probabilities if not np.isnan(probability)}
