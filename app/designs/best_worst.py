"""Best-worst scaling: of a few items the best and the worst; of those between, nothing is said."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from app.designs.design import Equal, unknown_items
from app.designs.numbers import whole_number
from app.designs.two_ends import TwoEnds
from app.errors import Invalid
from app.languages.catalogue import Message

BEST, MIDDLE, WORST = 1.0, 2.0, 3.0
CHOICES = {"best": BEST, "worst": WORST}
SAID = {BEST: "best", MIDDLE: "neither", WORST: "worst"}


class BestWorst(TwoEnds):
    """Best-worst scaling, the maximum difference task: Louviere, Flynn & Marley 2015.

    Of n items 2n - 3 pairs are told: the best against each other one, and each but the best against the worst.
    """

    name: ClassVar[str] = "best_worst"
    title: ClassVar[str] = "Best-worst scaling"
    summary: ClassVar[str] = "Name the best and the worst of four or five items."
    example: ClassVar[str] = "Which word is the most positive, and which the least?"
    equal: ClassVar[Equal] = "unknown"
    items_per_hit: ClassVar[range] = range(4, 6)
    usual_items: ClassVar[int] = 4
    calls_items_by: ClassVar[Literal["letter", "side"] | None] = "letter"
    usual_law: ClassVar[str] = "trueskill"
    usual_method: ClassVar[str] = "best_worst_counts"

    @property
    def ends(self) -> tuple[float, float]:
        """The best and the worst, of however many items."""
        return BEST, WORST

    @property
    def possible(self) -> str:
        """With what they mean."""
        return "1 for the best, 3 for the worst, or 2 for another"

    def task(self, campaign: Any) -> str:
        """With the words for the ends."""
        return Message(
            "You see %(items)d items at a time and choose two of them: the one that is “%(best)s” and the one that is "
            "“%(worst)s”.",
            items=campaign.items_per_hit,
            best=self.best_label,
            worst=self.worst_label,
        )

    def said(self, values: Sequence[float], place: int) -> str:
        """What was chosen; of the others nothing was said."""
        return SAID[values[place]]

    def entered(self, form: Mapping[str, str], items: Sequence[int]) -> dict[int, float]:
        """From the fields `best` and `worst`, each the name of an item; without both, only what is chosen.

        Raises `Invalid` (`scores_unknown`).
        """
        chosen = {name: number_of(form[name], items) for name in CHOICES if form.get(name, "").strip()}
        values = dict.fromkeys(items, MIDDLE) if len(chosen) == len(CHOICES) else {}
        return values | {item: CHOICES[name] for name, item in chosen.items()}

    def form_of(self, values: Mapping[int, float]) -> dict[str, str]:
        """The fields `best` and `worst`."""
        return {name: str(item) for name, end in CHOICES.items() for item, value in values.items() if value == end}

    def together(self, values: list[float]) -> list[float]:
        """One best, one worst."""
        if values.count(BEST) != 1 or values.count(WORST) != 1:
            raise Invalid(self.two_are_chosen(), code="answer_impossible")
        return values

    def missing(self, positions: Sequence[int], count: int) -> Invalid:  # noqa: ARG002  (two are chosen of any number)
        """In the words of the page."""
        return Invalid(self.two_are_chosen(), code="scores_missing", missing=positions)

    def two_are_chosen(self) -> str:
        """What every answer must be."""
        return (
            f"Choose one item as “{self.best_label}” and another one as “{self.worst_label}”. What you entered is kept."
        )

    def given(self, shares: Sequence[float]) -> list[float]:
        """The first of the highest and the last of the lowest."""
        places = range(len(shares))
        best = max(places, key=lambda place: (shares[place], -place))
        worst = min(places, key=lambda place: (shares[place], -place))
        return [BEST if place == best else WORST if place == worst else MIDDLE for place in places]


def number_of(raw: str, items: Sequence[int]) -> int:
    """Return the position of an item of the HIT, by its name. Raises `Invalid` (`scores_unknown`)."""
    item = whole_number(raw.strip())
    if item is None or item not in items:
        raise unknown_items()
    return item
