"""A test before the work: so much of a hundred must be as expected, and it can be tried so often."""

from collections.abc import Mapping, Sequence
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
    """Return where somebody is in their test, from the parts of their last try."""
    count, parts, before = len(sets_in(settings.qualification, settings)), list[Mapping[str, Any]](), 0
    for one in facts.of(NAME):
        if "values" in one.said:
            parts.append(one.said)
        else:
            before, parts = count_tries(parts, before), []
    met, expected = (sum(one[name] for one in parts) for name in ("met", "of"))
    over = len(parts) == count
    tries = parts[0].get("try", before + 1) if parts else before + 1
    return QualificationStanding(
        tries if over else tries - 1, len(parts), met, expected, over, over and good_enough(settings, met, expected)
    )


def count_tries(parts: Sequence[Mapping[str, Any]], before: int) -> int:
    """Return how many tries there were with the one of these parts. Parts from before tries were limited do not say."""
    return int(parts[0].get("try", before + 1)) if parts else before


def good_enough(settings: Any, met: int, expected: int) -> bool:
    """In whole numbers, so that 8 of 10 are 80 percent."""
    percent: int = settings.pass_percent
    return 100 * met >= percent * expected


def passed(settings: Any, facts: VisitFacts) -> bool:
    """Whoever has worked was good enough."""
    return facts.begun or stands(settings, facts).good


def take(sent: Mapping[str, str], settings: Any, facts: VisitFacts) -> Taken | None:
    """An answer, or that somebody tries again if they may; nothing if it was sent from an earlier page."""
    count, here = facts.count_of(NAME), stands(settings, facts)
    if sent.get("hit") != str(count) or (here.over and here.tries >= settings.qualification_tries):
        return None
    if here.over:
        return Taken(NAME, count + 1, "taken", {"again": True})
    sets = sets_in(settings.qualification, settings)
    found = marked(settings, sets[here.at], sent)
    said = {"set": here.at, "try": here.tries + 1, "values": found.values, "met": found.met, "of": found.expected}
    if here.at + 1 < len(sets):
        return Taken(NAME, count + 1, "taken", said)
    good = good_enough(settings, here.met + found.met, here.expected + found.expected)
    return Taken(NAME, count + 1, "passed" if good else "failed", said)


def shown(settings: Any, facts: VisitFacts) -> dict[str, Any]:
    """The set that is to be done, or how the test went."""
    sets, here = sets_in(settings.qualification, settings), stands(settings, facts)
    items = sets[min(here.at, len(sets) - 1)]
    context = {"texts": [item.shown for item in items], "at": here.at + 1, "count": len(sets)}
    context |= {"which": facts.count_of(NAME), "test": here, "tries_left": settings.qualification_tries - here.tries}
    ended = here.over and here.tries >= settings.qualification_tries
    return context | {"percent": settings.pass_percent, "outcome": "screened_out" if ended else None}


STEP = Step(NAME, applies, passed, take, shown)
