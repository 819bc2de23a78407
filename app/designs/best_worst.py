"""Best-worst scaling: annotators choose the best and the worst of a few items; the others stay unordered."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from app.designs.design import EqualMeans, TaskSettings, items_not_in_hit_error
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.designs.two_ends import LabelledEndsDesign
from app.errors import Invalid
from app.http.languages.catalogue import Message

BEST_VALUE, MIDDLE_VALUE, WORST_VALUE = 1.0, 2.0, 3.0
END_VALUES = {"best": BEST_VALUE, "worst": WORST_VALUE}
VALUE_WORDS = {BEST_VALUE: "best", MIDDLE_VALUE: "neither", WORST_VALUE: "worst"}


class BestWorst(LabelledEndsDesign):
    """Best-worst scaling, the maximum difference task: Louviere, Flynn & Marley 2015.

    A HIT of n items gives 2n - 3 pairs: the best against each other item, and each but the best against the worst.
    """

    name: ClassVar[str] = "best_worst"
    title: ClassVar[str] = "Best-worst scaling"
    summary: ClassVar[str] = "Choose the best and the worst of four or five items."
    example: ClassVar[str] = "Which word is the most positive, and which the least?"
    equal_means: ClassVar[EqualMeans] = "unknown"
    items_per_hit: ClassVar[range] = range(4, 6)
    default_items: ClassVar[int] = 4
    item_naming: ClassVar[Literal["letter", "side"] | None] = "letter"
    default_law: ClassVar[str] = "trueskill"
    default_method: ClassVar[str] = "best_worst_counts"

    @property
    def value_range(self) -> tuple[float, float]:
        return BEST_VALUE, WORST_VALUE

    @property
    def allowed_values_text(self) -> str:
        return "1 for the best, 3 for the worst, or 2 for another"

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        return Message(
            "You see %(items)d items at a time and choose two of them: the one that is “%(best)s” and the one that is "
            "“%(worst)s”.",
            items=task.items_per_hit,
            best=self.best_label,
            worst=self.worst_label,
        )

    def format_value_at_position(self, values: Sequence[float], position: int) -> str:
        """Return what was chosen; the other items have no answer."""
        return VALUE_WORDS[values[position]]

    def parse_form_values_by_item(self, form: Mapping[str, str], items: Sequence[int]) -> dict[int, float]:
        """Parse the fields `best` and `worst`, each the name of an item; without both, return only what is chosen.

        Raises `Invalid` (`scores_unknown`).
        """
        chosen = {
            name: position_of_chosen_item_or_refuse(form[name], items)
            for name in END_VALUES
            if form.get(name, "").strip()
        }
        values = dict.fromkeys(items, MIDDLE_VALUE) if len(chosen) == len(END_VALUES) else {}
        return values | {item: END_VALUES[name] for name, item in chosen.items()}

    def form_fields(self, values: Mapping[int, float]) -> dict[str, str]:
        """Return the fields `best` and `worst`."""
        return {name: str(item) for name, end in END_VALUES.items() for item, value in values.items() if value == end}

    def possible_hit_values_or_refuse(self, values: list[float]) -> list[float]:
        """Refuse values without exactly one best and one worst."""
        if values.count(BEST_VALUE) != 1 or values.count(WORST_VALUE) != 1:
            raise Invalid(self.sentence_that_two_choices_are_needed(), code="answer_impossible")
        return values

    def missing_values_error(self, positions: Sequence[int], count: int) -> Invalid:  # noqa: ARG002  (two are chosen of any number)
        """Return the refusal in the words of the page."""
        return Invalid(self.sentence_that_two_choices_are_needed(), code="scores_missing", missing=positions)

    def sentence_that_two_choices_are_needed(self) -> str:
        """Return the sentence that says what every answer needs."""
        return (
            f"Choose one item as “{self.best_label}” and another one as “{self.worst_label}”. What you entered is kept."
        )

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Choose the first of the highest and the last of the lowest."""
        places = range(len(shares))
        best = max(places, key=lambda place: (shares[place], -place))
        worst = min(places, key=lambda place: (shares[place], -place))
        return [BEST_VALUE if place == best else WORST_VALUE if place == worst else MIDDLE_VALUE for place in places]


def position_of_chosen_item_or_refuse(name: str, items: Sequence[int]) -> int:
    """Return the position of an item of the HIT, by its name. Raises `Invalid` (`scores_unknown`)."""
    item = parse_nonnegative_int_or_none(name.strip())
    if item is None or item not in items:
        raise items_not_in_hit_error()
    return item
