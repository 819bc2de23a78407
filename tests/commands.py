"""Commands of `easel` in one other process, with what only tests know: that is registered before they are read."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module


def command_outputs(database_url: str, registering: str, *commands: Sequence[object]) -> list[str]:
    """Return the outputs of commands run one after another, once the module `registering` has registered its own."""
    lines = "".join(json.dumps([*map(str, arguments)]) + "\n" for arguments in commands)
    process = subprocess.run(
        [sys.executable, "-m", "tests.commands", registering],
        input=lines,
        stdout=subprocess.PIPE,
        env=os.environ | {"DATABASE_URL": database_url},
        text=True,
        check=True,
    )
    outcomes = [json.loads(line) for line in process.stdout.splitlines()]
    assert [code for code, _ in outcomes] == [0] * len(commands), outcomes
    return [output for _, output in outcomes]


if __name__ == "__main__":
    import_module(sys.argv[1]).register()
    from click.testing import CliRunner

    from app.cli.commands import easel

    for line in sys.stdin:
        result = CliRunner().invoke(easel, json.loads(line))
        sys.stdout.write(json.dumps([result.exit_code, result.output]) + "\n")
