"""Tapping one of three smileys for each item."""

from collections.abc import Mapping, Sequence

from app.designs.answer import Answer
from app.designs.design import Design
from app.designs.numbers import whole_number
from app.errors import Invalid

FACES = 3


def read_form(form: Mapping[str, str], *, source: str) -> Answer:
    """From the fields `face-NUMBER`."""
    values: dict[int, float] = {}
    for name, raw in form.items():
        if name.startswith("face-"):
            item, face = whole_number(name.removeprefix("face-")), whole_number(raw)
            if item is None or face is None:
                raise Invalid("This is no smiley. What you entered is kept.", code="smiley_unknown")
            values[item] = float(face)
    return Answer(values, source=source)


def faces(answer: Answer, items: Sequence[int]) -> list[float]:
    if set(answer.values) != set(items):
        raise Invalid("Tap a smiley for each item. What you entered is kept.", code="smiley_missing")
    found = [stored(answer.values[item]) for item in items]
    if any(face is None for face in found):
        raise Invalid("There are three smileys. What you entered is kept.", code="smiley_unknown")
    return [face for face in found if face is not None]


def stored(value: float) -> float | None:
    return value + 0.0 if value in range(FACES) else None


def given(share: float) -> float:
    return float(min(max(round(share * (FACES - 1)), 0), FACES - 1))


SMILEY = Design(
    name="smiley",
    title="Smileys",
    yields="ordered_classes",
    lowest=0.0,
    highest=FACES - 1.0,
    items_per_hit=range(2, 5),
    read_form=read_form,
    values=faces,
    stored=stored,
    given=given,
)
