"""Values within values: the path `messages[0].content` in a row of JSON, and messages of a chat as text. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.upload import as_text

STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>-?[0-9]{1,6})\]")
ROLE, CONTENT = ("role", "from"), ("content", "value")  # of a message in a chat


class RowPath(NamedTuple):
    """A column of a table, and the names and indices that lead from its value to one within it."""

    column: str
    steps: tuple[str | int, ...] = ()

    def exists(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row has a value there, which may be null."""
        return self.find(row)[0]

    def value(self, row: Mapping[str, Any]) -> Any:
        """Return the value there; None where a row has none."""
        return self.find(row)[1]

    def find(self, row: Mapping[str, Any]) -> tuple[bool, Any]:
        """Return whether a row has a value there, and the value."""
        value: Any = row
        for step in (self.column, *self.steps):
            if isinstance(step, int):
                if not isinstance(value, list) or not -len(value) <= step < len(value):
                    return False, None
            elif not isinstance(value, Mapping) or step not in value:
                return False, None
            value = value[step]
        return True, value


def parse_path(written: str, columns: Sequence[str]) -> RowPath | None:
    """Return the path that is written as `column`, `column.name` or `column[0].name`; None if there is no such column.
    A negative index counts from the end. A column whose own name is written so comes first.
    """
    if written in columns:
        return RowPath(written)
    starts = [name for name in columns if written.startswith(name) and written[len(name) :][:1] in (".", "[")]
    for column in sorted(starts, key=len, reverse=True):
        if (steps := steps_in(written[len(column) :])) is not None:
            return RowPath(column, steps)
    return None


def steps_in(written: str) -> tuple[str | int, ...] | None:
    """Return the steps of `[0].content`; None if this is something else."""
    steps: list[str | int] = []
    at = 0
    while at < len(written):
        if (step := STEP.match(written, at)) is None:
            return None
        steps.append(int(step["index"]) if step["index"] else step["name"])
        at = step.end()
    return tuple(steps)


def readable(value: Any) -> str:
    """Return a value as people read it: text as it is, messages of a chat one below the other, all else as JSON."""
    if isinstance(value, list) and value and all(map(is_message, value)):
        return "\n\n".join(f"{first_of(message, ROLE)}: {words_of(first_of(message, CONTENT))}" for message in value)
    return as_text(value)


def is_message(value: Any) -> bool:
    """Return whether a value is a message of a chat, as APIs of language models have it."""
    return isinstance(value, dict) and isinstance(first_of(value, ROLE), str) and first_of(value, CONTENT) is not None


def first_of(message: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((message[name] for name in names if name in message), None)


def words_of(content: Any) -> str:
    """Return what a message says, which may come in parts."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "\n".join(part["text"] for part in content)
    return as_text(content)
