"""The update law `easl-aware`: one HIT changes what is known of its items, of others, and of everybody who judged them.

EASL adds s to alpha and 1 - s to beta. So does this law, after correcting s for its annotator's bias and scale, times
the annotator's weight; with the trust (see `annotator_beliefs`) at 0 it IS EASL. Weights change as annotators become
known. So after a HIT the posteriors of its items are made anew from all their judgments, with the newest weights; and
then those of other items, in turn, `AGAIN` judgments of them. Thus the whole campaign is gone through again and again:
the fit to all judgments, its rounds spread over the answers (as in incremental EM, Neal & Hinton 1998, "A view of the
EM algorithm that justifies incremental, sparse, and other variants"). Up to `AGAIN` judgments in all, every HIT is a
round; later, a round passes while the campaign's judgments grow by a few in a hundred.

A campaign's state is lists of floats, to be stored as they are:

- per item, what `ItemState` says. It is in two parts, so that an answer whose item is not looked at costs the same
  however many judgments the item has: it adds two floats to the shorter part, and leaves the longer one unread;
- per annotator, `ANNOTATOR` floats: sums of evidence, what is believed, and what was added to the totals;
- for the campaign, the number of the rule and the turn (which item was looked at again last, and how many judgments may
  be on top of `AGAIN` with the next HIT), then `TOTALS` floats: the sum of what annotators have added.

The totals make a HIT depend on all before it, so HITs of a campaign must be applied one after another, in the order in
which they are numbered; `apply` then gives the same bits live and in a replay. Which items are looked at again follows
from these states alone.

Campaigns launched under the first rule keep it: only a HIT's own items are looked at, with every HIT; beliefs change at
once; `since` is always empty, and the campaign's state is without what comes before totals.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online.law import AnnotatorDescribed, checked_scores
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_beliefs import AnnotatorBeliefs
from app.inference.ratings.annotator_evidence import (
    COMPARED,
    COMPARED_AT_LEAST,
    EVIDENCE,
    OTHERS,
    Judged,
    evidence_of,
)

State = list[float]

JUDGMENT = 2 + OTHERS
_BELIEFS = learning.CLASSES + 7
ANNOTATOR = EVIDENCE + _BELIEFS + learning.TOTALS
TOTALS = learning.TOTALS

AGAIN = 100
"""Judgments of other items that are looked at again with each HIT, and the most such items."""
# Of a HIT's items, all judgments are looked at when those that were not yet are at least this part of the others: so
# what an answer costs hardly grows with the judgments that its items have.
_NEWS = 1 / 20

BEGUN: State = [2.0, -1.0, 0.0]
"""The campaign's state before the first HIT. Under the first rule it was empty.

Nothing reads the number of the rule yet: that there is a turn tells the first two apart.
"""
_POSTERIOR, _NEW = 2, 2  # floats before the judgments since the last look, and of each of these
_HALF = 0.5  # of a change of beliefs is made, as in `annotator_fixed_point`


class ItemState(NamedTuple):
    """What is known of one item; its judgments are those of `looked`, first to last, and then those of `since`.

    since: the posterior's alpha and beta, then annotator and score of each judgment since the item was last looked at;
    empty before the first judgment. floats: how many `looked` has. looked: `JUDGMENT` floats of each judgment up to
    then: the annotator's number, the score, and what the others said at that look; None if they are not at hand.
    """

    since: Sequence[float] = ()
    floats: int = 0
    looked: Array | None = None

    @property
    def judgments(self) -> int:
        """How many the item has."""
        return self.floats // JUDGMENT + self.unseen

    @property
    def unseen(self) -> int:
        """How many it has since the last look."""
        return max(len(self.since) - _POSTERIOR, 0) // _NEW

    def rows(self) -> Array:
        """All judgments, (judgments, JUDGMENT), NaN where it is not known what the others said. To be read only.

        Raises ValueError if what was looked at is not at hand.
        """
        if self.looked is None and self.floats:
            raise ValueError("what was known of an item that is looked at must be given")
        looked = (np.empty(0) if self.looked is None else self.looked).reshape(-1, JUDGMENT)
        if not self.unseen:  # as of nearly all that are looked at again
            return looked
        unseen = np.full((self.unseen, JUDGMENT), np.nan)
        unseen[:, :_NEW] = np.reshape(self.since[_POSTERIOR:], (-1, _NEW))
        return np.concatenate([looked, unseen])


@dataclass(frozen=True, slots=True)
class AwareChange:
    """What one HIT changed: new values, the arguments of `apply` are left alone.

    a, b: posteriors, Beta(a, b), of the HIT's n items, then of those looked at again. items: these items' states.
    looked: which of these were looked at, by place; of the others only `since` is new.
    annotators: the new state of everybody concerned, by number. totals: the campaign's, its turn as it was.
    """

    a: list[float]
    b: list[float]
    items: list[ItemState]
    looked: list[int]
    annotators: dict[int, State]
    totals: State


def _turned(totals: Sequence[float]) -> bool:
    """Whether other items are looked at again: not under the first rule."""
    return len(totals) not in (0, TOTALS)


def _sums(totals: Sequence[float]) -> Array:
    """What annotators have added to the campaign's state, (TOTALS,)."""
    return np.array([*totals[len(BEGUN) if _turned(totals) else 0 :]] or [0.0] * TOTALS)


