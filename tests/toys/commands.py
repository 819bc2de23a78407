"""Runs commands of `easel` with the toys, in one process: a list of arguments per line of input, as JSON, and one line
of output for each.
"""

import json
import sys

from tests.toys import register

if __name__ == "__main__":
    register()  # before the command is read
    from click.testing import CliRunner

    from app.cli.commands import easel

    for line in sys.stdin:
        result = CliRunner().invoke(easel, json.loads(line))
        sys.stdout.write(json.dumps([result.exit_code, result.output]) + "\n")
