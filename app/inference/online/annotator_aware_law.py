"""The law `easl-aware`: how it goes from HIT to HIT, asking for what it needs of its campaign's state."""

from bisect import bisect_right, insort
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import annotator_aware_online as aware
from app.inference.online.annotator_aware_online import ItemState
from app.inference.online.beta import BETA
from app.inference.online.item_law import checked_priors
from app.inference.online.law import (
    AnnotatorDescribed,
    Ask,
    Change,
    Counted,
    Hit,
    ItemsAfter,
    Kept,
    Law,
    LongOfItems,
    OfAnnotators,
    OfCampaign,
    OfItems,
    Parameters,
    Priors,
    State,
    Step,
    TakesLong,
    answered,
    checked_items,
)
from app.inference.ratings.moderated_aware import moderated_aware


@dataclass(frozen=True, slots=True)
class AnnotatorAwareLaw(Law):
    """`easl-aware`; `annotator_aware_online` says what it does and what it keeps."""

    def begin(self, priors: Sequence[npt.ArrayLike], parameters: Parameters, kept: Kept | None = None) -> "Learned":
        """Under the rule of the campaign of which this is kept."""
        state = checked_priors(self, priors)
        totals = aware.BEGUN if kept is None or kept.campaign is None else aware.begun_like(kept.campaign)
        items = [ItemState()] * state.shape[1]
        return Learned(self, parameters, state, list(zip(*state.tolist(), strict=True)), items, {}, totals)

    def step(self, hit: Hit, parameters: Parameters) -> Step:  # noqa: ARG002  (it has nothing to tune)
        """The items of the HIT, those whose turn it is, and everybody concerned. Raises what `apply` raises."""
        totals: State = yield OfCampaign()
        again, totals = yield from _turn(hit.items, totals)
        numbers = [*hit.items, *again]
        items = yield from _items(numbers, totals, again=len(again))
        annotators = yield OfAnnotators(aware.concerned(hit.annotator, items, totals, again=len(again)))
        priors = yield Priors(numbers)
        yield TakesLong()
        change = aware.apply(
            hit.annotator,
            hit.values,
            priors=priors,
            items=items,
            annotators=annotators,
            totals=totals,
            again=len(again),
        )
        changed = {
            number: (item.since, item.looked if place in change.looked else None)
            for place, (number, item) in enumerate(zip(numbers, change.items, strict=True))
        }
        return Change(numbers, (change.a, change.b), Kept(change.totals, change.annotators, changed))

    def described(self, annotators: Mapping[int, State], campaign: State) -> dict[int, AnnotatorDescribed]:
        """As the analysis describes them: who is odd but goes with the others is not random."""
        return aware.described(annotators, campaign)

    def counted(self, item: int) -> Generator[Ask, Any, Counted]:
        """By what is known of its annotators now."""
        totals: State = yield OfCampaign()
        known = yield OfItems([item])
        long = yield LongOfItems([item])
        state = ItemState(*known.get(item, ()))._replace(looked=long.get(item))
        return aware.counted(state, (yield OfAnnotators(aware.judges(state))), totals)


def _turn(shown: Sequence[int], totals: State) -> Generator[Ask, Any, tuple[list[int], State]]:
    """The items that are looked at again with a HIT of these, and the campaign's state with its turn moved on."""
    last, may = aware.turn(totals)
    if not may:
        return [], totals
    # One more than can be taken tells that there are more.
    following = yield ItemsAfter(last, aware.AGAIN + len(shown) + 1)
    others = [
        (number, ItemState(since, floats).judgments) for number, since, floats in following if number not in shown
    ]
    again, then = aware.chosen(others, last, may)
    return again, aware.turned(totals, *then)


def _items(numbers: Sequence[int], totals: State, *, again: int) -> Generator[Ask, Any, list[ItemState]]:
    """What is known of these items, the last `again` of which are looked at again, with all that is looked at."""
    known = yield OfItems(numbers)
    items = [ItemState(*known.get(number, ())) for number in numbers]
    long = yield LongOfItems([numbers[place] for place in aware.looked_at(items, again, totals)])
    return [item._replace(looked=long.get(number)) for number, item in zip(numbers, items, strict=True)]