def begun_like(totals: Sequence[float]) -> State:
    """Before the first HIT, the state of a campaign that has these totals at any time: under the same rule."""
    return BEGUN if _turned(totals) else []


def turn(totals: Sequence[float]) -> tuple[int, int]:
    """Which item was looked at again last, and how many judgments may be now; (-1, 0) if none ever are."""
    return (int(totals[1]), int(totals[2]) + AGAIN) if _turned(totals) else (-1, 0)


def chosen(following: Iterable[tuple[int, int]], last: int, may: int) -> tuple[list[int], tuple[int, int]]:
    """The items to look at again, `may` judgments or fewer of at most `AGAIN` items, and the turn after that.

    following: number and judgments of the campaign's judged items, without the HIT's, from the one after `last` around.
    """
    numbers: list[int] = []
    for number, judgments in following:
        if not may or judgments > may or len(numbers) == AGAIN:
            break
        numbers.append(number)
        may -= judgments
    else:
        may = 0  # all have been looked at; nothing is saved up
    return numbers, (numbers[-1] if numbers else last, may)


def turned(totals: Sequence[float], last: int, left: int) -> State:
    """The campaign's state with its turn moved on."""
    return [totals[0], float(last), float(left), *totals[len(BEGUN) :]] if _turned(totals) else list(totals)


def looked_at(items: Sequence[ItemState], again: int, totals: Sequence[float]) -> list[int]:
    """The places of the items whose judgments are looked at; the last `again` are not in the HIT."""
    shown = len(items) - again
    due = not _turned(totals)
    return [place for place, item in enumerate(items) if due or place >= shown or _due(item)]


