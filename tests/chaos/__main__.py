"""Look for lost and invented answers under faults: `python -m tests.chaos [--minutes 60] [--seed N]`.

Without a seed it draws one, and prints it. `--fault NAME` puts a deliberate fault into the servers, which must be
found.
"""

import argparse
import asyncio
import secrets
import sys

from tests.chaos.run import Plan, Report, run_chaos
from tests.chaos.server import DELIBERATE_FAULTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2, help="how long the crowd works; 2 if not given")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="of all draws; drawn if not given")
    parser.add_argument("--fault", choices=sorted(DELIBERATE_FAULTS), help="a deliberate fault to find")
    parser.add_argument("--calm", action="store_true", help="without faults of the machine")
    parser.add_argument("--database", default="", help="address of a database without campaigns, which is not injured")
    chosen = parser.parse_args()
    faults = (chosen.fault,) if chosen.fault else ()
    plan = Plan(60 * chosen.minutes, chosen.seed, faults, injects=not chosen.calm, database_url=chosen.database)
    report = asyncio.run(run_chaos(plan, after_round=write_work_so_far))
    sys.stdout.write("\n".join(report.lines()) + "\n")
    return 1 if report.violations else 0


def write_work_so_far(report: Report) -> None:
    sys.stdout.write(f"{report.work_line()}, {len(report.violations)} violations so far\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
