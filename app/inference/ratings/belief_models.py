"""Assumptions about annotators: the grids of reliability and scale over which `annotator_beliefs` sums."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.ground.arrays import Array

RELIABILITIES: Final = np.array(
    [
        0.0,
        0.197375320224904,
        0.3799489622552249,
        0.5370495669980352,
        0.664036770267849,
        0.7615941559557649,
        0.8482836399575129,
        0.9051482536448665,
        0.9468060128462683,
    ]
)
"""The grid of reliabilities; the first is that of answers at random. They are the hyperbolic tangents of 0, .2, .4, .6,
.8, 1, 1.25, 1.5 and 1.8, written out because processors differ in the last bit of some.
"""
RELIABILITY_COUNT: Final = len(RELIABILITIES)
INFORMATION_BY_RELIABILITY: Final = RELIABILITIES**2 / (1.0 - RELIABILITIES**2)
"""Precision that one judgment adds to t, by reliability."""
_HALF_STEPS = np.array([0.08, 0.18, 0.32, 0.55, 1.0])
_STEPS: Final = np.r_[-_HALF_STEPS[::-1], 0.0, _HALF_STEPS]
# Narrow where scales are alike, so that a small scale_sd is not taken for none.
_STEP_WIDTHS: Final = np.gradient(_STEPS)
_RANDOM_STRETCH = 2.0
_CAREFUL_STEPS: Final = np.tile(_STEPS, (RELIABILITY_COUNT - 1, 1))


@dataclass(frozen=True, slots=True, eq=False)
class BeliefModel:
    """Assumptions of an edition of the law about annotators.

    Attributes:
        log_scale_grid: Grid of log scale_j, (CLASSES, S), the first row for random answers.
        step_widths: How much of the axis each of them stands for, (CLASSES, S), up to a factor by row.
        is_item_centred: Whether the centre is the mean of the items' means, and biases are relative to the mean bias of
            all judgments. Otherwise the centre is the mean of all judgments: if good items are judged more often, every
            annotator then seems too strict.

    """

    log_scale_grid: Array
    step_widths: Array
    is_item_centred: bool


JUDGMENT_CENTRED_MODEL: Final = BeliefModel(
    np.vstack([_RANDOM_STRETCH * _STEPS, _CAREFUL_STEPS]),
    np.tile(_STEP_WIDTHS, (RELIABILITY_COUNT, 1)),
    is_item_centred=False,
)
"""The model of campaigns that began with the first or second edition of the law."""
_RANDOM_STEPS: Final = np.where(_STEPS < 0.0, _STEPS, _RANDOM_STRETCH * _STEPS)
ITEM_CENTRED_MODEL: Final = BeliefModel(
    np.vstack([_RANDOM_STEPS, _CAREFUL_STEPS]),
    np.vstack([np.gradient(_RANDOM_STEPS), np.tile(_STEP_WIDTHS, (RELIABILITY_COUNT - 1, 1))]),
    is_item_centred=True,
)
"""The present model. Random answers may be spread more widely than careful ones, but not less: annotators who give
nearly the same answer to everything agree, and are not random.
"""
