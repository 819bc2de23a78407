"""The law `easl-aware` as steps from HIT to HIT that query the campaign's state."""

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import annotator_aware_editions as editions
from app.inference.online import annotator_aware_state as aware
from app.inference.online.annotator_aware_state import ItemState
from app.inference.online.beta import BETA
from app.inference.online.item_law import validated_copy_of_priors
from app.inference.online.law import (
    AnnotatorDescription,
    AnsweredHit,
    HitChange,
    JudgmentWeights,
    Law,
    LawParameters,
    LawState,
    StateFloats,
    refuse_repeated_or_unknown_hit_items,
)
from app.inference.online.state_queries import (
    Querying,
    ReadAnnotatorStates,
    ReadCampaignState,
    ReadItemHeads,
    ReadItemTails,
    ReadNextItems,
    ReadPriors,
    RunInThread,
    StateQuery,
    run_law_steps,
)
from app.inference.ratings.moderated_aware import moderated_means_by_annotator_aware_fit_or_none


@dataclass(frozen=True, slots=True)
class AnnotatorAwareLaw(Law):
    """The law `easl-aware`; `annotator_aware_state` explains the update and the state."""

    def initial_beliefs(
        self, priors: Sequence[npt.ArrayLike], parameters: LawParameters, law_state: LawState | None = None
    ) -> "AwareLawBeliefs":
        """Return the beliefs before the first HIT, under the edition of the campaign whose state this is."""
        state = validated_copy_of_priors(self, priors)
        campaign_state = (
            editions.INITIAL_CAMPAIGN_STATE
            if law_state is None or law_state.campaign is None
            else editions.initial_campaign_state_of_same_edition(law_state.campaign)
        )
        items = [ItemState()] * state.shape[1]
        return AwareLawBeliefs(
            self, parameters, state, list(zip(*state.tolist(), strict=True)), items, {}, campaign_state
        )

    def law_edition_number(self, campaign_state: StateFloats | None) -> int:
        """Return the edition of a campaign that has this state."""
        return (
            self.newest_edition if campaign_state is None else editions.edition_number_of_campaign_state(campaign_state)
        )

    def hit_change_querying_state(self, hit: AnsweredHit, parameters: LawParameters) -> Querying[HitChange]:  # noqa: ARG002  (it has nothing to tune)
        """Update the HIT's items, the items to rescan and all their annotators. Raises what `compute_aware_hit_change`
        raises.
        """
        campaign_state: StateFloats = yield ReadCampaignState()
        rescanned_items, campaign_state = yield from _items_to_rescan_and_moved_state(hit.items, campaign_state)
        numbers = [*hit.items, *rescanned_items]
        items = yield from _item_states_querying_state(numbers, campaign_state, rescan_count=len(rescanned_items))
        annotators = yield ReadAnnotatorStates(
            aware.annotator_numbers_involved_in_hit(
                hit.annotator, items, campaign_state, rescan_count=len(rescanned_items)
            )
        )
        priors = yield ReadPriors(numbers)
        yield RunInThread()
        change = aware.compute_aware_hit_change(
            hit.annotator,
            hit.values,
            priors=priors,
            items=items,
            annotator_states=annotators,
            campaign_state=campaign_state,
            rescan_count=len(rescanned_items),
        )
        changed = {
            number: (item.since, item.looked if place in change.scanned_places else None)
            for place, (number, item) in enumerate(zip(numbers, change.items, strict=True))
        }
        return HitChange(numbers, (change.a, change.b), LawState(change.campaign_state, change.annotators, changed))

    def annotator_description_by_number(
        self, annotator_states: Mapping[int, StateFloats], campaign_state: StateFloats
    ) -> dict[int, AnnotatorDescription]:
        """Describe annotators as the analysis does: an odd annotator who agrees with the others is not random."""
        return aware.aware_annotator_description_by_number(annotator_states, campaign_state)

    def judgment_weights_querying_state_or_none(self, item_number: int) -> Querying[JudgmentWeights]:
        """Return the weights of an item's judgments by the present beliefs about their annotators."""
        campaign_state: StateFloats = yield ReadCampaignState()
        item_heads = yield ReadItemHeads([item_number])
        item_tails = yield ReadItemTails([item_number])
        state = ItemState(*item_heads.get(item_number, ()))._replace(looked=item_tails.get(item_number))
        return aware.current_weight_and_score_of_each_judgment(
            state, (yield ReadAnnotatorStates(aware.annotator_number_of_each_judgment(state))), campaign_state
        )


def _items_to_rescan_and_moved_state(
    hit_items: Sequence[int], campaign_state: StateFloats
) -> Querying[tuple[list[int], StateFloats]]:
    """Return the items to rescan with a HIT of these items, and the campaign's state with its position moved on."""
    last, judgment_budget = editions.last_rescanned_item_and_judgment_budget(campaign_state)
    if not judgment_budget:
        return [], campaign_state
    # One more than can be taken tells that there are more.
    following = yield ReadNextItems(last, editions.MAX_RESCANNED_JUDGMENTS + len(hit_items) + 1)
    candidates = [
        (number, ItemState(since, floats).judgment_count)
        for number, since, floats in following
        if number not in hit_items
    ]
    rescanned_items, next_position = aware.choose_rescanned_items_and_position(candidates, last, judgment_budget)
    return rescanned_items, editions.campaign_state_with_rescan_position(campaign_state, *next_position)


