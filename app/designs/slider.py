"""The slider design: n items, each scored 0 to 100; the order of the scores is the ranking, equal scores are ties."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from app.errors import Invalid
from app.inference.online.laws import Parameters

POINTS = 100.0
InputKind = Literal["mouse", "touch", "pen", "keyboard", "strip", "button", "number"]
INPUT_KINDS: tuple[str, ...] = get_args(InputKind)
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[0-9]{1,19}")
LARGEST_COUNT = 2**31 - 1  # of milliseconds or changes: what a column holds


@dataclass(frozen=True)
class Touch:
    """How one score came about: first touch after the HIT was shown, number of changes, last kind of input."""

    first_touch_ms: int | None = None
    changes: int | None = None
    input_kind: str | None = None


@dataclass(frozen=True)
class Answer:
    """What an annotator sends for one HIT: a score in 0..100 and a touch for each item number."""

    scores: Mapping[int, float]
    touches: Mapping[int, Touch] = field(default_factory=dict)
    viewport: str | None = None
    source: str = "api"


def ordered_scores(answer: Answer, items: Sequence[int]) -> list[float]:
    """The scores in the order of `items`, each in 0..100.

    Raises `Invalid`: `scores_missing` (details: `missing`, the positions 1..n), `scores_unknown`, `score_out_of_range`.
    """
    missing = [position for position, item in enumerate(items, start=1) if item not in answer.scores]
    if missing:
        names = ", ".join(str(position) for position in missing)
        raise Invalid(
            f"Not all items have a score yet: {names} of {len(items)}. What you entered is kept.",
            code="scores_missing",
            missing=missing,
        )
    if len(answer.scores) != len(items):
        raise Invalid("The answer scores items that are not in this HIT. Nothing was stored.", code="scores_unknown")
    return [_checked(answer.scores[item], position) for position, item in enumerate(items, start=1)]


def _checked(score: float, position: int) -> float:
    stored = on_scale(score)
    if stored is None:
        raise Invalid(
            f"The score of item {position} must be between 0 and 100. What you entered is kept.",
            code="score_out_of_range",
            position=position,
        )
    return stored


def on_scale(score: float) -> float | None:
    """A score as it is stored, where -0 is 0; None if it is not in 0..100."""
    return score + 0.0 if 0 <= score <= POINTS else None


def shares(scores: Sequence[float]) -> list[float]:
    """Scores as shares of the scale, 0 to 1, as update laws take them."""
    return [score / POINTS for score in scores]


def parameters(campaign: Any) -> Parameters:
    """What an update law is tuned with, from a campaign's row; the law takes scores divided by `POINTS`."""
    return Parameters(campaign.gamma, campaign.epsilon, campaign.tie_margin_points / POINTS)


def telemetry(answer: Answer, items: Sequence[int]) -> str | None:
    """How the answer came about, as JSON: lists in the order of `items`, and the viewport; None if nothing is known."""
    touches = [answer.touches.get(item, Touch()) for item in items]
    known: dict[str, Any] = {
        "first_touch_ms": [touch.first_touch_ms for touch in touches],
        "changes": [touch.changes for touch in touches],
        "input_kinds": [touch.input_kind for touch in touches],
    }
    known = {name: told for name, told in known.items() if any(value is not None for value in told)}
    known |= {"viewport": answer.viewport} if answer.viewport else {}
    return json.dumps(known) if known else None


def ranks(scores: Sequence[float]) -> list[int]:
    """Competition ranks, best first: the highest score is 1, equal scores share a rank, the next one is skipped."""
    return [1 + sum(other > score for other in scores) for score in scores]


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


def decimal(text: str) -> float:
    """A number as people and programs write it: ASCII digits, perhaps a sign, a point, an exponent. Else ValueError.

    `float` alone also takes `1_0`, and digits of other scripts that look like other numbers.
    """
    if not DECIMAL.fullmatch(text):
        raise ValueError(text)
    return float(text)


def whole_number(raw: str | None, *, most: int = LARGEST_COUNT) -> int | None:
    """A non-negative integer up to `most`, or None."""
    if not WHOLE.fullmatch(raw or ""):
        return None
    number = int(raw or "")
    return number if number <= most else None
