"""What it is, how long it takes and what it pays, with an example: for who comes from a platform.

Who comes by a link sees the same before they are anybody, and starts with it.
"""

from collections.abc import Mapping

from app.crowd.platform import Platform
from app.visit.settings import VisitSettings
from app.visit.step import Step, Taken, VisitFacts

NAME = "welcome"


def applies(settings: VisitSettings, platform: Platform) -> bool:
    return settings.welcome and platform.has_page and not platform.starts_here


def passed(_settings: VisitSettings, facts: VisitFacts) -> bool:
    """Whoever has worked knows what it is."""
    return facts.begun or bool(facts.of(NAME))


def take(_sent: Mapping[str, str], _settings: VisitSettings, _facts: VisitFacts) -> Taken:
    """There is one button."""
    return Taken(NAME, 1, "passed")


STEP = Step(NAME, applies, passed, take)