def _item_states_querying_state(
    item_numbers: Sequence[int], campaign_state: StateFloats, *, rescan_count: int
) -> Querying[list[ItemState]]:
    """Return the states of these items, with the scanned judgments where they are needed.

    The last `rescan_count` of the items are rescanned.
    """
    item_heads = yield ReadItemHeads(item_numbers)
    items = [ItemState(*item_heads.get(number, ())) for number in item_numbers]
    item_tails = yield ReadItemTails(
        [item_numbers[place] for place in aware.positions_of_scanned_items(items, rescan_count, campaign_state)]
    )
    return [item._replace(looked=item_tails.get(number)) for number, item in zip(item_numbers, items, strict=True)]


@dataclass(slots=True)
class AwareLawBeliefs:
    """All of a campaign's state in memory, changed by one HIT after another.

    Attributes:
        state: The posteriors, (2, N).
        priors: N pairs (a, b).
        items: N states.
        annotators: States by number.
        campaign_state: The campaign's state.
        judged: Numbers of the judged items, in order.

    """

    law: AnnotatorAwareLaw
    parameters: LawParameters
    state: Array
    priors: Sequence[tuple[float, ...]]
    items: list[ItemState]
    annotators: dict[int, StateFloats]
    campaign_state: StateFloats
    judged: list[int] = field(default_factory=list)  # in order

    @property
    def nbytes(self) -> int:
        """Memory of the posteriors and of the judgments, in bytes."""
        judgments = sum(self.items[item].judgment_count for item in self.judged)
        return self.state.nbytes + 8 * aware.JUDGMENT_SIZE * judgments

    def copy(self) -> "AwareLawBeliefs":
        """Return an independent copy. States of items and annotators never change in place, so both share them."""
        return replace(
            self,
            state=self.state.copy(),
            items=list(self.items),
            annotators=dict(self.annotators),
            judged=list(self.judged),
        )

    def law_state_besides_posteriors(self) -> LawState:
        """Return all state besides posteriors."""
        none = np.empty(0)
        items = {k: self.items[k] for k in self.judged}
        return LawState(
            self.campaign_state,
            self.annotators,
            {k: (item.since, none if item.looked is None else item.looked) for k, item in items.items()},
        )

    def apply_hits(self, hits: Sequence[AnsweredHit]) -> None:
        """Apply HITs, one after another."""
        for _ in self.apply_hits_and_iterate_changes(hits):
            pass

    def apply_hits_and_iterate_changes(self, hits: Sequence[AnsweredHit]) -> Iterator[HitChange]:
        """Apply HITs, and yield what each changed."""
        for hit in hits:
            yield self.apply_hit_and_return_change(hit)

    def apply_hit_and_return_change(self, hit: AnsweredHit) -> HitChange:
        """Apply one HIT. Raises ValueError for what `compute_aware_hit_change` refuses, and for item numbers out of
        range or given twice.
        """
        refuse_repeated_or_unknown_hit_items(hit.items, len(self.items))
        change = run_law_steps(self.law.hit_change_querying_state(hit, self.parameters), self._state_for_query)
        self._apply_change_in_place(change)
        return change

    def _state_for_query(self, query: StateQuery) -> Any:  # noqa: PLR0911  (one for each kind of question)
        match query:
            case RunInThread():
                return None
            case ReadCampaignState():
                return self.campaign_state
            case ReadNextItems(last, limit):
                place = bisect_right(self.judged, last)
                first = self.judged[place : place + limit]
                numbers = first + self.judged[: min(place, limit - len(first))]
                return [(number, self.items[number].since, self.items[number].floats) for number in numbers]
            case ReadItemHeads(items):
                return {number: self.items[number][:2] for number in items}
            case ReadItemTails(items):
                return {number: self.items[number].looked for number in items}
            case ReadAnnotatorStates(annotators):
                return {number: self.annotators[number] for number in annotators if number in self.annotators}
            case ReadPriors(items):
                return [self.priors[number] for number in items]
        raise TypeError(f"{query} is not a query of this law")

    def _apply_change_in_place(self, change: HitChange) -> None:
        self.state[:, change.items] = change.state
        for number, (since, looked) in change.law_state.items.items():
            before = self.items[number]
            if not before.judgment_count:
                insort(self.judged, number)
            self.items[number] = (
                before._replace(since=since) if looked is None else ItemState(since, looked.size, looked)
            )
        self.annotators |= change.law_state.annotators
        assert change.law_state.campaign is not None  # noqa: S101  (this law's changes have one)
        self.campaign_state = change.law_state.campaign


LAW = AnnotatorAwareLaw(
    name="easl-aware",
    title="EASL-aware: learns each annotator’s reliability, and weights and corrects scores",
    assumes="Like EASL, but annotators differ in reliability, bias and scale; scores are weighted and corrected as far "
    "as this clearly helps.",
    family=BETA,
    layout=1,
    newest_edition=editions.NEWEST_EDITION,
    quick=False,
    fit=moderated_means_by_annotator_aware_fit_or_none,
)
