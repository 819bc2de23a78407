"""The update law `easl-aware`: one HIT changes the states of its items, of other items, and of all their annotators.

EASL adds s to alpha and 1 - s to beta. So does this law, after correcting s for its annotator's bias and scale, times
the annotator's weight; with the trust (see `annotator_beliefs`) at 0 it IS EASL. Weights change as annotators become
known. So after a HIT the posteriors of its items are recomputed from all their judgments, with the newest weights; and
then those of other items, in turn, `MAX_RESCANNED_JUDGMENTS` judgments of them. Thus the law passes through the whole
campaign again and again: the fit to all judgments, its rounds spread over the answers (as in incremental EM, Neal &
Hinton 1998, "A view of the EM algorithm that justifies incremental, sparse, and other variants"). Up to
`MAX_RESCANNED_JUDGMENTS` judgments in all, every HIT is a round; later, a round passes while the campaign's judgments
grow by a few in a hundred.

A campaign's state is lists of floats, stored as they are:

- per item, an `ItemState`. It has two parts, so that an answer whose item is not scanned costs the same however many
  judgments the item has: it adds two floats to the shorter part, and leaves the longer one unread;
- per annotator, `ANNOTATOR` floats: sums of evidence, beliefs, and contributions to the totals;
- for the campaign, the number of the edition, the rescan position (the item rescanned last, and how many judgments may
  be rescanned on top of `MAX_RESCANNED_JUDGMENTS` with the next HIT) and the `CrowdLevel`, then `TOTALS` floats: the
  sum of all annotators' contributions.

The totals make a HIT depend on all before it, so HITs of a campaign must be applied one after another, in the order of
their numbers; `compute_aware_hit_change` then gives the same bits live and in a replay. These states alone determine
which items are rescanned.

Campaigns keep the edition of the law with which they began; the campaign's state tells which. Under the first edition
only a HIT's own items are scanned, with every HIT; beliefs change at once; `since` is always empty, and the campaign's
state has nothing before the totals. Under the second, the campaign's state has no `CrowdLevel`, and beliefs follow
`JUDGMENT_CENTRED_MODEL`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import annotator_aware_editions as editions
from app.inference.online.annotator_aware_editions import MAX_RESCANNED_JUDGMENTS, StateFloats
from app.inference.online.law import AnnotatorDescription, validated_scores_of_hit_as_floats
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings import belief_models
from app.inference.ratings.annotator_beliefs import AnnotatorBeliefs
from app.inference.ratings.annotator_evidence import (
    COMPARED,
    EVIDENCE_SIZE,
    MIN_EVIDENCE_JUDGMENTS,
    OTHERS_SIZE,
    ScoredJudgments,
    evidence_of_each_annotator,
)

JUDGMENT_SIZE = 2 + OTHERS_SIZE
_BELIEFS_SIZE = belief_models.RELIABILITY_COUNT + 7
ANNOTATOR_SIZE = EVIDENCE_SIZE + _BELIEFS_SIZE + learning.TOTALS_SIZE

# All judgments of a HIT's item are scanned when the unscanned ones are at least this part of the others: so
# what an answer costs hardly grows with the judgments that its items have.
_MIN_NEW_SHARE = 1 / 20

_POSTERIOR_SIZE, _NEW_JUDGMENT_SIZE = 2, 2  # floats before the judgments since the last look, and of each of these
_BELIEF_STEP = 0.5  # of a change of beliefs is made, as in `annotator_fixed_point`


class ItemState(NamedTuple):
    """State of one item; its judgments are those of `looked`, first to last, and then those of `since`.

    Attributes:
        since: The posterior's alpha and beta, then annotator and score of each judgment since the last scan; empty
            before
        the first judgment.
        floats: The length of `looked`.
        looked: `JUDGMENT` floats of each judgment up to the last scan: the annotator's number, the score, and the
        consensus of the others at that scan; None if they are not loaded.

    """

    since: Sequence[float] = ()
    floats: int = 0
    looked: Array | None = None

    @property
    def judgment_count(self) -> int:
        """Number of the item's judgments."""
        return self.floats // JUDGMENT_SIZE + self.unscanned_count

    @property
    def unscanned_count(self) -> int:
        """Number of judgments since the last scan."""
        return max(len(self.since) - _POSTERIOR_SIZE, 0) // _NEW_JUDGMENT_SIZE

    def judgment_rows_with_consensus(self) -> Array:
        """All judgments, (judgments, JUDGMENT), NaN where the consensus of the others is unknown; read-only.

        Raises ValueError if the scanned judgments are not loaded.
        """
        if self.looked is None and self.floats:
            raise ValueError("an item that is scanned needs its scanned judgments")
        looked = (np.empty(0) if self.looked is None else self.looked).reshape(-1, JUDGMENT_SIZE)
        if not self.unscanned_count:  # as of nearly all that are looked at again
            return looked
        unseen = np.full((self.unscanned_count, JUDGMENT_SIZE), np.nan)
        unseen[:, :_NEW_JUDGMENT_SIZE] = np.reshape(self.since[_POSTERIOR_SIZE:], (-1, _NEW_JUDGMENT_SIZE))
        return np.concatenate([looked, unseen])


