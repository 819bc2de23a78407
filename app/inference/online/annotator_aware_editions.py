"""Editions of the update law `easl-aware`, and the campaign's state under each.

A campaign's state is floats: the number of the edition, the rescan position and the `CrowdLevel`, then the sum of all
annotators' contributions. `annotator_aware_state` explains them. Campaigns keep the edition with which they began:

1. only a HIT's own items are scanned, and nothing stands before the contributions;
2. other items are rescanned with each HIT; there is no `CrowdLevel`, and beliefs follow `JUDGMENT_CENTRED_MODEL`;
3. beliefs follow `ITEM_CENTRED_MODEL`.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_beliefs import AnnotatorBeliefs, Crowd, CrowdLevel
from app.inference.ratings.annotator_evidence import N, ScoredJudgments

StateFloats = list[float]

TOTALS_SIZE = learning.TOTALS_SIZE

MAX_RESCANNED_JUDGMENTS = 100
"""Judgments of other items that are rescanned with each HIT, and the largest number of such items."""
INITIAL_CAMPAIGN_STATE: StateFloats = [3.0, -1.0, 0.0, 0.0, 0.0, 0.0]
"""The campaign's state before the first HIT: the number of the edition, the rescan position, and the `CrowdLevel`."""
SECOND_EDITION_INITIAL_STATE: StateFloats = [2.0, -1.0, 0.0]
FIRST_EDITION_INITIAL_STATE: StateFloats = []
NEWEST_EDITION = int(INITIAL_CAMPAIGN_STATE[0])
LEVEL_START = len(SECOND_EDITION_INITIAL_STATE)  # of the `CrowdLevel`


def edition_number_of_campaign_state(campaign_state: Sequence[float]) -> int:
    """Return the number of the law's edition that a campaign with this state has."""
    return 1 if len(campaign_state) in {0, TOTALS_SIZE} else int(campaign_state[0])


def initial_campaign_state_of_same_edition(campaign_state: Sequence[float]) -> StateFloats:
    """Return the state before the first HIT of a campaign that has this state at any time."""
    return {1: FIRST_EDITION_INITIAL_STATE, 2: SECOND_EDITION_INITIAL_STATE}.get(
        edition_number_of_campaign_state(campaign_state), INITIAL_CAMPAIGN_STATE
    )


def does_edition_rescan_items(campaign_state: Sequence[float]) -> bool:
    """Return whether other items are rescanned: not under the first edition."""
    return edition_number_of_campaign_state(campaign_state) > 1


def sum_of_annotator_contributions(campaign_state: Sequence[float]) -> Array:
    """Return the sum of all annotators' contributions, (TOTALS,)."""
    head_size = len(initial_campaign_state_of_same_edition(campaign_state))
    return np.array([*campaign_state[head_size:]] or [0.0] * TOTALS_SIZE)


def crowd_level_or_none(campaign_state: Sequence[float]) -> CrowdLevel | None:
    """Return the level of scores and biases; None under the first two editions, which have none."""
    end = len(INITIAL_CAMPAIGN_STATE)
    return (
        CrowdLevel(*campaign_state[LEVEL_START:end]) if edition_number_of_campaign_state(campaign_state) > 2 else None
    )


def crowd_of_campaign(campaign_state: Sequence[float]) -> Crowd:
    """Return the parameters that all annotators of the campaign share."""
    return learning.crowd_from_totals(
        sum_of_annotator_contributions(campaign_state), crowd_level_or_none(campaign_state)
    )


def last_rescanned_item_and_judgment_budget(campaign_state: Sequence[float]) -> tuple[int, int]:
    """Return the item rescanned last, and how many judgments may be rescanned now; (-1, 0) if the rule has no
    rescans.
    """
    return (
        (int(campaign_state[1]), int(campaign_state[2]) + MAX_RESCANNED_JUDGMENTS)
        if does_edition_rescan_items(campaign_state)
        else (-1, 0)
    )


def campaign_state_with_rescan_position(
    campaign_state: Sequence[float], last_item: int, saved_judgments: int
) -> StateFloats:
    """Return the campaign's state with its rescan position moved on."""
    return (
        [campaign_state[0], float(last_item), float(saved_judgments), *campaign_state[LEVEL_START:]]
        if does_edition_rescan_items(campaign_state)
        else list(campaign_state)
    )


def level_floats_after_scan(
    level: CrowdLevel | None, judgments: ScoredJudgments, was_scanned: npt.NDArray[np.bool_], bias_change: float
) -> StateFloats:
    """Return the floats of the level after a scan of these judgments, none if there is no level."""
    if level is None:
        return []
    means, known_means = (
        _mean_scores_of_scored_items(judgments.items[mask], judgments.scores[mask])
        for mask in (np.full_like(was_scanned, fill_value=True), was_scanned)
    )
    return [
        level.item_means + (math.fsum(means) - math.fsum(known_means)),
        level.items + (len(means) - len(known_means)),
        level.biases + bias_change,
    ]


def _mean_scores_of_scored_items(items: npt.NDArray[np.intp], scores: Array) -> list[float]:
    """Return the mean score of each item that has one."""
    counts = np.bincount(items)
    sums = np.bincount(items, scores)
    means: list[float] = (sums[counts > 0] / counts[counts > 0]).tolist()
    return means


def sum_of_judgment_biases(evidence: Array, beliefs: AnnotatorBeliefs) -> float:
    """Return the sum over all judgments of their annotators' biases, the same on every processor."""
    return math.fsum((evidence[:, N] * beliefs.bias).tolist())
