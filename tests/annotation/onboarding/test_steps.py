"""The steps before the work, without a database: who is asked what, in which order, and when again."""

import pytest
from jinja2 import FileSystemLoader

from app.annotation.onboarding import consent, steps
from app.annotation.onboarding.settings import VisitAndAnswerSettings
from app.annotation.onboarding.step import StepResult, VisitHistory
from app.annotation.onboarding.steps import VISIT_STEPS, first_open_step_or_none, has_visit_steps_on_any_platform
from app.annotation.platforms.registry import PLATFORMS
from app.errors import Invalid
from app.http.templating import english_environment
from tests.toys import TEMPLATES, promise

ALL = VisitAndAnswerSettings(
    welcome=True, consent="May we keep your answers?", questions=["age: How old are you?"],
    design_name="slider", design_settings={}, criteria_settings=[], seed=1, items_per_hit=5,
    cannot_be_judged=False, unjudged_reasons=[],
)  # fmt: skip


def named(settings, platform, facts):
    step = first_open_step_or_none(settings, PLATFORMS[platform], facts)
    return step and step.name


def passed(*steps, version=1):
    return [StepResult(step, version, "passed") for step in steps]


def test_each_step_has_its_own_name_and_page():
    assert len({step.name for step in VISIT_STEPS}) == len(VISIT_STEPS)
    for step in VISIT_STEPS:
        assert english_environment.get_template(f"visit/{step.name}.html").name


def test_who_comes_from_where_has_these_steps_in_this_order(subtests):
    for platform, expected in (
        ("prolific", ["consent", "questions"]),
        ("mturk", ["consent", "questions"]),
        ("link", ["consent", "questions"]),
        ("api", ["consent"]),
        ("simulation", []),
    ):
        with subtests.test(platform=platform, expected=expected):
            facts, seen = VisitHistory(1), []
            while (name := named(ALL, platform, facts)) is not None:
                seen.append(name)
                facts = VisitHistory(1, results=[*facts.results, *passed(name)])
            assert seen == expected


def test_the_page_that_asks_for_consent_welcomes_too_and_counts_once(subtests):
    for platform, step, expected in (
        ("prolific", "consent", (1, 2)),
        ("prolific", "questions", (2, 2)),
        ("personal", "questions", (2, 2)),
        ("link", None, (1, 2)),
        ("link", "consent", (1, 2)),
        ("link", "questions", (2, 2)),
    ):
        with subtests.test(platform=platform, step=step):
            shown = next((one for one in VISIT_STEPS if one.name == step), None)
            assert steps.place_of_step_among_pages(ALL, PLATFORMS[platform], shown) == expected


def test_who_agreed_on_the_first_page_is_not_welcomed_after_the_text_is_gone():
    without_text = ALL.model_copy(update={"consent": ""})
    assert named(without_text, "prolific", VisitHistory(2, results=passed("consent"))) == "questions"


def test_without_steps_nobody_is_asked_anything():
    nothing = ALL.model_copy(update={"welcome": False, "consent": "", "questions": []})
    assert not has_visit_steps_on_any_platform(nothing)
    assert [named(nothing, name, VisitHistory(0)) for name in PLATFORMS] == [None] * len(PLATFORMS)


def test_whoever_has_worked_is_asked_to_agree_to_a_new_text_and_not_welcomed():
    assert named(ALL, "prolific", VisitHistory(2, has_worked=True)) == "consent"
    assert named(ALL, "prolific", VisitHistory(2, has_worked=True, results=passed("consent", version=1))) == "consent"
    assert named(ALL, "prolific", VisitHistory(2, has_worked=True, results=passed("consent", version=2))) is None


def test_who_says_no_may_still_say_yes():
    facts = VisitHistory(1, results=[*passed("welcome"), StepResult("consent", 1, "declined")])
    assert named(ALL, "prolific", facts) == "consent"
    assert consent.consent_template_context(ALL, facts) == {"introduces": False, "declined": True, "changed": False}
    assert consent.step_result_of_consent_form_or_refuse({"version": "1", "answer": "yes"}, ALL, facts) == StepResult(
        "consent", 1, "passed"
    )


def test_nobody_agrees_to_a_text_that_they_have_not_seen(subtests):
    for sent, code in (
        ({"version": "1", "answer": "yes"}, "consent_changed"),
        ({"answer": "yes"}, "consent_changed"),
        ({"version": "2"}, "consent_missing"),
        ({"version": "2", "answer": "perhaps"}, "consent_missing"),
    ):
        with subtests.test(sent=sent, code=code):
            with pytest.raises(Invalid) as refusal:
                consent.step_result_of_consent_form_or_refuse(sent, ALL, VisitHistory(2))
            assert refusal.value.code == code


def test_a_step_of_the_tests_is_asked_after_the_others_and_passed_once(monkeypatch):
    monkeypatch.setattr(steps, "VISIT_STEPS", (*VISIT_STEPS, promise.STEP))
    begun = VisitHistory(1, results=passed("welcome", "consent", "questions"))
    assert named(ALL, "prolific", begun) == "promise"
    assert named(ALL, "api", begun) is None
    page = english_environment.overlay(loader=FileSystemLoader(TEMPLATES)).get_template("visit/promise.html")
    assert 'name="promise"' in page.render(token="t", step="promise")
    with pytest.raises(Invalid):
        promise.STEP.parse_form({}, ALL, begun)
    result = promise.parse_promise_form({"promise": "yes"}, ALL, begun)
    assert named(ALL, "prolific", VisitHistory(1, results=[*begun.results, result])) is None
