"""Filters of the queue of items whose labels a researcher may settle; commands import them for their help."""

from typing import Literal

QueueFilter = Literal["disputed", "open", "settled", "all"]
QUEUE_FILTER_TITLES: dict[QueueFilter, str] = {
    "disputed": "Without a majority",
    "open": "Not settled",
    "settled": "Settled",
    "all": "All items",
}
