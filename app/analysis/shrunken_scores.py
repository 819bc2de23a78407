"""Score method: the mean of each item's judgments, shrunk towards those of all items."""

import numpy as np

from app.analysis.method_types import ScoreMethod
from app.analysis.result_types import Answers, Scores
from app.analysis.scores import MEAN_METHOD, refuse_without_answers, unscored_items_notes
from app.designs.scale import shares_to_points
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.tally import Tally
from app.inference.ratings.shrunken_means import shrink_means_to_prior


def shrunken_mean_scores(answers: Answers) -> Scores:
    """Return the shrunken mean of each item's judgments, in points.

    Raises:
        Inestimable: `no_judgments`, and `nothing_varies` while no two annotators differ on any item.

    """
    refuse_without_answers(answers)
    tally = Tally.empty(answers.n_items).with_judgments_added(
        answers.item, answers.annotator, answers.scores_between_0_and_1
    )
    shrunken = shrink_means_to_prior(tally)
    if not np.isfinite(shrunken.score).any():
        raise Inestimable(
            "No two annotators gave an item different scores, so it is unknown how far to shrink means.",
            code="nothing_varies",
        )
    values, low, high = map(shares_to_points, (shrunken.score, shrunken.low, shrunken.high))
    return Scores(values, answers.has_judgments, low, high, None, unscored_items_notes(answers.has_judgments))


SHRUNKEN_MEAN_METHOD = ScoreMethod(
    "Shrunken mean",
    "All judgments count equally, and an item’s score is like those of the others. Scores and intervals are right for "
    "leading items, too, and for items that were asked about because of their scores.",
    MEAN_METHOD.unit,
    shrunken_mean_scores,
)
