"""What a law believes of items that all begin alike, and what it has kept between HITs, as text."""

import json
from typing import Any

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.online.law import (
    Ask,
    Beliefs,
    Change,
    Hit,
    ItemsAfter,
    Kept,
    Law,
    LongOfItems,
    OfAnnotators,
    OfCampaign,
    OfItems,
    Parameters,
    Posteriors,
    Priors,
    TakesLong,
    answered,
)


def begun(law: Law, items: int, parameters: Parameters | None = None, kept: Kept | None = None) -> Beliefs:
    """Before the first HIT, from the law's own prior."""
    return law.begin([np.full(items, number) for number in law.family.default_prior], parameters or Parameters(), kept)


def replayed(law: Law, items: int, hits: list[Hit], parameters: Parameters | None = None) -> Array:
    """The posteriors after these HITs, (numbers, items)."""
    beliefs = begun(law, items, parameters)
    beliefs.take(hits)
    return beliefs.state


class Stored:
    """A campaign as a server keeps it: nothing but text from one HIT to the next, and each question of its law answered
    from that. asked: the questions of the last HIT.
    """

    def __init__(self, law: Law, beliefs: Beliefs, parameters: Parameters | None = None) -> None:
        self.law, self.parameters = law, parameters or Parameters()
        self.priors = list(zip(*beliefs.state.tolist(), strict=True))
        kept: dict[str, Any] = {"campaign": beliefs.kept().campaign, "annotators": {}, "items": {}}
        self.text = json.dumps({"posteriors": self.priors} | kept)
        self.asked: list[Ask] = []

    @property
    def known(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    @property
    def state(self) -> list[list[float]]:
        """The posteriors' numbers, a list for each."""
        return [list(column) for column in zip(*self.known["posteriors"], strict=True)]

    def kept(self) -> dict[str, Any]:
        """What the law keeps besides posteriors."""
        return {name: known for name, known in self.known.items() if name != "posteriors"}

    def take(self, hit: Hit) -> Change:
        self.asked = []
        change = answered(self.law.step(hit, self.parameters), self.answer)
        known = self.known
        for number, posterior in zip(change.items, zip(*change.state, strict=True), strict=True):
            known["posteriors"][number] = posterior
        for number, (short, long) in change.kept.items.items():
            before = known["items"].get(str(number), ((), []))[1]
            known["items"][str(number)] = (list(short), before if long is None else long.tolist())
        known["annotators"] |= {str(number): state for number, state in change.kept.annotators.items()}
        self.text = json.dumps(known | {"campaign": change.kept.campaign})
        return change

    def answer(self, ask: Ask) -> Any:  # noqa: PLR0911  (one for each kind of question)
        self.asked.append(ask)
        known = self.known
        annotators = {int(number): state for number, state in known["annotators"].items()}
        items = {int(number): lists for number, lists in known["items"].items()}
        match ask:
            case Posteriors(numbers):
                return tuple(map(list, zip(*(known["posteriors"][number] for number in numbers), strict=True)))
            case Priors(numbers):
                return [self.priors[number] for number in numbers]
            case OfCampaign():
                return known["campaign"]
            case OfAnnotators(numbers):
                return {number: annotators[number] for number in numbers if number in annotators}
            case OfItems(numbers):
                return {number: (items[number][0], len(items[number][1])) for number in numbers if number in items}
            case LongOfItems(numbers):
                return {number: np.array(items[number][1]) for number in numbers if number in items}
            case ItemsAfter(last, limit):
                ahead = sorted(items, key=lambda number: (number <= last, number))[:limit]
                return [(number, items[number][0], len(items[number][1])) for number in ahead]
            case TakesLong():
                return None


def as_text(kept: Kept) -> dict[str, Any]:
    """What a law keeps, as `Stored` has it."""
    items = {str(number): [list(short), np.array(long).tolist()] for number, (short, long) in kept.items.items()}
    annotators = {str(number): list(state) for number, state in kept.annotators.items()}
    return {"campaign": kept.campaign, "annotators": annotators, "items": items}
