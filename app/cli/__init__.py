"""The `easel` command, a thin layer over the functions that the web uses.

`commands` names all commands. A command's module is imported when it is called, and imports other rooms inside its
functions, so that `--help` is quick. `run_command` runs a coroutine on the database and prints results. To add a
command, write a module and name it in `commands.COMMANDS`.

Open `commands.py` first.
"""

import gc
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
    try:
        easel(arguments)
    finally:
        gc.freeze()  # the collection at the end of the process would visit all modules
