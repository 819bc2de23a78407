"""The `easel` command: over the same functions that the web calls."""

from collections.abc import Sequence

from app.cli.interrupts import ended_by_interrupt


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; by default those of this process."""
    with ended_by_interrupt():
        from app.cli.commands import easel
    easel(arguments)
