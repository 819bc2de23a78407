"""Several labels: check boxes below each item, one for each label that may apply, and one for none of them.

Easel makes a criterion of each label, whose two ordered classes are no and yes. So each label has its own posterior,
agreement and analysis. Without labels and criteria, annotators answer the question itself with no or yes.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, field_validator

from app.designs.design import SCORE_PREFIX, Design, TaskSettings, ValueKind
from app.designs.field_flags import OneLine, is_blank
from app.designs.label_names import lookalike_comparison_key
from app.designs.unjudged import UNJUDGED_PREFIX
from app.errors import Invalid
from app.http.languages.catalogue import LANGUAGES, Message, translate

MIN_LABELS, MAX_LABELS = 2, 12
MAX_LABEL_CHARS = 80
NONE_PREFIX = "none-"  # of the form fields that say that no label applies to an item
NO, YES = 0.0, 1.0
NONE_BOX_TEXT = "None of these"  # which the templates mark for translation
LabelLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400), OneLine]


def names_and_descriptions_of_labels(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return labels without their descriptions, each with its description, which may be empty."""
    parts = (line.partition(": ") for line in labels)
    return [(name.strip(), description.strip()) for name, _, description in parts]


def asks_yes_or_no(design: Design) -> bool:
    """Return whether the answers of a design are no and yes, in this order."""
    return design.value_kind == "ordered_classes" and are_no_and_yes(design.classes)


def are_no_and_yes(classes: Sequence[str]) -> bool:
    return [name.casefold() for name in classes] == ["no", "yes"]


class SeveralLabels(Design):
    """All labels that apply to an item, as for emotions: Demszky et al. 2020, "GoEmotions"."""

    name: ClassVar[str] = "several_labels"
    title: ClassVar[str] = "Several labels"
    summary: ClassVar[str] = "Tick every label that applies, or none of them."
    example: ClassVar[str] = "Which emotions does this sentence express?"
    value_kind: ClassVar[ValueKind] = "ordered_classes"
    items_per_hit: ClassVar[range] = range(1, 11)
    default_items: ClassVar[int] = 1
    default_law: ClassVar[str] = "easl"
    noun: ClassVar[str] = "answer"
    ticks_criteria: ClassVar[bool] = True

    labels: tuple[LabelLine, ...] = Field(
        default=(),
        max_length=MAX_LABELS,
        title="Labels",
        description=(
            "One per line, 2 to 12. Annotators tick all that apply, or “None of these”. A colon starts a description, "
            "for example: joy: the writer is happy."
        ),
    )

    @field_validator("labels", mode="before")
    @classmethod
    def require_labels_if_given(cls, labels: object) -> object:
        """Refuse labels that are all empty, as a form without any sends them."""
        if isinstance(labels, list | tuple) and labels and all(label == "" for label in labels):
            raise ValueError(f"give {MIN_LABELS} to {MAX_LABELS} labels, one per line")
        return labels

    @field_validator("labels")
    @classmethod
    def require_distinct_labels(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse labels that annotators could not tell apart."""
        if 0 < len(labels) < MIN_LABELS:
            raise ValueError(f"give {MIN_LABELS} to {MAX_LABELS} labels")
        names = [name for name, _ in names_and_descriptions_of_labels(labels)]
        if any(is_blank(name) or len(name) > MAX_LABEL_CHARS for name in names):
            raise ValueError(f"a label needs 1 to {MAX_LABEL_CHARS} characters; its description follows “: ”")
        if ended := [name for name in names if name.endswith(":")]:
            raise ValueError(f"{ended[0]} has no description: leave out the colon at its end")
        keys = [lookalike_comparison_key(name) for name in names]
        if len(set(keys)) < len(keys):
            raise ValueError("each label can appear only once")
        none_keys = {lookalike_comparison_key(translate(language, NONE_BOX_TEXT)) for language in LANGUAGES}
        if none_keys.intersection(keys):
            raise ValueError("leave out “None of these”: annotators can always choose it")
        return labels

    @property
    def value_range(self) -> tuple[float, float]:
        return NO, YES

    @property
    def classes(self) -> Sequence[str]:
        return ("no", "yes")

    def criterion_texts_of_labels(self, question: str) -> list[tuple[str, str]]:
        """Return a name and a question for the criterion of each label: its description, or the campaign's question."""
        return [(name, description or question) for name, description in names_and_descriptions_of_labels(self.labels)]

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page."""
        if task.items_per_hit == 1:
            return Message("You see one item at a time and tick every label that applies to it.")
        return Message(
            "You see %(items)d items at a time and tick every label that applies to each.", items=task.items_per_hit
        )

    def fields_with_unticked_labels(self, form: Mapping[str, str], field_prefixes: Sequence[str]) -> dict[str, str]:
        """Return the fields of a form, with a no for each label that is not ticked of an item that has an answer.

        An item without a ticked label has an answer only if “None of these” is ticked.
        """
        given = {
            (prefix, name.removeprefix(prefix + SCORE_PREFIX)): value.strip()
            for prefix in field_prefixes
            for name, value in form.items()
            if name.startswith(prefix + SCORE_PREFIX) and value.strip()
        }
        none_items = {name.removeprefix(NONE_PREFIX) for name in form if name.startswith(NONE_PREFIX) and form[name]}
        yes_items = {item for (_, item), value in given.items() if value != f"{NO:g}"}
        if any(not form.get(f"{UNJUDGED_PREFIX}{item}", "").strip() for item in none_items & yes_items):
            raise Invalid(
                "“None of these” excludes the other labels of an item. What you entered is kept.",
                code="answer_impossible",
            )
        answered_items = none_items.union(item for _, item in given)
        unticked = {
            f"{prefix}{SCORE_PREFIX}{item}": f"{NO:g}"
            for prefix in field_prefixes
            for item in answered_items
            if (prefix, item) not in given
        }
        return {**form, **unticked}

    def missing_values_error(self, positions: Sequence[int], count: int) -> Invalid:
        """Return the refusal of an answer that leaves out items; with labels, a form has neither these nor “None of
        these” ticked.
        """
        if not self.labels:
            return super().missing_values_error(positions, count)
        names = ", ".join(str(position) for position in positions)
        return Invalid(
            f"Not all items have an answer yet: {names} of {count}. Tick every label that applies, or “None of these”. "
            "What you entered is kept.",
            code="scores_missing",
            missing=positions,
        )

    def stored_value_or_none(self, value: float) -> float | None:
        return value + 0.0 if value in (NO, YES) else None

    @property
    def allowed_values_text(self) -> str:
        """Return the allowed numbers, as programs send them."""
        return "0 for no or 1 for yes"

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Return yes for items in the upper half of the scale."""
        return [YES if share >= 0.5 else NO for share in shares]
