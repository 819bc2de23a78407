"""Start the cluster, or try it: `python -m examples.cluster start`, `python -m examples.cluster try [FAULT ...]`.

It takes root and Debian's packages `postgresql etcd-server patroni haproxy`. Nothing of it stays afterwards.
docs/operators/high-availability.md says what it shows.
"""

import argparse
import asyncio
import sys

from examples.cluster.cluster import running_cluster
from examples.cluster.machines import find_missing_requirements
from examples.cluster.trial import FAULTS, report_lines, try_faults


async def start_until_interrupted() -> None:
    async with running_cluster() as cluster:
        print(f"Easel answers at {cluster.base_url}; its database is {cluster.database_url}. Stop with Ctrl-C.")
        await asyncio.Event().wait()


async def try_and_report(faults: list[str], annotators: int) -> int:
    async with running_cluster() as cluster:
        trial = await try_faults(cluster, faults, annotators)
    print("\n".join(report_lines(trial)))
    return 1 if trial.problems or trial.silences else 0


def main() -> int:
    """Run the command line's command."""
    parser = argparse.ArgumentParser(prog="python -m examples.cluster", description="A cluster of three machines.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start", help="start it, and run until Ctrl-C")
    trying = commands.add_parser("try", help="let annotators work while machines fail")
    trying.add_argument("faults", nargs="*", metavar="FAULT", help=f"of {', '.join(FAULTS)}; default: all")
    trying.add_argument("--annotators", type=int, default=8)
    options = parser.parse_args()
    if missing := find_missing_requirements():
        print(f"This computer lacks {'; '.join(missing)}.", file=sys.stderr)
        return 2
    if options.command == "start":
        try:
            asyncio.run(start_until_interrupted())
        except KeyboardInterrupt:
            return 0
    if unknown := set(options.faults) - set(FAULTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return asyncio.run(try_and_report(options.faults or [*FAULTS], options.annotators))


if __name__ == "__main__":
    sys.exit(main())
