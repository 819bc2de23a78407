"""Rating: an item on a slider from 0 to 100, by itself; several items are one below the other, without a common
strip.
"""

from typing import ClassVar

from app.designs.design import TaskSettings
from app.designs.slider import Slider
from app.http.languages.catalogue import Message


class Rating(Slider):
    """Direct assessment on a continuous scale: Graham et al. 2013; Sakaguchi & Van Durme 2018, section 2."""

    name: ClassVar[str] = "rating"
    title: ClassVar[str] = "Rating"
    summary: ClassVar[str] = "Score one item at a time on a slider."
    example: ClassVar[str] = "How fluent is this sentence?"
    items_per_hit: ClassVar[range] = range(1, 11)
    default_items: ClassVar[int] = 1
    fits_in_grid: ClassVar[bool] = True

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page, with the labels of the ends."""
        ends = {"low": task.low_label, "high": task.high_label}
        if task.items_per_hit == 1:
            return Message("You see one item at a time and place it on a scale from “%(low)s” to “%(high)s”.", **ends)
        return Message(
            "You see %(items)d items at a time and place each by itself on a scale from “%(low)s” to “%(high)s”.",
            items=task.items_per_hit,
            **ends,
        )