@dataclass(slots=True)
class Learned:
    """What a campaign has learned, in memory: all of its state, changed by one HIT after another.

    state: the posteriors, (2, N). priors: N pairs (a, b). items: N states. annotators: states by number. totals: the
    campaign's.
    """

    law: AnnotatorAwareLaw
    parameters: Parameters
    state: Array
    priors: Sequence[tuple[float, ...]]
    items: list[ItemState]
    annotators: dict[int, State]
    totals: State
    judged: list[int] = field(default_factory=list)  # in order

    @property
    def nbytes(self) -> int:
        """Posteriors, and what is known of each judgment."""
        judgments = sum(self.items[item].judgments for item in self.judged)
        return self.state.nbytes + 8 * aware.JUDGMENT * judgments

    def copy(self) -> "Learned":
        """What is known of an item or annotator is never changed in place, so it is shared."""
        return replace(
            self,
            state=self.state.copy(),
            items=list(self.items),
            annotators=dict(self.annotators),
            judged=list(self.judged),
        )

    def kept(self) -> Kept:
        """All that is known besides posteriors."""
        none = np.empty(0)
        items = {k: self.items[k] for k in self.judged}
        return Kept(
            self.totals,
            self.annotators,
            {k: (item.since, none if item.looked is None else item.looked) for k, item in items.items()},
        )

    def take(self, hits: Sequence[Hit]) -> None:
        """Apply HITs, one after another."""
        for _ in self.steps(hits):
            pass

    def steps(self, hits: Sequence[Hit]) -> Iterator[Change]:
        """Apply HITs, and tell what each changed."""
        for hit in hits:
            yield self.apply(hit)

    def apply(self, hit: Hit) -> Change:
        """One HIT. Raises ValueError for what `annotator_aware_online.apply` refuses, and for item numbers that are not
        there or twice.
        """
        checked_items(hit.items, len(self.items))
        change = answered(self.law.step(hit, self.parameters), self._answer)
        self._put(change)
        return change

    def _answer(self, ask: Ask) -> Any:  # noqa: PLR0911  (one for each kind of question)
        match ask:
            case TakesLong():
                return None
            case OfCampaign():
                return self.totals
            case ItemsAfter(last, limit):
                place = bisect_right(self.judged, last)
                first = self.judged[place : place + limit]
                numbers = first + self.judged[: min(place, limit - len(first))]
                return [(number, self.items[number].since, self.items[number].floats) for number in numbers]
            case OfItems(items):
                return {number: self.items[number][:2] for number in items}
            case LongOfItems(items):
                return {number: self.items[number].looked for number in items}
            case OfAnnotators(annotators):
                return {number: self.annotators[number] for number in annotators if number in self.annotators}
            case Priors(items):
                return [self.priors[number] for number in items]
        raise TypeError(f"nothing is known of {ask}")

    def _put(self, change: Change) -> None:
        self.state[:, change.items] = change.state
        for number, (since, looked) in change.kept.items.items():
            before = self.items[number]
            if not before.judgments:
                insort(self.judged, number)
            self.items[number] = (
                before._replace(since=since) if looked is None else ItemState(since, looked.size, looked)
            )
        self.annotators |= change.kept.annotators
        assert change.kept.campaign is not None  # noqa: S101  (this law's changes have one)
        self.totals = change.kept.campaign


LAW = AnnotatorAwareLaw(
    name="easl-aware",
    title="EASL-aware: learns who can be relied on, and weights and corrects their scores accordingly",
    assumes="As EASL, but annotators differ in reliability, bias and scale; scores are weighted and corrected as far "
    "as the answers show that it helps.",
    family=BETA,
    layout=1,
    quick=False,
    fit=moderated_aware,
)
