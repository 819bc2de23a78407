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


# Each takes a tenth of a second or more to import, and no help needs it.
SLOW_MODULES = {
    "asyncpg",
    "fastapi",
    "httpx",
    "openpyxl",
    "scipy.linalg",
    "scipy.sparse",
    "scipy.special",
    "sqlalchemy",
}

# Their options and arguments are the settings of a campaign, or entries of registries.
COMMANDS_WITH_REGISTERED_CHOICES = {"easel analyse", "easel export", "easel campaign create", "easel campaign edit"}

SHOW_HELP_OF_EVERY_OTHER_COMMAND = f"""
import sys
import click
from app.cli.commands import easel

def show_help_and_print_slow_modules(command, name, parent):
    context = click.Context(command, parent, info_name=name.split()[-1])
    command.get_help(context)
    print(name, *sorted({SLOW_MODULES}.intersection(sys.modules)), sep=",")
    if isinstance(command, click.Group):
        names = {{part: f"{{name}} {{part}}" for part in command.list_commands(context)}}
        for part in [part for part in names if names[part] not in {COMMANDS_WITH_REGISTERED_CHOICES}]:
            show_help_and_print_slow_modules(command.get_command(context, part), names[part], context)

show_help_and_print_slow_modules(easel, "easel", None)
"""


def test_the_help_of_a_command_imports_nothing_slow():
    done = subprocess.run(
        [sys.executable, "-c", SHOW_HELP_OF_EVERY_OTHER_COMMAND], check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) > 50
    assert [line for line in lines if "," in line] == []


@pytest.mark.parametrize("arguments", ["campaign create", "campaign edit", "analyse", "export"])
def test_a_help_with_registered_choices_imports_nothing_that_only_computations_files_and_servers_need(arguments):
    script = (
        "import sys\nfrom app.cli import main\n"
        f"try: main([*{arguments.split()}, '--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert {"fastapi", "openpyxl"}.isdisjoint(done.stderr.split())


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
