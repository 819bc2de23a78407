"""`easel --help`: a list of all commands that nobody has to wait for."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from app.cli.commands import COMMANDS, easel

HEAVY = {"numpy", "scipy", "sqlalchemy", "pydantic", "fastapi", "openpyxl"}


def test_the_list_of_commands_imports_none_of_them():
    script = (
        "import sys\nfrom app.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert HEAVY.isdisjoint(done.stderr.split())
    assert all(name in done.stdout for name in COMMANDS)


# Each takes a tenth of a second or more to import, and a command's help needs none of them.
SLOW_MODULES = {"openpyxl", "scipy.linalg", "scipy.sparse.csgraph", "scipy.sparse.linalg"}


@pytest.mark.parametrize("arguments", ["campaign create", "login", "people", "serve", "doctor", "annotators list"])
def test_the_help_of_a_command_imports_nothing_slow_that_only_computations_and_files_need(arguments):
    script = (
        "import sys\nfrom app.cli import main\n"
        f"try: main([*{arguments.split()}, '--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert SLOW_MODULES.isdisjoint(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_about_a_command_begins_as_its_own_help(name):
    command = easel.get_command(click.Context(easel), name)
    assert command is not None
    words = COMMANDS[name].line.rstrip(".").split()[:3]
    assert str(command.help).split()[: len(words)] == words


def test_a_misspelled_command_is_answered_with_the_one_that_it_resembles():
    assert "Did you mean 'campaign'?" in CliRunner().invoke(easel, ["campagn", "list"]).output


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_about_a_command_ends_in_dots(name):
    shown = CliRunner().invoke(easel, [name, "--help"], terminal_width=80).output
    assert "..." not in shown.partition("\nCommands:")[2]
