"""Pauses of the garbage collector while a function makes hundreds of thousands of objects that stay.

Python's collector visits all objects each time a quarter more of them stay, which takes as long as a fifth of an import
of answers. Reference counts still free objects meanwhile; only cycles of references wait for the end of the pause.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_pause_count = 0  # of all threads


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