@dataclass(frozen=True, slots=True)
class AwareChange:
    """New values after one HIT; the arguments of `compute_aware_hit_change` are left alone.

    Attributes:
        a: Posteriors Beta(a, b) of the HIT's n items, then of the rescanned items, as b.
        items: These items' states.
        scanned_places: Positions of the scanned ones among these; only `since` of the others is new.
        annotators: New states of all annotators involved, by number.
        campaign_state: The campaign's state, with its rescan position unchanged.

    """

    a: list[float]
    b: list[float]
    items: list[ItemState]
    scanned_places: list[int]
    annotators: dict[int, StateFloats]
    campaign_state: StateFloats


def choose_rescanned_items_and_position(
    candidates: Iterable[tuple[int, int]], last_item: int, judgment_budget: int
) -> tuple[list[int], tuple[int, int]]:
    """Return the items to rescan, at most MAX_RESCANNED_JUDGMENTS items, and the next rescan position.

    Args:
        candidates: Number and judgment count of the campaign's judged items, without the HIT's, from the one after
        `last_item` around.
        last_item: The item rescanned last.
        judgment_budget: The largest number of judgments to rescan.

    """
    numbers: list[int] = []
    for number, judgments in candidates:
        if not judgment_budget or judgments > judgment_budget or len(numbers) == MAX_RESCANNED_JUDGMENTS:
            break
        numbers.append(number)
        judgment_budget -= judgments
    else:
        judgment_budget = 0  # all have been looked at; nothing is saved up
    return numbers, (numbers[-1] if numbers else last_item, judgment_budget)


def positions_of_scanned_items(
    items: Sequence[ItemState], rescan_count: int, campaign_state: Sequence[float]
) -> list[int]:
    """Return the positions of the items whose judgments are scanned; the last `rescan_count` items are not in the
    HIT.
    """
    hit_size = len(items) - rescan_count
    scans_all = not editions.does_edition_rescan_items(campaign_state)
    return [place for place, item in enumerate(items) if scans_all or place >= hit_size or _is_item_due_for_scan(item)]