def _due(item: ItemState) -> bool:
    return item.unseen + 1 >= _NEWS * (item.floats // JUDGMENT)


def concerned(annotator: int, items: Sequence[ItemState], totals: Sequence[float], *, again: int = 0) -> list[int]:
    """Whose states `apply` needs, and may change: the annotator's and those of the judgments looked at, in order."""
    looked = [items[place].rows()[:, 0] for place in looked_at(items, again, totals)]
    return sorted({annotator, *np.unique(np.concatenate([np.empty(0), *looked])).astype(np.int64).tolist()})


def apply(
    annotator: int,
    scores: Sequence[float],
    *,
    priors: Sequence[tuple[float, float]],
    items: Sequence[ItemState],
    annotators: Mapping[int, Sequence[float]],
    totals: Sequence[float],
    again: int = 0,
) -> AwareChange:
    """One HIT of n >= 1 items.

    annotator: any whole number below 2^53 in size. scores: n floats in [0, 1]. items: the n items' states, then those
    of `again` others that are looked at again; `looked` must be at hand where they are `looked_at`. priors: the (a, b)
    that each of all these started with. annotators: the states of all `concerned`, without those who are new. totals:
    the campaign's, `BEGUN` before the first HIT.
    Raises ValueError for a score that is NaN or outside [0, 1], for lengths that differ and for what is not at hand.
    """
    floats = checked_scores(scores, len(items) - again)
    if len(priors) != len(items):
        raise ValueError(f"each item has a prior, but there are {len(items)} items and {len(priors)} priors")
    looked = looked_at(items, again, totals)
    numbers = concerned(annotator, items, totals, again=again)
    given = [floats[place] for place in looked if place < len(floats)]
    judged, said = _judged(annotator, given, [items[place].rows() for place in looked], numbers)
    beliefs, heard, people, sums = _learned(judged, said, numbers, annotators, totals)
    common = learning.crowd(sums)

    def scored(judgments: Judged) -> tuple[Array, Array]:
        return learning.corrected(judgments, beliefs, common, trust=common.trust, scale_trust=common.scale_trust)

    priors_looked = [priors[place] for place in looked]
    after = dict(zip(looked, _posteriors(judged.items, *scored(judged), priors_looked), strict=True))
    rows = np.column_stack([np.array(numbers)[judged.annotators], judged.scores, heard.T])
    states = {
        place: _looked(after[place] if _turned(totals) else (), of_item)
        for place, of_item in zip(looked, _by_item(rows, judged), strict=True)
    }
    added = sorted(set(range(len(items))) - set(looked))
    weight, score = scored(_by_one(numbers.index(annotator), [floats[place] for place in added]))
    for place, more_a, more_b in zip(added, weight * score, weight * (1.0 - score), strict=True):
        a, b, *since = items[place].since
        after[place] = (a + float(more_a), b + float(more_b))
        states[place] = items[place]._replace(since=[*after[place], *since, float(annotator), floats[place]])
    return AwareChange(
        a=[after[place][0] for place in range(len(items))],
        b=[after[place][1] for place in range(len(items))],
        items=[states[place] for place in range(len(items))],
        looked=looked,
        annotators=people,
        totals=[*totals[: len(BEGUN) if _turned(totals) else 0], *sums.tolist()],
    )


def _by_item(rows: Array, judged: Judged) -> list[Array]:
    """Of rows for all judgments those of each item, first to last."""
    together = rows[np.argsort(judged.items, kind="stable")]
    ends = np.cumsum(np.bincount(judged.items, minlength=judged.n_items)).tolist()
    return [together[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _looked(posterior: Sequence[float], rows: Array) -> ItemState:
    return ItemState(posterior, rows.size, rows.flatten())  # a copy: rows are a part of what nobody is to keep


def _judged(annotator: int, scores: list[float], items: Sequence[Array], numbers: list[int]) -> tuple[Judged, Array]:
    """All judgments of these items, the new ones last and of the first items, and what the others of them said before,
    (OTHERS, J), NaN where nothing is known of it.
    """
    rows = np.concatenate([np.empty((0, JUDGMENT)), *items])
    item = np.repeat(np.arange(len(items), dtype=np.intp), [len(earlier) for earlier in items])
    gave = np.concatenate([rows[:, 0].astype(np.int64), np.full(len(scores), annotator, dtype=np.int64)])
    who = np.asarray(np.searchsorted(numbers, gave), dtype=np.intp)
    judged = Judged.of(
        np.r_[item, np.arange(len(scores), dtype=np.intp)], who, np.r_[rows[:, 1], scores], len(items), len(numbers)
    )
    return judged, np.hstack([rows[:, 2:].T, np.full((OTHERS, len(scores)), np.nan)])


def _learned(
    judged: Judged, said: Array, numbers: list[int], annotators: Mapping[int, Sequence[float]], totals: Sequence[float]
) -> tuple[AnnotatorBeliefs, Array, dict[int, State], Array]:
    """What these judgments make believe of their annotators, what the others say now, the annotators' new states, and
    the new sum of what annotators add.
    """
    rows = np.array([annotators.get(number) or [0.0] * ANNOTATOR for number in numbers])
    evidence, known, added = np.split(rows, [EVIDENCE, EVIDENCE + _BELIEFS], axis=1)
    sums = _sums(totals)
    common = learning.crowd(sums)
    new = np.array([number not in annotators for number in numbers])
    if new.any():
        known[new] = learning.beliefs(evidence[new], common).rows()
    heard = said
    if len(judged.scores):
        heard = learning.others(judged, AnnotatorBeliefs.of(known), common)
        # What has not been looked at before has no evidence to take back.
        seen = ~np.isnan(said[0])
        taken = evidence_of(_only(judged, seen), said[:, seen])
        evidence = evidence + evidence_of(judged, heard) - taken
    beliefs = learning.beliefs(evidence, common)
    if _turned(totals):
        beliefs = AnnotatorBeliefs.of(known + np.where(new, 1.0, _HALF)[:, None] * (beliefs.rows() - known))
    contributions = learning.contributions(evidence, beliefs, common.typical)
    stored = np.column_stack([evidence, beliefs.rows(), contributions]).tolist()
    return beliefs, heard, dict(zip(numbers, stored, strict=True)), sums + (contributions - added).sum(axis=0)


def _only(judged: Judged, these: npt.NDArray[np.bool_]) -> Judged:
    return replace(
        judged,
        items=judged.items[these],
        annotators=judged.annotators[these],
        scores=judged.scores[these],
        same=None,  # what the others say of these is known
    )


def _by_one(annotator: int, scores: list[float]) -> Judged:
    items = np.arange(len(scores), dtype=np.intp)
    return Judged(items, np.full_like(items, annotator), np.array(scores, np.float64), None, len(scores), annotator + 1)


def _posteriors(
    items: npt.NDArray[np.intp], weight: Array, score: Array, priors: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The items' Beta posteriors: the prior, and weight times corrected score, added up from first to last."""
    posteriors = np.reshape(np.array(priors, dtype=np.float64), (-1, 2))
    np.add.at(posteriors[:, 0], items, weight * score)
    np.add.at(posteriors[:, 1], items, weight * (1.0 - score))
    return [(a, b) for a, b in posteriors.tolist()]


def judges(item: ItemState) -> list[int]:
    """Who gave each judgment of an item, first to last."""
    return [int(number) for number in item.rows()[:, 0]]


def counted(
    item: ItemState, annotators: Mapping[int, Sequence[float]], totals: Sequence[float]
) -> tuple[list[float], list[float]]:
    """What each judgment of an item counts for by what is known now, first to last: weights in (0, 1] and corrected
    scores in [0, 1].

    item: its state; annotators: the states of its `judges`; totals: the campaign's. The posterior is the prior and
    weight times corrected score, as they were when the item was last looked at: after the HIT that looked at it, the
    weighted mean is the mode of a posterior that began as Beta(1, 1); later, until its turn comes, it is ahead of it.
    """
    numbers, who = np.unique(np.array(judges(item), dtype=np.int64), return_inverse=True)
    scores = item.rows()[:, 1]
    known = np.reshape([annotators[int(k)] for k in numbers], (-1, ANNOTATOR))
    beliefs = AnnotatorBeliefs.of(known[:, EVIDENCE : EVIDENCE + _BELIEFS])
    common = learning.crowd(_sums(totals))
    judged = Judged.of(np.zeros(len(who), np.intp), who, scores, 1, len(numbers))
    weight, score = learning.corrected(judged, beliefs, common, trust=common.trust, scale_trust=common.scale_trust)
    return weight.tolist(), score.tolist()


def described(annotators: Mapping[int, Sequence[float]], totals: Sequence[float]) -> dict[int, AnnotatorDescribed]:
    """These annotators, by number, as of what is known of them now; those who judged less than `COMPARED_AT_LEAST`
    items that others have judged too only by their chance of answering at random.
    """
    if not annotators:
        return {}
    evidence, common = np.array([*annotators.values()])[:, :EVIDENCE], learning.crowd(_sums(totals))
    found = learning.described(evidence, common)
    known = np.where(evidence[:, COMPARED] >= COMPARED_AT_LEAST, 1.0, np.nan)
    columns = found.classes[:, 0], known * found.reliability, known * found.bias * common.spread
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {number: AnnotatorDescribed(*row) for number, row in zip(annotators, rows, strict=True)}
