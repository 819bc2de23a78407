"""Groups of commands whose help shows the whole first sentence about each command."""

import click


class CommandGroup(click.Group):
    """Group whose help wraps the sentence about each command, where Click's own cuts it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, first_sentence_of_help(command)) for name, command in commands.items() if command]
            )


def first_sentence_of_help(command: click.Command) -> str:
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    sentence, dot, _ = paragraph.partition(". ")
    return sentence + dot.strip()
