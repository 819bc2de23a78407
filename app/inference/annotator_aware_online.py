"""The update law `easl-aware`: one HIT changes what is known of its items and of everybody who has judged them.

EASL adds s to alpha and 1 - s to beta. So does this law, after correcting s for its annotator's bias and scale, times
the annotator's weight; with the trust (see `annotator_beliefs`) at 0 it IS EASL. Weights change as annotators become
known, so after a HIT its items' posteriors are made anew from all their judgments, with the newest weights: the
judgments of n items are read again, n being the size of the HIT, and nothing else.

A campaign's state is lists of floats, to be stored as they are:

- per item, `JUDGMENT` floats for each of its judgments, first to last: the annotator's number, the score, and what the
  others said at the last look;
- per annotator, `ANNOTATOR` floats: sums of evidence, what is believed, and what was added to the totals;
- for the campaign, `TOTALS` floats: the sum of what annotators have added.

The totals make a HIT depend on all before it, so HITs of a campaign must be applied one after another, in the order in
which they are numbered; `apply` then gives the same bits live and in a replay.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference import annotator_beliefs as learning
from app.inference import easl
from app.inference.annotator_beliefs import Beliefs, Crowd, Judged
from app.inference.law import Array, checked_items, checked_scores

State = list[float]

JUDGMENT = 2 + learning.OTHERS
_BELIEFS = learning.CLASSES + 7
ANNOTATOR = learning.EVIDENCE + _BELIEFS + learning.TOTALS
TOTALS = learning.TOTALS

# What is looked at after every HIT passes any bound sooner or later; and what a HIT does to its items' posteriors stays
# until they are shown again, also when it turns out that nothing was to be corrected.
_CAUTION = 2.0


@dataclass(frozen=True, slots=True)
class Change:
    """What one HIT of n items changed: new values, the arguments of `apply` are left alone.

    a, b: n posteriors, Beta(a, b). items: the n items' states. annotators: the new state of everybody concerned, by
    number. totals: the campaign's.
    """

    a: list[float]
    b: list[float]
    items: list[State]
    annotators: dict[int, State]
    totals: State


def concerned(annotator: int, items: Iterable[Sequence[float]]) -> list[int]:
    """Whose states `apply` needs, and may change: the annotator's and those of earlier judgments, in order."""
    return sorted({annotator, *(int(number) for state in items for number in state[::JUDGMENT])})


def apply(
    annotator: int,
    scores: Sequence[float],
    *,
    priors: Sequence[tuple[float, float]],
    items: Sequence[Sequence[float]],
    annotators: Mapping[int, Sequence[float]],
    totals: Sequence[float],
) -> Change:
    """One HIT of n >= 1 items.

    annotator: any whole number below 2^53 in size. scores: n floats in [0, 1]. priors: the (a, b) that each item
    started with. items: the n items' states, empty before the first judgment. annotators: the states of all
    `concerned`, without those who are new. totals: the campaign's, empty before the first HIT.
    Raises ValueError for a score that is NaN or outside [0, 1] and for lengths that differ.
    """
    floats = checked_scores(scores, len(items))
    if len(priors) != len(items):
        raise ValueError(f"each item has a prior, but there are {len(items)} items and {len(priors)} priors")
    numbers = concerned(annotator, items)
    judged, before = _judged(annotator, floats, items, numbers)
    rows = np.array([annotators.get(number) or [0.0] * ANNOTATOR for number in numbers])
    evidence, known, added = np.split(rows, [learning.EVIDENCE, learning.EVIDENCE + _BELIEFS], axis=1)
    sums = np.array(totals if len(totals) else [0.0] * TOTALS)
    common = learning.crowd(sums)
    new = np.array([number not in annotators for number in numbers])
    known[new] = learning.beliefs(evidence[new], common).rows()
    heard = learning.others(judged, Beliefs.of(known), common)
    # The one new judgment of each item has no evidence to take back.
    earlier = _without(judged, len(floats))
    evidence = evidence + learning.evidence_of(judged, heard) - learning.evidence_of(earlier, before)
    beliefs = learning.beliefs(evidence, common)
    contributions = learning.contributions(evidence, beliefs, common.typical)
    sums = sums + (contributions - added).sum(axis=0)
    a, b = _posteriors(judged, beliefs, learning.crowd(sums, caution=_CAUTION), priors)
    states = np.column_stack([np.array(numbers)[judged.annotators], judged.scores, heard.T])
    stored = np.column_stack([evidence, beliefs.rows(), contributions]).tolist()
    return Change(
        a,
        b,
        [_flat(states[judged.items == item]) for item in range(len(items))],
        dict(zip(numbers, stored, strict=True)),
        sums.tolist(),
    )


