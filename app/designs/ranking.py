"""Ranking: annotators put the items of a HIT in an order, which may have ties."""

from typing import ClassVar, Literal

from app.designs.design import TaskSettings
from app.designs.rank_base import OrderDesign
from app.designs.two_ends import LabelledEndsDesign
from app.http.languages.catalogue import Message


class Ranking(LabelledEndsDesign, OrderDesign):
    """Ranking without scores, as in the evaluations of WMT (Bojar et al. 2016), scored as Sakaguchi et al. 2014 do."""

    name: ClassVar[str] = "ranking"
    title: ClassVar[str] = "Ranking"
    summary: ClassVar[str] = "Order a few items by dragging or with the keyboard."
    example: ClassVar[str] = "Order these answers by how helpful they are."
    items_per_hit: ClassVar[range] = range(2, 11)
    default_items: ClassVar[int] = 5
    item_naming: ClassVar[Literal["letter", "side"] | None] = "letter"
    default_law: ClassVar[str] = "trueskill"

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page, with the labels of the ends."""
        values = {"items": task.items_per_hit, "best": self.best_label, "worst": self.worst_label}
        if self.ties_allowed:
            return Message(
                "You see %(items)d items at a time and put them in order, from “%(best)s” to “%(worst)s”; equal ones "
                "may share a place.",
                **values,
            )
        return Message(
            "You see %(items)d items at a time and put them in order, from “%(best)s” to “%(worst)s”.", **values
        )
