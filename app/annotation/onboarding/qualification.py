"""Qualification step: a test that needs a percentage of expected answers, with a limited number of tries."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.annotation.onboarding.practice_sets import PracticeFormat, grade_practice_form_or_refuse, parse_practice_sets
from app.annotation.onboarding.settings import VisitAndAnswerSettings, VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform

QUALIFICATION_STEP = "qualification"


class QualificationProgress(NamedTuple):
    """State of an annotator's qualification test.

    Attributes:
        tries: Number of finished tries.
        set_index: Set to do next, 0 for the first.
        met_count: Expected answers given so far in this try.
        expected_answer_count: Expected answers so far in this try.
        is_finished: True if this try is finished.
        is_good_enough: True if this try is finished and reached the pass mark.

    """

    tries: int
    set_index: int
    met_count: int
    expected_answer_count: int
    is_finished: bool
    is_good_enough: bool


def is_qualification_test_required(settings: VisitSettings, platform: Platform) -> bool:
    return bool(settings.qualification) and platform.has_page


def qualification_progress(settings: VisitAndAnswerSettings, history: VisitHistory) -> QualificationProgress:
    """Return the state of the test, from the parts of the last try."""
    set_count = len(parse_practice_sets(settings.qualification, PracticeFormat.from_settings(settings)))
    parts: list[Mapping[str, Any]] = []
    earlier_tries = 0
    for result in history.results_of_step(QUALIFICATION_STEP):
        if "values" in result.said:
            parts.append(result.said)
        else:
            earlier_tries, parts = count_tries_including_last_one(parts, earlier_tries), []
    met, expected = (sum(part[name] for part in parts) for name in ("met", "of"))
    is_finished = len(parts) == set_count
    tries = parts[0].get("try", earlier_tries + 1) if parts else earlier_tries + 1
    return QualificationProgress(
        tries if is_finished else tries - 1,
        len(parts),
        met,
        expected,
        is_finished,
        is_finished and is_pass_mark_reached(settings, met, expected),
    )


def count_tries_including_last_one(parts_of_last_try: Sequence[Mapping[str, Any]], earlier_tries: int) -> int:
    """Return the number of tries up to the one with these parts. Old parts, from before the limit, do not say it."""
    return int(parts_of_last_try[0].get("try", earlier_tries + 1)) if parts_of_last_try else earlier_tries


def is_pass_mark_reached(settings: VisitAndAnswerSettings, met_count: int, expected_answer_count: int) -> bool:
    """Return whether the pass mark is reached, computed in integers so that 8 of 10 is exactly 80 percent."""
    percent: int = settings.pass_percent
    return 100 * met_count >= percent * expected_answer_count


def has_qualified(settings: VisitAndAnswerSettings, history: VisitHistory) -> bool:
    """Return whether the annotator has passed the test, or has worked, which only qualified annotators can."""
    return history.has_worked or qualification_progress(settings, history).is_good_enough


def qualification_result_or_none_if_outdated(
    form: Mapping[str, str], settings: VisitAndAnswerSettings, history: VisitHistory
) -> StepResult | None:
    """Return the graded answer, or the start of another try if one is left; None for a form of an earlier page."""
    result_count, progress = (
        history.last_result_version_or_zero(QUALIFICATION_STEP),
        qualification_progress(settings, history),
    )
    if form.get("hit") != str(result_count) or (
        progress.is_finished and progress.tries >= settings.qualification_tries
    ):
        return None
    if progress.is_finished:
        return StepResult(QUALIFICATION_STEP, result_count + 1, "taken", {"again": True})
    sets = parse_practice_sets(settings.qualification, PracticeFormat.from_settings(settings))
    graded_set = grade_practice_form_or_refuse(settings, sets[progress.set_index], form)
    details = {
        "set": progress.set_index,
        "try": progress.tries + 1,
        "values": graded_set.values,
        "met": graded_set.met_count,
        "of": graded_set.expected_answer_count,
    }
    if progress.set_index + 1 < len(sets):
        return StepResult(QUALIFICATION_STEP, result_count + 1, "taken", details)
    has_passed = is_pass_mark_reached(
        settings,
        progress.met_count + graded_set.met_count,
        progress.expected_answer_count + graded_set.expected_answer_count,
    )
    return StepResult(QUALIFICATION_STEP, result_count + 1, "passed" if has_passed else "failed", details)


def qualification_template_context(settings: VisitAndAnswerSettings, history: VisitHistory) -> dict[str, Any]:
    """Return the set to do next, or the result of the test."""
    sets, progress = (
        parse_practice_sets(settings.qualification, PracticeFormat.from_settings(settings)),
        qualification_progress(settings, history),
    )
    items = sets[min(progress.set_index, len(sets) - 1)]
    context = {"texts": [item.shown for item in items], "at": progress.set_index + 1, "count": len(sets)}
    context |= {
        "which": history.last_result_version_or_zero(QUALIFICATION_STEP),
        "test": progress,
        "tries_left": settings.qualification_tries - progress.tries,
    }
    ended = progress.is_finished and progress.tries >= settings.qualification_tries
    return context | {"percent": settings.pass_percent, "outcome": "screened_out" if ended else None}


def step_results_of_failed_qualification(settings: VisitAndAnswerSettings, _version: int) -> list[StepResult]:
    """Return the results of an annotator who gave no expected answer in the last try."""
    sets = parse_practice_sets(settings.qualification, PracticeFormat.from_settings(settings))
    details = {"try": settings.qualification_tries, "values": [], "met": 0, "of": 1}
    return [
        StepResult(
            QUALIFICATION_STEP, number, "taken" if number < len(sets) else "failed", {"set": number - 1, **details}
        )
        for number in range(1, len(sets) + 1)
    ]


STEP = VisitStep(
    QUALIFICATION_STEP,
    is_qualification_test_required,
    has_qualified,
    qualification_result_or_none_if_outdated,
    qualification_template_context,
    {"Qualification failed": step_results_of_failed_qualification},
)
