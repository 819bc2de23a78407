"""Best-worst scores: counts of how often each item came first and last."""

import numpy as np
from scipy.special import ndtri

from app.analysis.method_types import ScoreMethod
from app.analysis.result_types import Answers, Scores
from app.analysis.scores import refuse_without_answers
from app.inference.ground.notes import notes_with_names
from app.inference.preferences import best_worst_counts

Z = float(ndtri(0.975))


def best_minus_worst_scores(answers: Answers) -> Scores:
    """Return how often each item was the best of its HIT, minus how often it was the worst."""
    refuse_without_answers(answers)
    fit = best_worst_counts.fit(
        *(answers.hit, answers.item, answers.scores_between_0_and_1),
        n_items=answers.n_items,
        tie_margin=answers.parameters.tie_margin,
    )
    low, high = (np.clip(fit.score + side * Z * fit.standard_error, -1.0, 1.0) for side in (-1.0, 1.0))
    notes = notes_with_names(fit.notes, {"item": answers.ids})
    return Scores(fit.score, answers.has_judgments, low, high, fit.standard_error, notes)


BEST_WORST_METHOD = ScoreMethod(
    "Best-worst counts",
    "An item scores higher the more often it was chosen as best rather than worst, whichever items it was shown with.",
    "share of tasks as the best minus share as the worst, -1 to 1",
    best_minus_worst_scores,
    reads="order",
)
