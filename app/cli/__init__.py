"""The `easel` command: over the same functions that the web calls."""

import os
from collections.abc import Sequence

from app.cli.interrupts import exit_on_interrupt
from app.server.import_speed import gc_disabled
from app.text import redaction


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; by default those of this process."""
    redaction.install_log_redaction()
    # Read when NumPy is imported, here and in the server's workers. The matrices are small: threads that wait for each
    # other cost a fit more than they give it, and take the cores from annotators where the machine is busy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with exit_on_interrupt(), gc_disabled():
        from app.cli.commands import easel
    easel(arguments)
