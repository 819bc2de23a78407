"""Cache of the results of slow functions of a text, limited by memory."""

from collections import OrderedDict
from collections.abc import Callable, Sized
from functools import wraps
from threading import Lock
from typing import TypeVar

MAX_CACHED_CHARACTERS = 10_000_000  # texts and results of one function together

T = TypeVar("T", bound=Sized)


def cache_results_by_size(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return the function with a cache of its most recently used results. Safe for several threads.

    `functools.lru_cache` limits the number of results, not their size: a thousand long texts are hundreds of megabytes.
    """
    results: OrderedDict[str, T] = OrderedDict()
    size, results_lock = 0, Lock()

    @wraps(function)
    def cached_function(text: str) -> T:
        nonlocal size
        with results_lock:
            if text in results:
                results.move_to_end(text)
                return results[text]
        result = function(text)
        with results_lock:
            if text not in results:
                results[text] = result
                size += len(text) + len(result)
            while size > MAX_CACHED_CHARACTERS:
                old_text, old_result = results.popitem(last=False)
                size -= len(old_text) + len(old_result)
        return result

    return cached_function
