"""Refusals of tables of people: no item is imported from them, and no form has the options of commands."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Refusal

OPTIONS_OF_COMMANDS_PATTERN = re.compile(r" \((?:on the command line )?--[^)]*\)")


@contextmanager
def reword_refusals_for_people() -> Iterator[None]:
    """Reword what `read_table` and its rows raise. Codes and details stay."""
    try:
        yield
    except Refusal as refusal:
        message = OPTIONS_OF_COMMANDS_PATTERN.sub("", refusal.message)
        refusal.message = message.replace("Nothing was imported.", "Nothing was changed.")
        raise
