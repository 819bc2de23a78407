"""A test before the work: so much of a hundred must be as expected, and it can be tried so often."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.crowd.platform import Platform
from app.visit.practice import marked, sets_in
from app.visit.step import Step, Taken, VisitFacts

NAME = "qualification"


class QualificationStanding(NamedTuple):
    """tries: how many are finished. at: which set is to be done, 0 for the first. met, expected: so far in this try.
    over: whether it is finished. good: whether it was good enough.
    """

    tries: int
    at: int
    met: int
    expected: int
    over: bool
    good: bool


def applies(settings: Any, platform: Platform) -> bool:
    return bool(settings.qualification) and platform.has_page


def stands(settings: Any, facts: VisitFacts) -> QualificationStanding:
    """Where somebody is in their test."""
    count, tries, this_try = len(sets_in(settings.qualification, settings)), 0, list[Mapping[str, Any]]()
    for one in facts.of(NAME):
        if "values" in one.said:
            this_try.append(one.said)
            tries += len(this_try) == count
        else:
            this_try = []
    met, expected = (sum(one[name] for one in this_try) for name in ("met", "of"))
    over = len(this_try) == count
    return QualificationStanding(
        tries, len(this_try), met, expected, over, over and good_enough(settings, met, expected)
    )


def good_enough(settings: Any, met: int, expected: int) -> bool:
    """In whole numbers, so that 8 of 10 are 80 percent."""
    percent: int = settings.pass_percent
    return 100 * met >= percent * expected


def passed(settings: Any, facts: VisitFacts) -> bool:
    """Whoever has worked was good enough."""
    return facts.begun or stands(settings, facts).good


def take(sent: Mapping[str, str], settings: Any, facts: VisitFacts) -> Taken | None:
    """An answer, or that somebody tries again if they may; nothing if it was sent from an earlier page."""
    done, here = facts.of(NAME), stands(settings, facts)
    if sent.get("hit") != str(len(done)) or (here.over and here.tries >= settings.qualification_tries):
        return None
    if here.over:
        return Taken(NAME, len(done) + 1, "taken", {"again": True})
    sets = sets_in(settings.qualification, settings)
    found = marked(settings, sets[here.at], sent)
    said = {"set": here.at, "values": found.values, "met": found.met, "of": found.expected}
    if here.at + 1 < len(sets):
        return Taken(NAME, len(done) + 1, "taken", said)
    good = good_enough(settings, here.met + found.met, here.expected + found.expected)
    return Taken(NAME, len(done) + 1, "passed" if good else "failed", said)


def shown(settings: Any, facts: VisitFacts) -> dict[str, Any]:
    """The set that is to be done, or how the test went."""
    sets, here = sets_in(settings.qualification, settings), stands(settings, facts)
    items = sets[min(here.at, len(sets) - 1)]
    context = {"texts": [item.shown for item in items], "at": here.at + 1, "count": len(sets)}
    context |= {"which": len(facts.of(NAME)), "test": here, "tries_left": settings.qualification_tries - here.tries}
    ended = here.over and here.tries >= settings.qualification_tries
    return context | {"percent": settings.pass_percent, "outcome": "screened_out" if ended else None}


STEP = Step(NAME, applies, passed, take, shown)
