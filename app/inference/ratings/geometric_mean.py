"""The geometric mean of each item's ratios to a reference, as is usual for magnitude estimation (Stevens 1971).

Annotators who estimate magnitudes err by a factor, so the logarithms are Normal: items are compared by the means of
these, and intervals are those of such means, with the variance of `moderated_means`. An item that half of the
annotators find twice as good as the reference, and the others half as good, is as good as the reference: 1.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from app.inference.ground.validation import finite_vector_or_raise
from app.inference.ratings import direct_assessment
from app.inference.ratings.direct_assessment import DirectAssessment


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    ratios: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    level: float = 0.95,
) -> DirectAssessment:
    """Geometric mean, standard error and interval per item, as ratios; all judgments count alike, for every annotator.

    `items` and `annotators` are (T,) integers from 0, `ratios` (T,) finite numbers above 0. The error is that of the
    logarithm times the mean, right to the first order; the interval is the exponential of that of the logarithm, so
    further above the mean than below it. Raises ValueError for invalid arrays or a level outside (0, 1), `Inestimable`
    (`no_judgments`).
    """
    values = finite_vector_or_raise("ratios", ratios)
    if not (values > 0.0).all():
        raise ValueError("ratios must be above 0")
    log_assessment = direct_assessment.fit(
        items, annotators, np.log(values), n_items=n_items, n_annotators=n_annotators, level=level
    )
    score = np.exp(log_assessment.score)
    error = score * log_assessment.standard_error
    return replace(
        log_assessment,
        score=score,
        standard_error=error,
        low=np.exp(log_assessment.low),
        high=np.exp(log_assessment.high),
    )
