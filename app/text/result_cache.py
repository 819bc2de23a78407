"""Cache of the results of slow functions of a text, limited by memory."""

from collections.abc import Callable, Sized
from functools import wraps
from threading import Lock
from typing import TypeVar

from cachetools import LRUCache, cached

MAX_CACHED_CHARACTERS = 10_000_000  # texts and results of one function together

T = TypeVar("T", bound=Sized)


def cache_results_by_size(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return the function with a cache of its most recently used results. Safe for several threads.

    `functools.lru_cache` limits the number of results, not their size: a thousand long texts are hundreds of megabytes.
    """
    cache: LRUCache[str, tuple[str, T]] = LRUCache(
        MAX_CACHED_CHARACTERS, lambda cached_pair: len(cached_pair[0]) + len(cached_pair[1])
    )

    @cached(cache, key=lambda text: text, lock=Lock())
    def text_and_result(text: str) -> tuple[str, T]:
        return text, function(text)

    @wraps(function)
    def cached_function(text: str) -> T:
        return text_and_result(text)[1]

    return cached_function
