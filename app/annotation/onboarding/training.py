"""Sets to learn by: after each, people see what was expected and why, and try it again until their answer is so."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.annotation.onboarding.practice_sets import (
    GradedSet,
    PracticeItem,
    grade_practice_form,
    grade_practice_values,
    parse_practice_sets,
)
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.designs.criteria import criterion_views
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Conflict
from app.quality.expected_answers import Feedback

TRAINING_STEP = "training"
MAX_TRIES_PER_TRAINING_SET = 100  # of a set


def has_training(settings: Any, platform: Platform) -> bool:
    return bool(settings.training) and platform.has_page


class TrainingProgress(NamedTuple):
    """at: which set is to be done, 0 for the first. answered: the answer to it whose explanation was not gone on from
    yet. tries: how often it was tried.
    """

    set_index: int
    unread_answer: Mapping[str, Any] | None
    tries: int

    @property
    def has_no_tries_left(self) -> bool:
        """Whether they may not try it again."""
        is_correct = self.unread_answer is not None and self.unread_answer["met"] == self.unread_answer["of"]
        return self.tries >= MAX_TRIES_PER_TRAINING_SET and not is_correct


def training_progress(history: VisitHistory) -> TrainingProgress:
    """Return where somebody is in their training, from the last answer and whether they went on from it."""
    details = [one.said for one in history.results_of_step(TRAINING_STEP)]
    last = next((said for said in reversed(details) if "values" in said), None)
    if last is None:
        return TrainingProgress(0, None, 0)
    set_details = [said for said in details if said.get("set") == last["set"]]
    tries = last.get("try", len(set_details))  # not counted in answers from before tries were limited
    if "values" in details[-1]:
        return TrainingProgress(last["set"], last, tries)
    if last["met"] == last["of"]:
        return TrainingProgress(last["set"] + 1, None, 0)
    return TrainingProgress(last["set"], None, tries)


def has_finished_training(settings: Any, history: VisitHistory) -> bool:
    """Whoever has worked need not learn."""
    return history.has_worked or training_progress(history).set_index >= len(
        parse_practice_sets(settings.training, settings)
    )


def parse_training_form(form: Mapping[str, str], settings: Any, history: VisitHistory) -> StepResult | None:
    """An answer, or that somebody goes on from what they were told; nothing if it was sent from an earlier page.

    Raises `Conflict` (`training_over`) when they have tried the set too often.
    """
    result_count, progress = history.count_step_results(TRAINING_STEP), training_progress(history)
    if form.get("hit") != str(result_count):
        return None
    if progress.has_no_tries_left:
        raise Conflict(
            "You have tried this set many times, so the training ends here for you. Thank you for trying.",
            code="training_over",
        )
    sets = parse_practice_sets(settings.training, settings)
    if progress.unread_answer is not None:
        last = progress.set_index + 1 == len(sets) and progress.unread_answer["met"] == progress.unread_answer["of"]
        return StepResult(TRAINING_STEP, result_count + 1, "passed" if last else "taken", {"seen": True})
    graded_set = grade_practice_form(settings, sets[progress.set_index], form)
    details = {
        "set": progress.set_index,
        "try": progress.tries + 1,
        "values": graded_set.values,
        "met": graded_set.met_count,
        "of": graded_set.expected_count,
    }
    return StepResult(TRAINING_STEP, result_count + 1, "taken", details)


def training_context(settings: Any, history: VisitHistory) -> dict[str, Any]:
    """The set that is to be done, or how its answer was."""
    sets, progress = parse_practice_sets(settings.training, settings), training_progress(history)
    set_index = min(progress.set_index, len(sets) - 1)
    context = {"texts": [item.shown for item in sets[set_index]], "at": set_index + 1, "count": len(sets)}
    context |= {
        "which": history.count_step_results(TRAINING_STEP),
        "told": None,
        "outcome": "screened_out" if progress.has_no_tries_left else None,
    }
    if progress.unread_answer is None:
        return context
    graded_set = grade_practice_values(settings, sets[set_index], progress.unread_answer["values"])
    return context | {
        "told": training_feedback_context(settings, sets[set_index], graded_set),
        "all_met": graded_set.met_count == graded_set.expected_count,
    }


def training_feedback_context(settings: Any, items: tuple[PracticeItem, ...], graded_set: GradedSet) -> dict[str, Any]:
    """What is said of each item by each criterion, and of their order: what was given, and what was expected."""
    lines_by_item: list[list[dict[str, Any]]] = [[] for _ in items]
    orders: list[dict[str, Any]] = []
    for number, criterion_view in enumerate(criterion_views(settings)):
        design, values = design_of(criterion_view), graded_set.values[number]
        name = criterion_view.criterion_name if settings.criteria else ""
        feedback_by_position = {one.position: one for one in graded_set.feedback[number] if one.kind != "order"}
        for place, value in enumerate(values if design.value_kind != "order" else ()):
            lines_by_item[place].append(
                {
                    "criterion": name,
                    "given": practice_value_text(design, value),
                    "told": feedback_by_position.get(place),
                }
            )
        order_feedback = (one for one in graded_set.feedback[number] if one.kind == "order")
        orders += [
            {"criterion": name, "told": one, "given": answered_order(design, values, one)} for one in order_feedback
        ]
    context = {"items": lines_by_item, "orders": orders, "calls": design_of(settings).item_naming}
    return context | {"explanations": [item.explanation for item in items]}


def practice_value_text(design: Design, value: float | None) -> str | None:
    """A value as it was given; None where the item cannot be judged."""
    if value is None:
        return None
    return design.classes[int(value)] if design.classes else f"{value:g}"


def answered_order(design: Design, values: Sequence[float | None], order_feedback: Feedback) -> list[list[int]]:
    """The positions of the items that have a place as they were answered, the best first; equal ones stand together.
    None of them where one cannot be judged.
    """
    judged_values = [value for value in values if value is not None]
    if len(judged_values) < len(values):
        return []
    shares, positions = design.to_shares(judged_values), [place for group in order_feedback.order for place in group]
    levels = sorted({shares[place] for place in positions}, reverse=True)
    return [[place for place in positions if shares[place] == level] for level in levels]


STEP = VisitStep(TRAINING_STEP, has_training, has_finished_training, parse_training_form, training_context)
