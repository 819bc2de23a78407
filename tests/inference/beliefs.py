"""What a law believes of items that all begin alike, and what it has kept between HITs, as text."""

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
    run_law,
)


def begun(law: Law, items: int, parameters: LawParameters | None = None, kept: LawState | None = None) -> LawBeliefs:
    """Before the first HIT, from the law's own prior."""
    return law.initial_beliefs(
        [np.full(items, number) for number in law.family.default_prior], parameters or LawParameters(), kept
    )


def replayed(law: Law, items: int, hits: list[AnsweredHit], parameters: LawParameters | None = None) -> Array:
    """The posteriors after these HITs, (numbers, items)."""
    beliefs = begun(law, items, parameters)
    beliefs.apply_hits(hits)
    return beliefs.state


class Stored:
    """A campaign as a server keeps it: nothing but text from one HIT to the next, in rows, and each question of its law
    answered from the rows that it asks for. asked: the questions of the last HIT.
    """

    def __init__(self, law: Law, beliefs: LawBeliefs, parameters: LawParameters | None = None) -> None:
        self.law, self.parameters = law, parameters or LawParameters()
        self.priors = list(zip(*beliefs.state.tolist(), strict=True))
        self.posteriors = [json.dumps(prior) for prior in self.priors]
        self.campaign = json.dumps(beliefs.to_law_state().campaign)
        self.annotators: dict[int, str] = {}
        self.short: dict[int, str] = {}  # of items
        self.long: dict[int, str] = {}
        self.asked: list[StateQuery] = []

    @property
    def state(self) -> list[list[float]]:
        """The posteriors' numbers, a list for each."""
        return [list(column) for column in zip(*map(json.loads, self.posteriors), strict=True)]

    def kept(self) -> dict[str, Any]:
        """What the law keeps besides posteriors."""
        annotators = {str(number): json.loads(state) for number, state in self.annotators.items()}
        items = {str(number): [json.loads(self.short[number]), json.loads(self.long[number])] for number in self.short}
        return {"campaign": json.loads(self.campaign), "annotators": annotators, "items": items}

    def take(self, hit: AnsweredHit) -> HitChange:
        self.asked = []
        change = run_law(self.law.step_hit(hit, self.parameters), self.answer)
        for number, posterior in zip(change.items, zip(*change.state, strict=True), strict=True):
            self.posteriors[number] = json.dumps(posterior)
        for number, (short, long) in change.law_state.items.items():
            self.short[number] = json.dumps(list(short))
            self.long[number] = self.long.get(number, "[]") if long is None else json.dumps(long.tolist())
        self.annotators |= {number: json.dumps(state) for number, state in change.law_state.annotators.items()}
        self.campaign = json.dumps(change.law_state.campaign)
        return change

    def answer(self, ask: StateQuery) -> Any:  # noqa: PLR0911  (one for each kind of question)
        self.asked.append(ask)
        match ask:
            case ReadPosteriors(numbers):
                return tuple(map(list, zip(*(json.loads(self.posteriors[number]) for number in numbers), strict=True)))
            case ReadPriors(numbers):
                return [self.priors[number] for number in numbers]
            case ReadCampaignState():
                return json.loads(self.campaign)
            case ReadAnnotatorStates(numbers):
                return {number: json.loads(self.annotators[number]) for number in numbers if number in self.annotators}
            case ReadItemHeads(numbers):
                return {number: self.of_item(number) for number in numbers if number in self.short}
            case ReadItemTails(numbers):
                return {number: np.array(json.loads(self.long[number])) for number in numbers if number in self.long}
            case ReadNextItems(last, limit):
                ahead = sorted(self.short, key=lambda number: (number <= last, number))[:limit]
                return [(number, *self.of_item(number)) for number in ahead]
            case RunInThread():
                return None

    def of_item(self, number: int) -> tuple[list[float], int]:
        """What is short of it, and how long the rest is."""
        return json.loads(self.short[number]), len(json.loads(self.long[number]))


def as_text(kept: LawState) -> dict[str, Any]:
    """What a law keeps, as `Stored` has it."""
    items = {str(number): [list(short), np.array(long).tolist()] for number, (short, long) in kept.items.items()}
    annotators = {str(number): list(state) for number, state in kept.annotators.items()}
    return {"campaign": kept.campaign, "annotators": annotators, "items": items}
