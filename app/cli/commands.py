"""Root group of `easel` and the names of its commands; a command's module is imported when it is called."""

import errno
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import IO, Any

import click

from app.background.collection_pause import collect_garbage_rarely
from app.cli.interrupts import INTERRUPTED_EXIT_CODE, STOPPED_TEXT, exit_on_interrupt
from app.server.import_speed import gc_disabled


@dataclass(frozen=True, slots=True)
class CommandSummary:
    """Where a command is, and the line about it in `easel --help`, which imports no command."""

    module: str
    line: str


COMMANDS = {
    "analyse": CommandSummary("analysis", "Estimate item scores, agreement and annotator quality."),
    "annotators": CommandSummary("annotators", "Annotators of a campaign: list them; hold, exclude and restore them."),
    "backup": CommandSummary("backups", "Back up the whole database into a folder, while the server runs."),
    "calls": CommandSummary("calls", "Calls that tell the annotators' platform how visits ended."),
    "campaign": CommandSummary("campaigns", "Create campaigns, import into them and change their status."),
    "cluster": CommandSummary("cluster", "Spread campaigns over the servers of a Citus cluster."),
    "doctor": CommandSummary("doctor", "Check the installation, and say how to repair what is wrong."),
    "experiment": CommandSummary("experiments", "Repeat an experiment of the papers, simulated or with people."),
    "export": CommandSummary("exports", "Write an export of a campaign, such as its items or responses."),
    "labels": CommandSummary("labels", "Labels of a campaign's items: list disputed ones, settle them."),
    "login": CommandSummary("serving", "Print a new login link for researchers."),
    "migrate": CommandSummary("serving", "Upgrade the database to the newest schema."),
    "payments": CommandSummary("payments", "Bonuses of a campaign: add them, let the server send them."),
    "people": CommandSummary("people", "Researchers of the server and members of campaigns."),
    "person": CommandSummary("person", "One person's data: find it, write a copy of it, erase it."),
    "plan": CommandSummary("simulation", "Forecast what the goal of a campaign will cost."),
    "restore": CommandSummary("backups", "Restore a backup into an empty database, and verify it."),
    "serve": CommandSummary("serving", "Start the server, and PostgreSQL with it unless DATABASE_URL is set."),
    "simulate": CommandSummary("simulation", "Let simulated annotators answer a campaign."),
    "study": CommandSummary("study", "Study of a campaign on its platform: make a draft."),
    "verify": CommandSummary("verification", "Replay all responses and compare every posterior bit for bit."),
}


FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT)


class CommandFailure(click.ClickException):
    """Failure that prints one line on stderr and exits with code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"easel: {' '.join(self.message.split())}", err=True, file=file)


class CommandInterrupted(CommandFailure):
    """Failure that is shown after Ctrl-C if work had begun."""

    exit_code = INTERRUPTED_EXIT_CODE

    def show(self, file: IO[Any] | None = None) -> None:
        if sys.stderr.isatty():
            click.echo(err=True, file=file)  # the terminal has written ^C where our line would begin
        super().show(file)


class LazyCommandGroup(click.Group):
    """Group that prints expected failures in one line; unexpected ones keep their traceback."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].line) for name in sorted(COMMANDS)])

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with exit_on_interrupt(), gc_disabled():
            command: click.Command = getattr(import_module(f"app.cli.{COMMANDS[cmd_name].module}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one that a misspelled name resembles: Click knows only imported commands."""
        name = args[0]
        if not name.startswith("-") and (similar := get_close_matches(name, COMMANDS, n=1)) and name not in COMMANDS:
            ctx.fail(f"No such command '{name}'. Did you mean '{similar[0]}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with collect_garbage_rarely():  # commands import what they run, and most of them end soon
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise CommandInterrupted(str(interrupt) or STOPPED_TEXT) from None
        except (click.exceptions.Exit, click.Abort, click.ClickException):  # such as the end of a help
            raise
        except Exception as problem:
            if (text := text_of_expected_failure_or_none(problem)) is None:
                raise
            raise CommandFailure(text) from problem


def text_of_expected_failure_or_none(problem: Exception) -> str | None:
    """Return what to print about a failure that Easel foresees, None for any other.

    Imports the kinds of failures only now: the settings alone cost more than `easel --help` may take.
    """
    from sqlalchemy.exc import DBAPIError

    from app.errors import Refusal, StartupProblem
    from app.inference.ground.inestimable import Inestimable
    from app.settings import SettingsProblem

    if isinstance(problem, DBAPIError):
        from app.cli.database_refusals import refusal_of_database_error_or_none

        problem = refusal_of_database_error_or_none(problem) or problem
    if isinstance(problem, OSError) and problem.errno in FULL_DISK_ERRORS:
        return f"{problem.filename or 'A file'} cannot be written: the disk is full. Free some space. (disk_full)"
    if isinstance(problem, Refusal):
        return f"{problem.message} ({problem.code})"
    if isinstance(problem, StartupProblem | SettingsProblem | Inestimable):
        return f"{problem} ({problem.code})"
    return None


@click.group(cls=LazyCommandGroup)
@click.version_option(package_name="easel", message="%(version)s")
def easel() -> None:
    """Easel: crowdsourced scalar annotation with live posteriors.

    Every command works on the database that DATABASE_URL names, or on Easel's own.
    """
