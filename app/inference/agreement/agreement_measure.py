"""The result type of every measure of agreement, and its bootstrap interval.

Agreement is neither needed nor enough for correct labels (Passonneau & Carpenter 2014, "The Benefits of a Model of
Annotation", section 2.1): annotators who share a mistake agree, and labels of annotators who often disagree can add up
to certainty. So each result carries a sentence on what its figure can and cannot tell.

Labels: `label_agreement`; labels or numbers, with any judgments missing: `krippendorff`; scores: `intraclass`,
`score_agreement`.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.ground.bootstrap import (
    BootstrapInterval,
    WeightedStatistic,
    bootstrap_percentile_interval,
    evaluate_without_resampling,
)
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.judgments import Judgments

ALL_SAME_MESSAGE = (
    "All judgments are the same. Chance would agree completely too, so figures that correct for chance do not exist."
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A measure of agreement.

    Attributes:
        value: At most 1, which is complete agreement; 0 is chance, where the measure corrects for chance.
        low: Lower end of the interval by bootstrap over items, as high; NaN where there is none, which `notes` then
            say.
        n_items: Items with at least two judgments.
        n_annotators: Annotators who judged them.
        n_pairs: Pairs of judgments of one item that were compared.
        sentence: What the value can and cannot tell.
        notes: What was left out, and why.

    """

    value: float
    low: float
    high: float
    n_items: int
    n_annotators: int
    n_pairs: int
    sentence: str
    notes: tuple[Note, ...] = ()


def agreement_with_bootstrap_interval(
    statistic: WeightedStatistic,
    judgments: Judgments,
    meaning_sentence: str,
    *,
    draws: int,
    level: float,
    rng: np.random.Generator,
    n_pairs: int | None = None,
    notes: tuple[Note, ...] = (),
    undefined_message: str = ALL_SAME_MESSAGE,
    code: str = "all_the_same",
    cells_per_draw: int = 0,
    recentre_draws: bool = False,
) -> Agreement:
    """Return the statistic of the judgments with its interval. Raises `Inestimable(undefined_message, code)` if it is
    NaN.

    `n_pairs` counts the judgments that were compared; default: all pairs of one item. With `recentre_draws` the draws
    are shifted to the value, see `bootstrap_percentile_interval`, `recentred_on`.
    """
    value = evaluate_without_resampling(statistic, judgments.n_items)
    if not np.isfinite(value):
        raise Inestimable(undefined_message, code=code)
    interval = bootstrap_percentile_interval(
        statistic,
        judgments.n_items,
        draws=draws,
        level=level,
        rng=rng,
        cells_per_draw=cells_per_draw,
        recentred_on=value if recentre_draws else None,
    )
    return Agreement(
        value=value,
        low=interval.low,
        high=min(interval.high, 1.0),  # draws that were centred may go beyond; NaN stays NaN
        n_items=int((judgments.per_item >= 2).sum()),
        n_annotators=judgments.n_annotators,
        n_pairs=judgments.n_pairs if n_pairs is None else n_pairs,
        sentence=meaning_sentence,
        notes=judgments.notes + notes + missing_interval_or_draws_notes(interval, draws),
    )


def missing_interval_or_draws_notes(interval: BootstrapInterval, draws: int) -> tuple[Note, ...]:
    """Return notes on an interval from this many draws."""
    if interval.refusal:
        return (Note("no_interval", interval.refusal),)
    if interval.usable_draws < draws:
        missing = f"In {draws - interval.usable_draws:,} of {draws:,} draws of the items, the value is not defined"
        return (Note("draws_without_value", f"{missing}; the interval uses the others."),)
    return ()
