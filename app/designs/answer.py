"""An annotator's answer to one HIT, for all designs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from app.designs.item_names import item_names
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.designs.remarks import Remark

AnswerValue = float | str  # a number, or the label of a class
InputKind = Literal["mouse", "touch", "pen", "keyboard", "strip", "button", "number"]
MAX_VIEWPORT_CHARACTERS = 40
# Prefixes of the form fields that say how the value of an item came about.
TOUCH_PREFIXES = ("first_touch_ms-", "changes-", "input_kind-")
INPUT_KINDS: tuple[str, ...] = get_args(InputKind)


@dataclass(frozen=True)
class Touch:
    """Telemetry of one value: first touch after the HIT was shown, number of changes, last kind of input."""

    first_touch_ms: int | None = None
    changes: int | None = None
    input_kind: str | None = None


@dataclass(frozen=True)
class Playback:
    """Telemetry of a recording or a video: how often it was played, and how many of its seconds were heard.

    `switches` counts how often the annotator went to it from another recording; None if the page has no switch.
    """

    plays: int | None = None
    seconds_heard: float | None = None
    switches: int | None = None


@dataclass(frozen=True)
class Answer:
    """A value and a touch for each item number, as they were sent; the design validates them.

    Attributes:
        unjudged: The reason for each item that cannot be judged, and so has no value.
        remarks: Comments and flags, by subject.
        unjudged_checks: As unjudged, by the number of a check, where those of checks are separate.
        playbacks: How the items that can be played were played, by item number.

    """

    values: Mapping[int, AnswerValue]
    touches: Mapping[int, Touch] = field(default_factory=dict)
    viewport: str | None = None
    source: str = "api"
    unjudged: Mapping[int, str] = field(default_factory=dict)
    remarks: Mapping[str, Remark] = field(default_factory=dict)
    unjudged_checks: Mapping[int, str] = field(default_factory=dict)
    playbacks: Mapping[int, Playback] = field(default_factory=dict)

    def with_item_numbers(self, items: Sequence[int]) -> "Answer":
        """Return the answer by item number, given one by position in a HIT of `items`."""
        numbers_by_name = {str(name): str(item) for name, item in zip(item_names(len(items)), items, strict=True)}
        return replace(
            self,
            values={items[position]: value for position, value in self.values.items()},
            touches={items[position]: touch for position, touch in self.touches.items()},
            playbacks={items[position]: playback for position, playback in self.playbacks.items()},
            unjudged={items[position]: reason for position, reason in self.unjudged.items()},
            remarks={numbers_by_name.get(about, about): remark for about, remark in self.remarks.items()},
        )


@dataclass(frozen=True)
class Form:
    """The fields of a page's form, which the design parses; `source` is the kind of page."""

    fields: Mapping[str, str]
    source: str


@dataclass(frozen=True)
class AnswerByCriterion:
    """A program's answers for a campaign's criteria, by criterion name."""

    by_name: Mapping[str, Answer]


def parse_touches_by_item(form: Mapping[str, str], items: Sequence[int]) -> dict[int, Touch]:
    """Return the touches from a form's fields `first_touch_ms-NAME`, `changes-NAME`, `input_kind-NAME`.

    Invalid fields are dropped: a broken clock must not cost anyone an answer.
    """
    return {item: touch for item in items if (touch := parse_touch(form, item)) != Touch()}


def parse_touch(form: Mapping[str, str], item: int) -> Touch:
    kind = form.get(f"input_kind-{item}")
    return Touch(
        first_touch_ms=parse_nonnegative_int_or_none(form.get(f"first_touch_ms-{item}")),
        changes=parse_nonnegative_int_or_none(form.get(f"changes-{item}")),
        input_kind=kind if kind in INPUT_KINDS else None,
    )


def telemetry_of_answers_json_or_none(answers: Sequence[Answer], items: Sequence[int]) -> str | None:
    """Return the telemetry of the answers by each criterion, as JSON; None if nothing is known.

    It has lists in the order of `items`, by one criterion after another, and the viewport.
    """
    touches = [answer.touches.get(item, Touch()) for answer in answers for item in items]
    playbacks = [answer.playbacks.get(item, Playback()) for answer in answers for item in items]
    fields: dict[str, Any] = {
        "first_touch_ms": [touch.first_touch_ms for touch in touches],
        "changes": [touch.changes for touch in touches],
        "input_kinds": [touch.input_kind for touch in touches],
        "plays": [playback.plays for playback in playbacks],
        "seconds_heard": [playback.seconds_heard for playback in playbacks],
        "switches": [playback.switches for playback in playbacks],
    }
    fields = {name: told for name, told in fields.items() if any(value is not None for value in told)}
    fields |= {"viewport": answers[0].viewport} if answers[0].viewport else {}
    return json.dumps(fields) if fields else None
