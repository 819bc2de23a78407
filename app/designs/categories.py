"""Categories: each item gets one of many labels, which have no order."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import Field, StringConstraints, model_validator

from app.designs.design import Design, TaskSettings, ValueKind
from app.designs.field_flags import OneLine, is_blank
from app.http.languages.catalogue import Message

LABEL_KEYS = "abcdefghijklmnopqrstuvwxyz1234"  # of the labels, in their order
MAX_LABEL_CHARS = 80
MIN_LABELS_FOR_SEARCH = 12  # labels; fewer are seen at a glance
LabelLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), OneLine]


class LabelOption(NamedTuple):
    """One of the labels, with its description and its key."""

    label: str
    description: str
    key: str


class Categories(Design):
    """One label for each item, as for word senses: Snow et al. 2008, "Cheap and fast - but is it good?"."""

    name: ClassVar[str] = "categories"
    title: ClassVar[str] = "Categories"
    summary: ClassVar[str] = "Choose one of several unordered labels."
    example: ClassVar[str] = "Which sense does the word have in this sentence?"
    value_kind: ClassVar[ValueKind] = "classes"
    items_per_hit: ClassVar[range] = range(1, 11)
    default_items: ClassVar[int] = 1
    default_law: ClassVar[str] = "dirichlet"
    noun: ClassVar[str] = "label"

    labels: tuple[LabelLine, ...] = Field(
        default=("yes: it applies", "no: it does not apply", "unclear: the text does not tell"),
        min_length=2,
        max_length=30,
        title="Labels",
        description=(
            "One per line, 2 to 30. Annotators choose one; if several can apply, use the design Several labels. A "
            "colon starts a description, for example: bank: a financial institution."
        ),
    )

    @model_validator(mode="after")
    def require_distinct_labels(self) -> Self:
        """Refuse labels that annotators could not tell apart."""
        for label in self.classes:
            if is_blank(label) or len(label) > MAX_LABEL_CHARS:
                raise ValueError(f"a label needs 1 to {MAX_LABEL_CHARS} characters; its description follows “: ”")
        if len(set(self.classes)) < len(self.labels):
            raise ValueError("each label can appear only once")
        return self

    @property
    def options(self) -> list[LabelOption]:
        """Return the labels as they are shown."""
        parts = (line.partition(": ") for line in self.labels)
        return [
            LabelOption(label.strip(), description.strip(), key)
            for (label, _, description), key in zip(parts, LABEL_KEYS, strict=False)
        ]

    @property
    def has_label_search(self) -> bool:
        """Return whether there are so many labels that annotators search for them by their words."""
        return len(self.labels) >= MIN_LABELS_FOR_SEARCH

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, len(self.labels) - 1.0

    @property
    def classes(self) -> Sequence[str]:
        """Return the labels without their descriptions."""
        return [option.label for option in self.options]

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page, with the number of labels."""
        labels = len(self.labels)
        if task.items_per_hit == 1:
            return Message("You see one item at a time and choose the best of %(labels)d labels for it.", labels=labels)
        return Message(
            "You see %(items)d items at a time and choose the best of %(labels)d labels for each.",
            items=task.items_per_hit,
            labels=labels,
        )

    def stored_value_or_none(self, value: float) -> float | None:
        """Return the number of a label, from 0; None if there is no such label."""
        return value + 0.0 if value in range(len(self.labels)) else None

    @property
    def allowed_values_text(self) -> str:
        """Return the allowed numbers, as programs send them."""
        return f"one of the {len(self.labels)} labels, numbered from 0"

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Give each label an equal part of the scale, in order."""
        count = len(self.labels)
        return [float(min(max(int(share * count // 1), 0), count - 1)) for share in shares]
