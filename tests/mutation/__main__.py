"""Measure which small faults the tests notice: `python -m tests.mutation inference [--mutants 120] [--seed N]`.

Draws mutants of the modules of a room, runs the tests that call the changed function, and reports which survived.
Without a seed it draws one, and prints it. `--map FILE` keeps which test calls what, for the next run on the same code.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

import pytest

from tests.mutation.plugin import CallRecorder, Forks, MutationPlugin
from tests.mutation.run import ROOMS, Plan, run_mutants


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("room", choices=sorted(ROOMS))
    parser.add_argument("--mutants", type=int, default=120, help="how many are drawn; 120 if not given")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="of the draw; drawn if not given")
    parser.add_argument(
        "--only", action="append", default=[], help="all mutants whose name has this text; can be repeated"
    )
    parser.add_argument("--map", type=Path, help="a file to keep or find which test calls what")
    parser.add_argument("--seconds", type=float, default=15, help="of the processor for a mutant; 15 if not given")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="easel-mutants-", dir="/tmp") as folder:
        test_map = chosen.map or Path(folder) / "map.json"
        plan = Plan(chosen.room, chosen.mutants, chosen.seed, chosen.only, test_map, chosen.seconds)
        recorder = CallRecorder()

        def work(forks: Forks) -> None:
            run_mutants(forks, plan)

        recorder.start()
        options = ["-q", "-s", "--no-header", "-p", "no:cacheprovider", "-m", "not slow and not browser"]
        arguments = [*options, f"--basetemp={folder}/pytest", *ROOMS[chosen.room].tests]
        return int(pytest.main(arguments, plugins=[MutationPlugin(work, recorder)]))


if __name__ == "__main__":
    sys.exit(main())
