"""Sets to learn by: after each, people see what was expected and why, and try it again until their answer is so."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.crowd.platform import Platform
from app.designs.criteria import criteria_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Conflict
from app.quality.expected import Feedback
from app.visit.practice import Marked, PracticeItem, marked, marked_values, sets_in
from app.visit.step import Step, Taken, VisitFacts

NAME = "training"
MAX_TRIES = 100  # of a set


def applies(settings: Any, platform: Platform) -> bool:
    return bool(settings.training) and platform.has_page


class TrainingStanding(NamedTuple):
    """at: which set is to be done, 0 for the first. answered: the answer to it whose explanation was not gone on from
    yet. tries: how often it was tried.
    """

    at: int
    answered: Mapping[str, Any] | None
    tries: int

    @property
    def out_of_tries(self) -> bool:
        """Whether they may not try it again."""
        met = self.answered is not None and self.answered["met"] == self.answered["of"]
        return self.tries >= MAX_TRIES and not met


def stands(facts: VisitFacts) -> TrainingStanding:
    """Return where somebody is in their training, from the last answer and whether they went on from it."""
    done = [one.said for one in facts.of(NAME)]
    last = next((said for said in reversed(done) if "values" in said), None)
    if last is None:
        return TrainingStanding(0, None, 0)
    of_set = [said for said in done if said.get("set") == last["set"]]
    tries = last.get("try", len(of_set))  # not counted in answers from before tries were limited
    if "values" in done[-1]:
        return TrainingStanding(last["set"], last, tries)
    if last["met"] == last["of"]:
        return TrainingStanding(last["set"] + 1, None, 0)
    return TrainingStanding(last["set"], None, tries)


def passed(settings: Any, facts: VisitFacts) -> bool:
    """Whoever has worked need not learn."""
    return facts.begun or stands(facts).at >= len(sets_in(settings.training, settings))


def take(sent: Mapping[str, str], settings: Any, facts: VisitFacts) -> Taken | None:
    """An answer, or that somebody goes on from what they were told; nothing if it was sent from an earlier page.

    Raises `Conflict` (`training_over`) when they have tried the set too often.
    """
    count, here = facts.count_of(NAME), stands(facts)
    if sent.get("hit") != str(count):
        return None
    if here.out_of_tries:
        raise Conflict(
            "You have tried this set many times, so the training ends here for you. Thank you for trying.",
            code="training_over",
        )
    sets = sets_in(settings.training, settings)
    if here.answered is not None:
        last = here.at + 1 == len(sets) and here.answered["met"] == here.answered["of"]
        return Taken(NAME, count + 1, "passed" if last else "taken", {"seen": True})
    found = marked(settings, sets[here.at], sent)
    said = {"set": here.at, "try": here.tries + 1, "values": found.values, "met": found.met, "of": found.expected}
    return Taken(NAME, count + 1, "taken", said)


def shown(settings: Any, facts: VisitFacts) -> dict[str, Any]:
    """The set that is to be done, or how its answer was."""
    sets, here = sets_in(settings.training, settings), stands(facts)
    at = min(here.at, len(sets) - 1)
    context = {"texts": [item.shown for item in sets[at]], "at": at + 1, "count": len(sets)}
    context |= {"which": facts.count_of(NAME), "told": None, "outcome": "screened_out" if here.out_of_tries else None}
    if here.answered is None:
        return context
    found = marked_values(settings, sets[at], here.answered["values"])
    return context | {"told": lines(settings, sets[at], found), "all_met": found.met == found.expected}


def lines(settings: Any, items: tuple[PracticeItem, ...], found: Marked) -> dict[str, Any]:
    """What is said of each item by each criterion, and of their order: what was given, and what was expected."""
    of_items: list[list[dict[str, Any]]] = [[] for _ in items]
    orders: list[dict[str, Any]] = []
    for number, view in enumerate(criteria_of(settings)):
        design, values = design_of(view), found.values[number]
        name = view.criterion_name if settings.criteria else ""
        told = {one.position: one for one in found.told[number] if one.kind != "order"}
        for place, value in enumerate(values if design.yields != "order" else ()):
            of_items[place].append({"criterion": name, "given": in_words(design, value), "told": told.get(place)})
        of_order = (one for one in found.told[number] if one.kind == "order")
        orders += [{"criterion": name, "told": one, "given": in_order(design, values, one)} for one in of_order]
    told_of_all = {"items": of_items, "orders": orders, "calls": design_of(settings).calls_items_by}
    return told_of_all | {"explanations": [item.explanation for item in items]}


def in_words(design: Design, value: float | None) -> str | None:
    """A value as it was given; None where the item cannot be judged."""
    if value is None:
        return None
    return design.classes[int(value)] if design.classes else f"{value:g}"


def in_order(design: Design, values: Sequence[float | None], expected: Feedback) -> list[list[int]]:
    """The positions of the items that have a place as they were answered, the best first; equal ones stand together.
    None of them where one cannot be judged.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return []
    shares, placed = design.shares(known), [place for group in expected.order for place in group]
    levels = sorted({shares[place] for place in placed}, reverse=True)
    return [[place for place in placed if shares[place] == level] for level in levels]


STEP = Step(NAME, applies, passed, take, shown)