def _is_item_due_for_scan(item: ItemState) -> bool:
    return item.unscanned_count + 1 >= _MIN_NEW_SHARE * (item.floats // JUDGMENT_SIZE)


def annotator_numbers_involved_in_hit(
    annotator: int, items: Sequence[ItemState], campaign_state: Sequence[float], *, rescan_count: int = 0
) -> list[int]:
    """Return the annotators whose states `compute_aware_hit_change` reads and may change, in order.

    These are the HIT's annotator and the annotators of the scanned judgments.
    """
    scanned_annotators = [
        items[place].judgment_rows_with_consensus()[:, 0]
        for place in positions_of_scanned_items(items, rescan_count, campaign_state)
    ]
    return sorted({annotator, *np.unique(np.concatenate([np.empty(0), *scanned_annotators])).astype(np.int64).tolist()})


def compute_aware_hit_change(
    annotator: int,
    scores: Sequence[float],
    *,
    priors: Sequence[tuple[float, float]],
    items: Sequence[ItemState],
    annotator_states: Mapping[int, Sequence[float]],
    campaign_state: Sequence[float],
    rescan_count: int = 0,
) -> AwareChange:
    """Apply one HIT of n >= 1 items.

    Args:
        annotator: Any whole number below 2^53 in size.
        scores: n floats in [0, 1].
        priors: The (a, b) with which each of the items below started.
        items: The n items' states, then those of the rescanned items; `looked` must be loaded at the
            `positions_of_scanned_items`.
        annotator_states: The states of all `annotator_numbers_involved_in_hit`, without new annotators.
        campaign_state: The campaign's state, `INITIAL_CAMPAIGN_STATE` before the first HIT.
        rescan_count: The number of rescanned items.

    Raises:
        ValueError: A score is NaN or outside [0, 1], lengths differ, or scanned judgments are not loaded.

    """
    floats = validated_scores_of_hit_as_floats(scores, len(items) - rescan_count)
    if len(priors) != len(items):
        raise ValueError(f"each item has a prior, but there are {len(items)} items and {len(priors)} priors")
    scanned = positions_of_scanned_items(items, rescan_count, campaign_state)
    annotator_numbers = annotator_numbers_involved_in_hit(annotator, items, campaign_state, rescan_count=rescan_count)
    scanned_scores = [floats[place] for place in scanned if place < len(floats)]
    scanned_judgments, others_before = _judgments_of_items_and_earlier_consensus(
        annotator, scanned_scores, [items[place].judgment_rows_with_consensus() for place in scanned], annotator_numbers
    )
    beliefs, others_now, new_annotator_states, new_campaign_state = _updated_beliefs_consensus_and_states(
        scanned_judgments, others_before, annotator_numbers, annotator_states, campaign_state
    )
    crowd = editions.crowd_of_campaign(new_campaign_state)
    correct = partial(
        learning.judgment_weights_and_corrected_scores,
        beliefs=beliefs,
        crowd=crowd,
        trust=crowd.trust,
        scale_trust=crowd.scale_trust,
    )
    scanned_priors = [priors[place] for place in scanned]
    scanned_posteriors = _item_beta_posteriors(scanned_judgments.items, *correct(scanned_judgments), scanned_priors)
    posteriors = dict(zip(scanned, scanned_posteriors, strict=True))
    rows = np.column_stack(
        [np.array(annotator_numbers)[scanned_judgments.annotators], scanned_judgments.scores, others_now.T]
    )
    states = {
        place: _make_scanned_item_state(
            posteriors[place] if editions.does_edition_rescan_items(campaign_state) else (), of_item
        )
        for place, of_item in zip(scanned, _rows_of_each_item(rows, scanned_judgments), strict=True)
    }
    unscanned = sorted(set(range(len(items))) - set(scanned))
    weight, score = correct(
        _judgments_by_one_annotator(annotator_numbers.index(annotator), [floats[place] for place in unscanned])
    )
    for place, more_a, more_b in zip(unscanned, weight * score, weight * (1.0 - score), strict=True):
        a, b, *since = items[place].since
        posteriors[place] = (a + float(more_a), b + float(more_b))
        states[place] = items[place]._replace(since=[*posteriors[place], *since, float(annotator), floats[place]])
    return AwareChange(
        a=[posteriors[place][0] for place in range(len(items))],
        b=[posteriors[place][1] for place in range(len(items))],
        items=[states[place] for place in range(len(items))],
        scanned_places=scanned,
        annotators=new_annotator_states,
        campaign_state=new_campaign_state,
    )


def _rows_of_each_item(rows: Array, judgments: ScoredJudgments) -> list[Array]:
    """Split rows of all judgments by item, first to last."""
    sorted_rows = rows[np.argsort(judgments.items, kind="stable")]
    ends = np.cumsum(np.bincount(judgments.items, minlength=judgments.n_items)).tolist()
    return [sorted_rows[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _make_scanned_item_state(posterior: Sequence[float], rows: Array) -> ItemState:
    return ItemState(posterior, rows.size, rows.flatten())  # a copy: rows are a part of what nobody is to keep


def _judgments_of_items_and_earlier_consensus(
    annotator: int, scores: list[float], item_rows: Sequence[Array], annotator_numbers: list[int]
) -> tuple[ScoredJudgments, Array]:
    """Return all judgments of these items, and the consensus of the others at the last scan.

    The new judgments come last and belong to the first items. The consensus is (OTHERS, J), NaN where it is unknown.
    """
    rows = np.concatenate([np.empty((0, JUDGMENT_SIZE)), *item_rows])
    item = np.repeat(np.arange(len(item_rows), dtype=np.intp), [len(earlier) for earlier in item_rows])
    judgment_annotators = np.concatenate([rows[:, 0].astype(np.int64), np.full(len(scores), annotator, dtype=np.int64)])
    annotator_positions = np.asarray(np.searchsorted(annotator_numbers, judgment_annotators), dtype=np.intp)
    judgments = ScoredJudgments.from_arrays(
        np.r_[item, np.arange(len(scores), dtype=np.intp)],
        annotator_positions,
        np.r_[rows[:, 1], scores],
        len(item_rows),
        len(annotator_numbers),
    )
    return judgments, np.hstack([rows[:, 2:].T, np.full((OTHERS_SIZE, len(scores)), np.nan)])


def _updated_beliefs_consensus_and_states(
    judgments: ScoredJudgments,
    others_before: Array,
    annotator_numbers: list[int],
    annotator_states: Mapping[int, Sequence[float]],
    campaign_state: Sequence[float],
) -> tuple[AnnotatorBeliefs, Array, dict[int, StateFloats], StateFloats]:
    """Update the beliefs about the annotators of these judgments.

    Returns:
        The beliefs, the present consensus of the others, and the new states of the annotators and of the campaign.

    """
    rows = np.array([annotator_states.get(number) or [0.0] * ANNOTATOR_SIZE for number in annotator_numbers])
    evidence, old_beliefs, old_contributions = np.split(rows, [EVIDENCE_SIZE, EVIDENCE_SIZE + _BELIEFS_SIZE], axis=1)
    old_biases = editions.sum_of_judgment_biases(evidence, AnnotatorBeliefs.from_matrix(old_beliefs))
    totals, crowd = editions.sum_of_annotator_contributions(campaign_state), editions.crowd_of_campaign(campaign_state)
    is_new = np.array([number not in annotator_states for number in annotator_numbers])
    if is_new.any():
        old_beliefs[is_new] = learning.estimate_annotator_beliefs(evidence[is_new], crowd).to_matrix()
    others_now, was_scanned = others_before, ~np.isnan(others_before[0])
    if len(judgments.scores):
        others_now = learning.summaries_of_other_judgments_of_item(
            judgments, AnnotatorBeliefs.from_matrix(old_beliefs), crowd
        )
        # What has not been looked at before has no evidence to take back.
        old_evidence = evidence_of_each_annotator(
            _select_judgments(judgments, was_scanned), others_before[:, was_scanned]
        )
        evidence = evidence + evidence_of_each_annotator(judgments, others_now) - old_evidence
    beliefs = learning.estimate_annotator_beliefs(evidence, crowd)
    if editions.does_edition_rescan_items(campaign_state):
        beliefs = AnnotatorBeliefs.from_matrix(
            old_beliefs + np.where(is_new, 1.0, _BELIEF_STEP)[:, None] * (beliefs.to_matrix() - old_beliefs)
        )
    contributions = learning.annotator_contributions(evidence, beliefs, crowd.typical_information)
    stored = np.column_stack([evidence, beliefs.to_matrix(), contributions]).tolist()
    new_level = editions.level_floats_after_scan(
        editions.crowd_level_or_none(campaign_state),
        judgments,
        was_scanned,
        editions.sum_of_judgment_biases(evidence, beliefs) - old_biases,
    )
    new_totals = totals + (contributions - old_contributions).sum(axis=0)
    edition_and_position = (
        campaign_state[: editions.LEVEL_START] if editions.does_edition_rescan_items(campaign_state) else []
    )
    return (
        beliefs,
        others_now,
        dict(zip(annotator_numbers, stored, strict=True)),
        [*edition_and_position, *new_level, *new_totals.tolist()],
    )


def _select_judgments(judgments: ScoredJudgments, mask: npt.NDArray[np.bool_]) -> ScoredJudgments:
    return replace(
        judgments,
        items=judgments.items[mask],
        annotators=judgments.annotators[mask],
        scores=judgments.scores[mask],
        same=None,  # what the others say of these is known
    )


def _judgments_by_one_annotator(annotator: int, scores: list[float]) -> ScoredJudgments:
    items = np.arange(len(scores), dtype=np.intp)
    return ScoredJudgments(
        items, np.full_like(items, annotator), np.array(scores, np.float64), None, len(scores), annotator + 1
    )


def _item_beta_posteriors(
    items: npt.NDArray[np.intp], weight: Array, score: Array, priors: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the items' Beta posteriors: the prior plus weight times corrected score, added up from first to last."""
    posteriors = np.reshape(np.array(priors, dtype=np.float64), (-1, 2))
    np.add.at(posteriors[:, 0], items, weight * score)
    np.add.at(posteriors[:, 1], items, weight * (1.0 - score))
    return [(a, b) for a, b in posteriors.tolist()]


def annotator_number_of_each_judgment(item: ItemState) -> list[int]:
    """Return the annotator of each judgment of an item, first to last."""
    return [int(number) for number in item.judgment_rows_with_consensus()[:, 0]]


def current_weight_and_score_of_each_judgment(
    item: ItemState, annotator_states: Mapping[int, Sequence[float]], campaign_state: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the weight in (0, 1] and the corrected score in [0, 1] of each judgment of an item, by the present
    beliefs.

    The posterior is the prior plus weight times corrected score, as they were when the item was last scanned: after the
    HIT that scanned it, the weighted mean is the mode of a posterior that began as Beta(1, 1); later, until its next
    scan, it is ahead of it.

    Args:
        item: The item's state.
        annotator_states: The states of its `annotator_number_of_each_judgment`.
        campaign_state: The campaign's state.

    """
    numbers, annotator_positions = np.unique(
        np.array(annotator_number_of_each_judgment(item), dtype=np.int64), return_inverse=True
    )
    scores = item.judgment_rows_with_consensus()[:, 1]
    state_rows = np.reshape([annotator_states[int(k)] for k in numbers], (-1, ANNOTATOR_SIZE))
    beliefs = AnnotatorBeliefs.from_matrix(state_rows[:, EVIDENCE_SIZE : EVIDENCE_SIZE + _BELIEFS_SIZE])
    crowd = editions.crowd_of_campaign(campaign_state)
    judgments = ScoredJudgments.from_arrays(
        np.zeros(len(annotator_positions), np.intp), annotator_positions, scores, 1, len(numbers)
    )
    weight, score = learning.judgment_weights_and_corrected_scores(
        judgments, beliefs, crowd, trust=crowd.trust, scale_trust=crowd.scale_trust
    )
    return weight.tolist(), score.tolist()


def aware_annotator_description_by_number(
    annotator_states: Mapping[int, Sequence[float]], campaign_state: Sequence[float]
) -> dict[int, AnnotatorDescription]:
    """Describe these annotators, by number, as of their present states.

    Annotators with fewer than `MIN_EVIDENCE_JUDGMENTS` items that others have judged too get only their chance of
    answering at random.
    """
    if not annotator_states:
        return {}
    evidence, crowd = (
        np.array([*annotator_states.values()])[:, :EVIDENCE_SIZE],
        editions.crowd_of_campaign(campaign_state),
    )
    beliefs = learning.annotator_beliefs_for_display(evidence, crowd)
    nan_unless_compared = np.where(evidence[:, COMPARED] >= MIN_EVIDENCE_JUDGMENTS, 1.0, np.nan)
    columns = (
        beliefs.classes[:, 0],
        nan_unless_compared * beliefs.expected_reliability,
        nan_unless_compared * (beliefs.bias - crowd.mean_bias) * crowd.spread,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {number: AnnotatorDescription(*row) for number, row in zip(annotator_states, rows, strict=True)}
