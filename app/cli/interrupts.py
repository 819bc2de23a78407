"""Ctrl-C before a command begins. Imported first, so it imports almost nothing."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED_EXIT_CODE = 130  # as shells call the end by SIGINT: 128 + 2
STOPPED_TEXT = "Stopped."


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End the process at once, with one line, if Ctrl-C is pressed while Python imports: there is nothing to undo yet.

    The usual exception would show where in the imports it was raised. In a destructor, where a process that imports
    much spends some of its time, it would be dropped.
    """
    has_default_handler = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if has_default_handler:
        signal.signal(signal.SIGINT, exit_after_interrupt)
    try:
        yield
    finally:
        if has_default_handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_after_interrupt(_signal: int, _frame: object) -> NoReturn:
    sys.stdout.flush()
    os.write(2, f"\neasel: {STOPPED_TEXT}\n".encode() if sys.stderr.isatty() else f"easel: {STOPPED_TEXT}\n".encode())
    os._exit(INTERRUPTED_EXIT_CODE)
