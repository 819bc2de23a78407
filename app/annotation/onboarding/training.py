"""Training step: annotators see the expected answers and explanations of a set, and repeat it until it is right."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.annotation.onboarding.practice_sets import (
    GradedSet,
    PracticeFormat,
    PracticeItem,
    grade_practice_form_or_refuse,
    grade_practice_values,
    parse_practice_sets,
)
from app.annotation.onboarding.settings import VisitAndAnswerSettings, VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.designs.design import Design
from app.errors import Conflict
from app.quality.expected_answers import Feedback

TRAINING_STEP = "training"
MAX_TRIES_PER_TRAINING_SET = 100


def has_training(settings: VisitSettings, platform: Platform) -> bool:
    return bool(settings.training) and platform.has_page


class TrainingProgress(NamedTuple):
    """State of an annotator's training.

    Attributes:
        set_index: Set to do next, 0 for the first.
        unread_answer: Answer to that set, while the annotator is reading its explanation; else None.
        tries: Number of tries of that set.

    """

    set_index: int
    unread_answer: Mapping[str, Any] | None
    tries: int

    @property
    def has_no_tries_left(self) -> bool:
        """True if the annotator may not try the set again."""
        is_correct = self.unread_answer is not None and self.unread_answer["met"] == self.unread_answer["of"]
        return self.tries >= MAX_TRIES_PER_TRAINING_SET and not is_correct


def training_progress(history: VisitHistory) -> TrainingProgress:
    """Return the state of the training, from the last answer and whether the annotator continued after it."""
    details = [result.said for result in history.results_of_step(TRAINING_STEP)]
    last = next((answer for answer in reversed(details) if "values" in answer), None)
    if last is None:
        return TrainingProgress(0, None, 0)
    set_details = [answer for answer in details if answer.get("set") == last["set"]]
    tries = last.get("try", len(set_details))  # answers stored before tries were limited have no count
    if "values" in details[-1]:
        return TrainingProgress(last["set"], last, tries)
    if last["met"] == last["of"]:
        return TrainingProgress(last["set"] + 1, None, 0)
    return TrainingProgress(last["set"], None, tries)


def has_finished_training(settings: VisitAndAnswerSettings, history: VisitHistory) -> bool:
    """Return whether the annotator has finished the training, or has worked already."""
    return history.has_worked or training_progress(history).set_index >= len(
        parse_practice_sets(settings.training, PracticeFormat.from_settings(settings))
    )


def training_result_or_none_if_outdated_or_refuse(
    form: Mapping[str, str], settings: VisitAndAnswerSettings, history: VisitHistory
) -> StepResult | None:
    """Return the graded answer, or that the annotator has read the explanations; None for a form of an earlier page.

    Raises:
        Conflict: `training_over`, if the annotator has tried the set too often.

    """
    result_count, progress = history.last_result_version_or_zero(TRAINING_STEP), training_progress(history)
    if form.get("hit") != str(result_count):
        return None
    if progress.has_no_tries_left:
        raise Conflict(
            "You have tried this task many times, so the training ends here for you. Thank you for trying.",
            code="training_over",
        )
    sets = parse_practice_sets(settings.training, PracticeFormat.from_settings(settings))
    if progress.unread_answer is not None:
        last = progress.set_index + 1 == len(sets) and progress.unread_answer["met"] == progress.unread_answer["of"]
        return StepResult(TRAINING_STEP, result_count + 1, "passed" if last else "taken", {"seen": True})
    graded_set = grade_practice_form_or_refuse(settings, sets[progress.set_index], form)
    details = {
        "set": progress.set_index,
        "try": progress.tries + 1,
        "values": graded_set.values,
        "met": graded_set.met_count,
        "of": graded_set.expected_answer_count,
    }
    return StepResult(TRAINING_STEP, result_count + 1, "taken", details)


def training_template_context(settings: VisitAndAnswerSettings, history: VisitHistory) -> dict[str, Any]:
    """Return the set to do next, or the feedback on its answer."""
    sets, progress = (
        parse_practice_sets(settings.training, PracticeFormat.from_settings(settings)),
        training_progress(history),
    )
    set_index = min(progress.set_index, len(sets) - 1)
    context = {"texts": [item.shown for item in sets[set_index]], "at": set_index + 1, "count": len(sets)}
    context |= {
        "which": history.last_result_version_or_zero(TRAINING_STEP),
        "feedback": None,
        "outcome": "screened_out" if progress.has_no_tries_left else None,
    }
    if progress.unread_answer is None:
        return context
    graded_set = grade_practice_values(settings, sets[set_index], progress.unread_answer["values"])
    return context | {
        "feedback": training_feedback_template_context(settings, sets[set_index], graded_set),
        "all_met": graded_set.met_count == graded_set.expected_answer_count,
    }


def training_feedback_template_context(
    settings: VisitAndAnswerSettings, items: tuple[PracticeItem, ...], graded_set: GradedSet
) -> dict[str, Any]:
    """Return the given and the expected answers of each item, and of their order, by each criterion."""
    lines_by_item: list[list[dict[str, Any]]] = [[] for _ in items]
    orders: list[dict[str, Any]] = []
    for number, criterion in enumerate(settings.criteria):
        name, design, values = criterion.name, criterion.design, graded_set.values[number]
        item_feedback = [feedback for feedback in graded_set.feedback[number] if feedback.kind != "order"]
        feedback_by_position = {feedback.position: feedback for feedback in item_feedback}
        for place, value in enumerate(values if design.value_kind != "order" else ()):
            lines_by_item[place].append(
                {
                    "criterion": name,
                    "given": practice_value_text_or_none(design, value),
                    "feedback": feedback_by_position.get(place),
                }
            )
        orders += [
            {
                "criterion": name,
                "feedback": feedback,
                "given": position_groups_in_answered_order(design, values, feedback),
            }
            for feedback in graded_set.feedback[number]
            if feedback.kind == "order"
        ]
    context = {"items": lines_by_item, "orders": orders, "calls": settings.design.item_naming}
    return context | {"explanations": [item.explanation for item in items]}


def practice_value_text_or_none(design: Design, value: float | None) -> str | None:
    """Return a value as text; None if the item could not be judged."""
    if value is None:
        return None
    return design.classes[int(value)] if design.classes else f"{value:g}"


def position_groups_in_answered_order(
    design: Design, values: Sequence[float | None], order_feedback: Feedback
) -> list[list[int]]:
    """Return the positions of the expected items in the annotator's order, in groups of equal ones, best first.

    The result is empty if an item could not be judged.
    """
    judged_values = [value for value in values if value is not None]
    if len(judged_values) < len(values):
        return []
    shares, positions = (
        design.values_to_scale_shares(judged_values),
        [place for group in order_feedback.order for place in group],
    )
    levels = sorted({shares[place] for place in positions}, reverse=True)
    return [[place for place in positions if shares[place] == level] for level in levels]


STEP = VisitStep(
    TRAINING_STEP,
    has_training,
    has_finished_training,
    training_result_or_none_if_outdated_or_refuse,
    training_template_context,
)
