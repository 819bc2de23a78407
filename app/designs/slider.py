"""Sliders: n items, each scored 0 to 100; the order of the scores is the ranking, equal scores are ties."""

from collections.abc import Mapping, Sequence

from app.designs.answer import INPUT_KINDS, Answer, Touch
from app.designs.design import Design
from app.designs.numbers import decimal, whole_number
from app.designs.scale import POINTS, on_scale
from app.errors import Invalid


def ordered_scores(answer: Answer, items: Sequence[int]) -> list[float]:
    """The scores in the order of `items`, each in 0..100.

    Raises `Invalid`: `scores_missing` (details: `missing`, the positions 1..n), `scores_unknown`, `score_out_of_range`.
    """
    missing = [position for position, item in enumerate(items, start=1) if item not in answer.values]
    if missing:
        names = ", ".join(str(position) for position in missing)
        raise Invalid(
            f"Not all items have a score yet: {names} of {len(items)}. What you entered is kept.",
            code="scores_missing",
            missing=missing,
        )
    if len(answer.values) != len(items):
        raise Invalid("The answer scores items that are not in this HIT. Nothing was stored.", code="scores_unknown")
    return [_checked(answer.values[item], position) for position, item in enumerate(items, start=1)]


def _checked(score: float, position: int) -> float:
    stored = on_scale(score)
    if stored is None:
        raise Invalid(
            f"The score of item {position} must be between 0 and 100. What you entered is kept.",
            code="score_out_of_range",
            position=position,
        )
    return stored


def read_form(form: Mapping[str, str], *, source: str) -> Answer:
    """An answer from the fields `score-NUMBER`, `first_touch_ms-NUMBER`, `changes-NUMBER`, `input_kind-NUMBER`.

    Empty scores count as not given. Raises `Invalid` (`score_not_a_number`, `scores_unknown`). Telemetry that does not
    parse is dropped: a broken clock must not cost anyone an answer.
    """
    scores: dict[int, float] = {}
    touches: dict[int, Touch] = {}
    fields = [name for name in form if name.startswith("score-")]
    for position, name in enumerate(fields, start=1):
        item = whole_number(name.removeprefix("score-"))
        if item is None:
            raise Invalid(
                "The answer scores items that are not in this HIT. Nothing was stored.", code="scores_unknown"
            )
        if raw := form[name].strip():
            scores[item] = number(raw, position)
        kind = form.get(f"input_kind-{item}")
        touches[item] = Touch(
            first_touch_ms=whole_number(form.get(f"first_touch_ms-{item}")),
            changes=whole_number(form.get(f"changes-{item}")),
            input_kind=kind if kind in INPUT_KINDS else None,
        )
    return Answer(scores, touches, form.get("viewport", "")[:40] or None, source)


def number(raw: str, position: int) -> float:
    try:
        return decimal(raw)
    except ValueError as problem:
        raise Invalid(
            f"The score of item {position} is not a number. What you entered is kept.",
            code="score_not_a_number",
            position=position,
        ) from problem


def nearest(share: float) -> float:
    """The step of the slider at this share of the scale, or its end."""
    return min(max(float(round(POINTS * share)), 0.0), POINTS)


DESIGN = Design(
    name="slider",
    title="Ranking with scores",
    yields="points",
    lowest=0.0,
    highest=POINTS,
    items_per_hit=range(2, 11),
    read_form=read_form,
    values=ordered_scores,
    stored=on_scale,
    given=nearest,
)
