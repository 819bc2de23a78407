"""The steps before the work, without a database: who is asked what, in which order, and when again."""

import pytest

from app.crowd.registry import PLATFORMS
from app.errors import Invalid
from app.templating import templates
from app.visit import consent
from app.visit.settings import VisitSettings
from app.visit.step import Taken, VisitFacts
from app.visit.steps import STEPS, any_applies, next_step

ALL = VisitSettings(welcome=True, consent="May we keep your answers?", questions=["age: How old are you?"])


def named(settings, platform, facts):
    step = next_step(settings, PLATFORMS[platform], facts)
    return step and step.name


def passed(*steps, version=1):
    return [Taken(step, version, "passed") for step in steps]


def test_each_step_has_its_own_name_and_page():
    assert len({step.name for step in STEPS}) == len(STEPS)
    for step in STEPS:
        assert templates.get_template(f"visit/{step.name}.html").name


@pytest.mark.parametrize(
    ("platform", "steps"),
    [("prolific", ["welcome", "consent", "questions"]), ("mturk", ["welcome", "consent", "questions"]),
     ("link", ["consent", "questions"]),
     ("api", ["consent"]), ("simulation", [])],
)  # fmt: skip
def test_who_comes_from_where_has_these_steps_in_this_order(platform, steps):
    facts, seen = VisitFacts(1), []
    while (name := named(ALL, platform, facts)) is not None:
        seen.append(name)
        facts = VisitFacts(1, taken=[*facts.taken, *passed(name)])
    assert seen == steps


def test_without_steps_nobody_is_asked_anything():
    nothing = VisitSettings(welcome=False)
    assert not any_applies(nothing)
    assert [named(nothing, name, VisitFacts(0)) for name in PLATFORMS] == [None] * len(PLATFORMS)


def test_whoever_has_worked_is_asked_to_agree_to_a_new_text_and_not_welcomed():
    assert named(ALL, "prolific", VisitFacts(2, begun=True)) == "consent"
    assert named(ALL, "prolific", VisitFacts(2, begun=True, taken=passed("consent", version=1))) == "consent"
    assert named(ALL, "prolific", VisitFacts(2, begun=True, taken=passed("consent", version=2))) is None


def test_who_says_no_may_still_say_yes():
    facts = VisitFacts(1, taken=[*passed("welcome"), Taken("consent", 1, "declined")])
    assert named(ALL, "prolific", facts) == "consent"
    assert consent.shown(ALL, facts) == {"declined": True, "changed": False}
    assert consent.take({"version": "1", "answer": "yes"}, ALL, facts) == Taken("consent", 1, "passed")


@pytest.mark.parametrize(
    ("sent", "code"),
    [({"version": "1", "answer": "yes"}, "consent_changed"), ({"answer": "yes"}, "consent_changed"),
     ({"version": "2"}, "consent_missing"), ({"version": "2", "answer": "perhaps"}, "consent_missing")],
)  # fmt: skip
def test_nobody_agrees_to_a_text_that_they_have_not_seen(sent, code):
    with pytest.raises(Invalid) as refusal:
        consent.take(sent, ALL, VisitFacts(2))
    assert refusal.value.code == code
