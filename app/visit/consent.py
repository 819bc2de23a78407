"""A text that somebody agrees to before they get a HIT; once more when it has changed."""

from collections.abc import Mapping

from app.crowd.platform import Platform
from app.errors import Invalid
from app.visit.settings import VisitSettings
from app.visit.step import Step, Taken, VisitFacts

NAME = "consent"
ANSWERS = ("yes", "no")


def applies(settings: VisitSettings, platform: Platform) -> bool:
    """Also to those for whom a program speaks; made-up annotators agree to nothing."""
    return bool(settings.consent) and not platform.made_up


def passed(_settings: VisitSettings, facts: VisitFacts) -> bool:
    """To the present text."""
    return any(one.version == facts.version and one.outcome == "passed" for one in facts.of(NAME))


def take(sent: Mapping[str, str], _settings: VisitSettings, facts: VisitFacts) -> Taken:
    """Raises `Invalid`: `consent_missing`, and `consent_changed` where another text was agreed to than there is now."""
    if sent.get("version") != str(facts.version):
        raise text_changed(facts)
    if sent.get("answer") not in ANSWERS:
        raise Invalid("Say whether you agree. Nothing was stored.", code="consent_missing")
    return Taken(NAME, facts.version, "passed" if sent["answer"] == "yes" else "declined")


def answer_to(version: int, facts: VisitFacts) -> Taken:
    """Return what somebody said to a version of the text. Raises `Invalid` (`consent_changed`) for one that they were
    never asked to agree to.
    """
    said = [one for one in facts.of(NAME) if one.version == version]
    if not said:
        raise text_changed(facts)
    return said[0]


def text_changed(facts: VisitFacts) -> Invalid:
    return Invalid(
        "The text has changed since you opened this page. Please read it once more, then answer.",
        code="consent_changed",
        version=facts.version,
    )


def shown(_settings: VisitSettings, facts: VisitFacts) -> dict[str, bool]:
    """Whether they said no, and whether they had agreed to an earlier text."""
    said = facts.of(NAME)
    return {
        "declined": any(one.version == facts.version and one.outcome == "declined" for one in said),
        "changed": any(one.version < facts.version and one.outcome == "passed" for one in said),
    }


STEP = Step(NAME, applies, passed, take, shown)
