"""Values within values: the path `messages[0].content` in a row of JSON, and chat messages as text. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.uploads import format_cell

PATH_STEP_PATTERN = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>-?[0-9]{1,6})\]")
CHAT_ROLE_KEYS, CHAT_CONTENT_KEYS = ("role", "from"), ("content", "value")  # of chat messages


class RowPath(NamedTuple):
    """A column of a table, and the names and indices that lead from its value to one within it."""

    column: str
    steps: tuple[str | int, ...] = ()

    def has_value_in(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row has a value at this path, which may be null."""
        return self.find_value_in(row)[0]

    def value_in(self, row: Mapping[str, Any]) -> Any:
        """Return the value at this path; None if a row has none."""
        return self.find_value_in(row)[1]

    def find_value_in(self, row: Mapping[str, Any]) -> tuple[bool, Any]:
        """Return whether a row has a value at this path, and the value."""
        value: Any = row
        for step in (self.column, *self.steps):
            if isinstance(step, int):
                if not isinstance(value, list) or not -len(value) <= step < len(value):
                    return False, None
            elif not isinstance(value, Mapping) or step not in value:
                return False, None
            value = value[step]
        return True, value


def parse_row_path(path_text: str, columns: Sequence[str]) -> RowPath | None:
    """Return the path written as `column`, `column.name` or `column[0].name`; None if there is no such column.

    A negative index counts from the end. A column that has the whole notation as its name takes precedence.
    """
    if path_text in columns:
        return RowPath(path_text)
    column_prefixes = [
        name for name in columns if path_text.startswith(name) and path_text[len(name) :][:1] in (".", "[")
    ]
    for column in sorted(column_prefixes, key=len, reverse=True):
        if (steps := parse_path_steps(path_text[len(column) :])) is not None:
            return RowPath(column, steps)
    return None


def parse_path_steps(steps_text: str) -> tuple[str | int, ...] | None:
    """Return the steps of `[0].content`; None if the text is something else."""
    steps: list[str | int] = []
    position = 0
    while position < len(steps_text):
        if (step := PATH_STEP_PATTERN.match(steps_text, position)) is None:
            return None
        steps.append(int(step["index"]) if step["index"] else step["name"])
        position = step.end()
    return tuple(steps)


def format_cell_value(value: Any) -> str:
    """Return a value as people read it: text unchanged, chat messages one below the other, all else as JSON."""
    if isinstance(value, list) and value and all(map(is_chat_message, value)):
        return "\n\n".join(
            f"{first_value_of_keys(message, CHAT_ROLE_KEYS)}: "
            f"{format_chat_content(first_value_of_keys(message, CHAT_CONTENT_KEYS))}"
            for message in value
        )
    return format_cell(value)


def is_chat_message(value: Any) -> bool:
    """Return whether a value is a chat message in the format of language model APIs."""
    return (
        isinstance(value, dict)
        and isinstance(first_value_of_keys(value, CHAT_ROLE_KEYS), str)
        and first_value_of_keys(value, CHAT_CONTENT_KEYS) is not None
    )


def first_value_of_keys(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((message[name] for name in keys if name in message), None)


def format_chat_content(content: Any) -> str:
    """Return the text of a chat message, which may have several parts."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "\n".join(part["text"] for part in content)
    return format_cell(content)