def _judged(
    annotator: int, scores: list[float], items: Sequence[Sequence[float]], numbers: list[int]
) -> tuple[Judged, Array]:
    """All judgments of the HIT's items, the new ones last, and what the others of earlier ones said, (OTHERS, J)."""
    earlier = [np.reshape(np.asarray(state, dtype=np.float64), (-1, JUDGMENT)) for state in items]
    rows = np.concatenate(earlier)
    item = np.repeat(np.arange(len(items), dtype=np.intp), [len(state) for state in earlier])
    gave = np.r_[rows[:, 0].astype(np.int64), np.full(len(scores), annotator, dtype=np.int64)]
    who = np.asarray(np.searchsorted(numbers, gave), dtype=np.intp)
    judged = Judged.of(
        np.r_[item, np.arange(len(scores), dtype=np.intp)], who, np.r_[rows[:, 1], scores], len(items), len(numbers)
    )
    return judged, rows[:, 2:].T


def _without(judged: Judged, last: int) -> Judged:
    end = len(judged.scores) - last
    return replace(
        judged,
        items=judged.items[:end],
        annotators=judged.annotators[:end],
        scores=judged.scores[:end],
        same=None,  # what the others say of these is known
    )


def _posteriors(
    judged: Judged, known: Beliefs, common: Crowd, priors: Sequence[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """The items' Beta posteriors: the prior, and weight times corrected score, added up from first to last."""
    weight, score = learning.corrected(judged, known, common, trust=common.trust, scale_trust=common.scale_trust)
    a, b = np.array(priors, dtype=np.float64).T
    np.add.at(a, judged.items, weight * score)
    np.add.at(b, judged.items, weight * (1.0 - score))
    return a.tolist(), b.tolist()


def _flat(rows: Array) -> State:
    floats: State = rows.ravel().tolist()
    return floats


@dataclass
class Learned:
    """What a campaign has learned, in memory: all of its state, changed by one HIT after another.

    priors: N pairs (a, b). items: N states, empty before the first judgment. annotators: states by number.
    totals: empty before the first HIT.
    """

    priors: Sequence[tuple[float, float]]
    items: list[State]
    annotators: dict[int, State]
    totals: State

    @classmethod
    def nothing(cls, priors: Sequence[tuple[float, float]]) -> "Learned":
        """Before the first HIT."""
        return cls(priors, [[] for _ in priors], {}, [])

    def copy(self) -> "Learned":
        """One that goes its own way; states are never changed in place, so they are shared."""
        return replace(self, items=list(self.items), annotators=dict(self.annotators))

    def apply(self, annotator: int, shown: Sequence[int], scores: Sequence[float]) -> Change:
        """Learn from one HIT. Raises ValueError for what the function `apply` refuses, and for item numbers that are
        not there or twice.
        """
        checked_items(shown, len(self.items))
        states = [self.items[item] for item in shown]
        around = {k: self.annotators[k] for k in concerned(annotator, states) if k in self.annotators}
        priors = [self.priors[item] for item in shown]
        change = apply(annotator, scores, priors=priors, items=states, annotators=around, totals=self.totals)
        for item, state in zip(shown, change.items, strict=True):
            self.items[item] = state
        self.annotators |= change.annotators
        self.totals = change.totals
        return change


LAW = replace(
    easl.LAW,
    name="easl-aware",
    title="EASL-aware: learns who can be relied on, and weights and corrects their scores accordingly",
    update=None,
    update_all=None,
)
