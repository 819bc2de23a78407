"""Beliefs of a law about items that all begin alike, in memory and stored as text between HITs."""

import json
from typing import Any

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.online.law import (
    AnsweredHit,
    HitChange,
    Law,
    LawBeliefs,
    LawParameters,
    LawState,
)
from app.inference.online.state_queries import (
    ReadAnnotatorStates,
    ReadCampaignState,
    ReadItemHeads,
    ReadItemTails,
    ReadNextItems,
    ReadPosteriors,
    ReadPriors,
    RunInThread,
    StateQuery,
    run_law_steps,
)


def initial_beliefs(
    law: Law, items: int, parameters: LawParameters | None = None, law_state: LawState | None = None
) -> LawBeliefs:
    """Return the beliefs before the first HIT, from the law's own prior."""
    return law.initial_beliefs(
        [np.full(items, number) for number in law.family.default_prior], parameters or LawParameters(), law_state
    )


def posteriors_after(law: Law, items: int, hits: list[AnsweredHit], parameters: LawParameters | None = None) -> Array:
    """Return the posteriors after these HITs, (numbers, items)."""
    beliefs = initial_beliefs(law, items, parameters)
    beliefs.apply_hits(hits)
    return beliefs.state


class StoredCampaign:
    """A campaign as a server keeps it: rows of text between HITs, from which each query of its law is answered.

    `queries` are those of the last HIT.
    """

    def __init__(self, law: Law, beliefs: LawBeliefs, parameters: LawParameters | None = None) -> None:
        self.law, self.parameters = law, parameters or LawParameters()
        self.priors = list(zip(*beliefs.state.tolist(), strict=True))
        self.posteriors = [json.dumps(prior) for prior in self.priors]
        self.campaign = json.dumps(beliefs.law_state_besides_posteriors().campaign)
        self.annotators: dict[int, str] = {}
        self.item_heads: dict[int, str] = {}
        self.item_tails: dict[int, str] = {}
        self.queries: list[StateQuery] = []

    @property
    def state(self) -> list[list[float]]:
        """Return the numbers of each posterior."""
        return [list(column) for column in zip(*map(json.loads, self.posteriors), strict=True)]

    def law_state(self) -> dict[str, Any]:
        """Return the law's state besides posteriors."""
        annotators = {str(number): json.loads(state) for number, state in self.annotators.items()}
        items = {
            str(number): [json.loads(self.item_heads[number]), json.loads(self.item_tails[number])]
            for number in self.item_heads
        }
        return {"campaign": json.loads(self.campaign), "annotators": annotators, "items": items}

    def apply_hit_and_return_change(self, hit: AnsweredHit) -> HitChange:
        self.queries = []
        change = run_law_steps(self.law.hit_change_querying_state(hit, self.parameters), self.answer_state_query)
        for number, posterior in zip(change.items, zip(*change.state, strict=True), strict=True):
            self.posteriors[number] = json.dumps(posterior)
        for number, (short, long) in change.law_state.items.items():
            self.item_heads[number] = json.dumps(list(short))
            self.item_tails[number] = self.item_tails.get(number, "[]") if long is None else json.dumps(long.tolist())
        self.annotators |= {number: json.dumps(state) for number, state in change.law_state.annotators.items()}
        self.campaign = json.dumps(change.law_state.campaign)
        return change

    def answer_state_query(self, query: StateQuery) -> Any:  # noqa: PLR0911  (one for each kind of question)
        self.queries.append(query)
        match query:
            case ReadPosteriors(numbers):
                return tuple(map(list, zip(*(json.loads(self.posteriors[number]) for number in numbers), strict=True)))
            case ReadPriors(numbers):
                return [self.priors[number] for number in numbers]
            case ReadCampaignState():
                return json.loads(self.campaign)
            case ReadAnnotatorStates(numbers):
                return {number: json.loads(self.annotators[number]) for number in numbers if number in self.annotators}
            case ReadItemHeads(numbers):
                return {number: self.head_and_tail_length(number) for number in numbers if number in self.item_heads}
            case ReadItemTails(numbers):
                return {
                    number: np.array(json.loads(self.item_tails[number]))
                    for number in numbers
                    if number in self.item_tails
                }
            case ReadNextItems(last, limit):
                ahead = sorted(self.item_heads, key=lambda number: (number <= last, number))[:limit]
                return [(number, *self.head_and_tail_length(number)) for number in ahead]
            case RunInThread():
                return None

    def head_and_tail_length(self, number: int) -> tuple[list[float], int]:
        """Return an item's short list, and the length of its long one."""
        return json.loads(self.item_heads[number]), len(json.loads(self.item_tails[number]))


def law_state_json(law_state: LawState) -> dict[str, Any]:
    """Return a law's state as `StoredCampaign.law_state` does."""
    items = {str(number): [list(short), np.array(long).tolist()] for number, (short, long) in law_state.items.items()}
    annotators = {str(number): list(state) for number, state in law_state.annotators.items()}
    return {"campaign": law_state.campaign, "annotators": annotators, "items": items}
