"""Pauses of the garbage collector, or fewer collections, while hundreds of thousands of objects are made that stay.

Python's collector visits all objects each time a quarter more of them stay, which takes as long as a fifth of an import
of answers. Reference counts still free objects meanwhile; only cycles of references wait for the end of the pause.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

RARE_COLLECTION_THRESHOLD = 200_000  # new objects; Python's own limit is at most some thousand

_lock = Lock()
_pause_count = 0  # of all threads
_rare_count = 0  # of blocks that collect rarely, of all threads
_usual_thresholds = gc.get_threshold()  # of before the first of these blocks


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause automatic collections of this process during a `with` block, or a call of a function decorated so.

    Pauses of several threads may overlap: collections go on after the last one. Do nothing if they are off anyway.
    """
    global _pause_count  # noqa: PLW0603  (the collector, too, is one for the whole process)
    with _lock:
        pauses = _pause_count > 0 or gc.isenabled()
        if pauses:
            _pause_count += 1
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            if pauses:
                _pause_count -= 1
                if not _pause_count:
                    gc.enable()


@contextmanager
def collect_garbage_rarely() -> Iterator[None]:
    """Let this process collect garbage only after many more new objects than usual, during a `with` block.

    Use it in place of a pause where the block may wait, such as for a lock. Blocks of several tasks may overlap: the
    usual limit is back after the last one.
    """
    global _rare_count, _usual_thresholds  # noqa: PLW0603  (the collector, too, is one for the whole process)
    with _lock:
        _usual_thresholds = _usual_thresholds if _rare_count else gc.get_threshold()
        _rare_count += 1
        gc.set_threshold(RARE_COLLECTION_THRESHOLD, *_usual_thresholds[1:])
    try:
        yield
    finally:
        with _lock:
            _rare_count -= 1
            if not _rare_count:
                gc.set_threshold(*_usual_thresholds)
