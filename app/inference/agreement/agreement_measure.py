"""What every measure of agreement gives, and how its value gets an interval.

Agreement is neither needed nor enough for correct labels (Passonneau & Carpenter 2014, "The Benefits of a Model of
Annotation", section 2.1): annotators who share a mistake agree, and labels of annotators who often disagree can add up
to certainty. So each result carries a sentence on what its figure can and cannot tell.

Labels: `label_agreement`; labels or numbers, with any judgments missing: `krippendorff`; scores: `intraclass`,
`score_agreement`.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.ground.bootstrap import BootstrapInterval, WeightedStatistic, bootstrap_interval, evaluate_statistic
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.judgments import Judgments

ALL_SAME_MESSAGE = (
    "All judgments are the same, so chance would agree completely too, and a figure that corrects for chance does not "
    "exist."
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A measure of agreement.

    value: at most 1, which is complete agreement; 0 is what chance gives, where the measure corrects for chance.
    low, high: the interval by bootstrap over items; NaN where there is none, which `notes` then say.
    n_items: items with at least two judgments. n_annotators: who judged them.
    n_pairs: pairs of judgments of one item that were compared.
    sentence: what the value can and cannot tell. notes: what was left out, and why.
    """

    value: float
    low: float
    high: float
    n_items: int
    n_annotators: int
    n_pairs: int
    sentence: str
    notes: tuple[Note, ...] = ()


def measure_agreement(
    statistic: WeightedStatistic,
    judgments: Judgments,
    sentence: str,
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
    """The statistic of the judgments with its interval. Raises `Inestimable(undefined, code)` if it is NaN.

    n_pairs: of judgments that were compared; default: all of one item. centred: see `bootstrap.interval_of`, `about`.
    """
    value = evaluate_statistic(statistic, judgments.n_items)
    if not np.isfinite(value):
        raise Inestimable(undefined_message, code=code)
    interval = bootstrap_interval(
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
        sentence=sentence,
        notes=judgments.notes + notes + interval_notes(interval, draws),
    )


def interval_notes(interval: BootstrapInterval, draws: int) -> tuple[Note, ...]:
    """What is to be said of an interval from so many draws."""
    if interval.refusal:
        return (Note("no_interval", interval.refusal),)
    if interval.usable_draws < draws:
        missing = f"In {draws - interval.usable_draws:,} of {draws:,} draws of the items the value does not exist"
        return (Note("draws_without_value", f"{missing}; the interval rests on the others."),)
    return ()
