"""Results of slow functions of a text, kept for the next time as long as they take little memory."""

from collections import OrderedDict
from collections.abc import Callable, Sized
from functools import wraps
from threading import Lock
from typing import TypeVar

MOST_KEPT = 10_000_000  # characters of texts and results, of one function

T = TypeVar("T", bound=Sized)


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return the function, which keeps its newest results; can be called by several threads.

    `functools.lru_cache` counts results, whatever their size: a thousand of long texts are hundreds of megabytes.
    """
    kept: OrderedDict[str, T] = OrderedDict()
    size, lock = 0, Lock()

    @wraps(function)
    def remembering(text: str) -> T:
        nonlocal size
        with lock:
            if text in kept:
                kept.move_to_end(text)
                return kept[text]
        result = function(text)
        with lock:
            if text not in kept:
                kept[text] = result
                size += len(text) + len(result)
            while size > MOST_KEPT:
                old, its_result = kept.popitem(last=False)
                size -= len(old) + len(its_result)
        return result

    return remembering
