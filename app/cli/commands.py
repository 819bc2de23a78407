"""Root group of `easel` and the names of its commands; a command's module is imported when it is called."""

import sys
from importlib import import_module
from typing import IO, Any

import click

from app.cli.interrupts import INTERRUPTED_EXIT_CODE, STOPPED_TEXT, exit_on_interrupt
from app.errors import Refusal, StartupProblem
from app.inference.ground.inestimable import Inestimable
from app.server.import_speed import gc_disabled
from app.settings import SettingsProblem

COMMAND_MODULES = {
    "analyse": "analysis",
    "annotators": "annotators",
    "campaign": "campaigns",
    "experiment": "experiments",
    "export": "exports",
    "login": "serving",
    "migrate": "serving",
    "people": "people",
    "plan": "simulation",
    "serve": "serving",
    "simulate": "simulation",
    "verify": "exports",
}


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
        return sorted(COMMAND_MODULES)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMAND_MODULES:
            return None
        with exit_on_interrupt(), gc_disabled():
            command: click.Command = getattr(import_module(f"app.cli.{COMMAND_MODULES[cmd_name]}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Refusal as refusal:
            raise CommandFailure(f"{refusal.message} ({refusal.code})") from refusal
        except (StartupProblem, SettingsProblem, Inestimable) as problem:
            raise CommandFailure(f"{problem} ({problem.code})") from problem
        except KeyboardInterrupt as interrupt:
            raise CommandInterrupted(str(interrupt) or STOPPED_TEXT) from None


@click.group(cls=LazyCommandGroup)
@click.version_option(package_name="easel", message="%(version)s")
def easel() -> None:
    """Easel: crowdsourced scalar annotation with live posteriors.

    Every command works on the database that DATABASE_URL names, or on Easel's own.
    """
