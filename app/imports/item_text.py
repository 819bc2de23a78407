"""Text of an item that annotators see: a column of its row, a path such as `messages[0].content`, or a template."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from app.designs.field_flags import is_blank
from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows
from app.imports.columns import (
    column_ignoring_case_or_refuse,
    find_column_ignoring_case_or_none,
    normalize_column_name_for_comparison,
)
from app.uploads import INDEX_COLUMN, format_cell

COMMON_SHOWN_COLUMN_NAMES = ("text", "sent", "sentence", "shown", "item")
NEVER_SHOWN_COLUMNS = ("id", "alpha", "beta", "mode", "var", "mu", "sigma", "sigma2", INDEX_COLUMN)
TEMPLATE_TOKEN_PATTERN = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")
PATH_STEP_PATTERN = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>-?[0-9]{1,6})\]")
CHAT_ROLE_KEYS, CHAT_CONTENT_KEYS = ("role", "from"), ("content", "value")  # of chat messages


def find_obvious_shown_column_or_none(columns: Sequence[str]) -> str | None:
    """Return the obvious column to show: one with a usual name, or the only one there is."""
    for name in COMMON_SHOWN_COLUMN_NAMES:
        if column := find_column_ignoring_case_or_none(columns, name):
            return column
    candidates = [name for name in columns if normalize_column_name_for_comparison(name) not in NEVER_SHOWN_COLUMNS]
    return candidates[0] if len(candidates) == 1 else None


class RowPath(NamedTuple):
    """A column of a table, and the names and indices that lead from its value to one within it."""

    column: str
    steps: tuple[str | int, ...] = ()

    def has_value_in(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row has a value at this path, which may be null."""
        return self.is_present_and_value_in(row)[0]

    def value_or_none_in(self, row: Mapping[str, Any]) -> Any:
        """Return the value at this path; None if a row has none."""
        return self.is_present_and_value_in(row)[1]

    def is_present_and_value_in(self, row: Mapping[str, Any]) -> tuple[bool, Any]:
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


class ItemTextMaker:
    """Makes the text of an item from its row. The text is empty if all of its values look empty.

    `path_by_text` maps each value's notation to its path; `join_texts` makes the item's text of the values' texts.
    """

    def __init__(self, path_by_text: Mapping[str, RowPath], join_texts: Callable[[Mapping[str, str]], str]) -> None:
        self.path_by_text = path_by_text
        self.join_texts = join_texts
        self.paths_not_found = {notation: path for notation, path in path_by_text.items() if path.steps}

    def __call__(self, row: Mapping[str, Any]) -> str:
        if self.paths_not_found:
            self.paths_not_found = {
                notation: path for notation, path in self.paths_not_found.items() if not path.has_value_in(row)
            }
        texts = {
            notation: format_value_as_text_chat_or_json(path.value_or_none_in(row))
            for notation, path in self.path_by_text.items()
        }
        return "" if all(map(is_blank, texts.values())) else self.join_texts(texts)

    def refuse_paths_never_found(self) -> None:
        """Raise `Invalid` (`column_unknown`) for a path within a column that no row had."""
        for notation in self.paths_not_found:
            path_text = shorten_echo(notation)
            raise Invalid(
                f"No row has a value at “{path_text}”. Nothing was imported.", code="column_unknown", column=path_text
            )


def build_item_text_maker_or_refuse(columns: Sequence[str], column: str | None, template: str | None) -> ItemTextMaker:
    """Return how a row is shown: by a column, a path into one such as `messages[0].content`, or a template of these.

    Raises `Invalid`: `shown_not_chosen`, `column_unknown`, `template_invalid`.
    """
    if column and template:
        raise Invalid("Choose a column to show or a template, not both.", code="shown_not_chosen")
    if template:
        return build_text_maker_of_template(columns, template)
    shown_column = column or find_obvious_shown_column_or_none(columns)
    if shown_column is None:
        raise Invalid(
            f"Choose which column annotators see: {join_names(columns)}. Nothing was imported.",
            code="shown_not_chosen",
            columns=shortened_names_that_message_shows(columns),
        )
    return ItemTextMaker(row_path_by_notation_or_refuse(columns, [shown_column]), lambda texts: texts[shown_column])


def build_text_maker_of_template(columns: Sequence[str], template: str) -> ItemTextMaker:
    """Return how a template shows rows: `{column}` and `{column[0].name}` are values, `{{` and `}}` are braces.

    Attributes and formats are not looked up.
    """

    def fill_template(texts: Mapping[str, str]) -> str:
        return TEMPLATE_TOKEN_PATTERN.sub(lambda token: texts[token[1]] if token[1] else token[0][0], template)

    return ItemTextMaker(
        row_path_by_notation_or_refuse(columns, parse_template_paths_or_refuse(template)), fill_template
    )


def row_path_by_notation_or_refuse(columns: Sequence[str], path_texts: Sequence[str]) -> dict[str, RowPath]:
    """Return the path of each notation. Raises `Invalid` (`column_unknown`)."""
    parsed_paths = {name: path for name in path_texts if (path := row_path_or_none(name, columns))}
    return parsed_paths | {
        name: RowPath(column_ignoring_case_or_refuse(columns, name)) for name in path_texts if name not in parsed_paths
    }


def parse_template_paths_or_refuse(template: str) -> list[str]:
    """Return the columns that a template is made of. Raises `Invalid` (`template_invalid`)."""
    path_texts = []
    for token in TEMPLATE_TOKEN_PATTERN.finditer(template):
        if token[1]:
            path_texts.append(token[1])
        elif len(token[0]) == 1:
            raise Invalid(
                f"The template has an unmatched {token[0]}. To show a brace, write it twice.",
                code="template_invalid",
            )
    if not path_texts:
        raise Invalid(
            "The template names no column, so all items would look the same. Write for example {text}.",
            code="template_invalid",
        )
    return path_texts


def refuse_missing_columns(columns: Sequence[str], required_names: Sequence[str]) -> None:
    for name in required_names:
        if name not in columns:
            raise Invalid(
                f"There is no column “{shorten_echo(name)}”. The columns are: {join_names(columns)}. Nothing was "
                "imported.",
                code="column_unknown",
                column=shorten_echo(name),
                columns=shortened_names_that_message_shows(columns),
            )


# Values within values


def row_path_or_none(path_text: str, columns: Sequence[str]) -> RowPath | None:
    """Return the path written as `column`, `column.name` or `column[0].name`; None if there is no such column.

    A negative index counts from the end. A column that has the whole notation as its name takes precedence.
    """
    if path_text in columns:
        return RowPath(path_text)
    column_prefixes = [
        name for name in columns if path_text.startswith(name) and path_text[len(name) :][:1] in (".", "[")
    ]
    for column in sorted(column_prefixes, key=len, reverse=True):
        if (steps := path_steps_or_none(path_text[len(column) :])) is not None:
            return RowPath(column, steps)
    return None


def path_steps_or_none(steps_text: str) -> tuple[str | int, ...] | None:
    """Return the steps of `[0].content`; None if the text is something else."""
    steps: list[str | int] = []
    position = 0
    while position < len(steps_text):
        if (step := PATH_STEP_PATTERN.match(steps_text, position)) is None:
            return None
        steps.append(int(step["index"]) if step["index"] else step["name"])
        position = step.end()
    return tuple(steps)


def format_value_as_text_chat_or_json(value: Any) -> str:
    """Return a value as people read it: text unchanged, chat messages one below the other, all else as JSON."""
    if isinstance(value, list) and value and all(map(is_chat_message, value)):
        return "\n\n".join(
            f"{value_of_first_present_key_or_none(message, CHAT_ROLE_KEYS)}: "
            f"{format_chat_content(value_of_first_present_key_or_none(message, CHAT_CONTENT_KEYS))}"
            for message in value
        )
    return format_cell(value)


def is_chat_message(value: Any) -> bool:
    """Return whether a value is a chat message in the format of language model APIs."""
    return (
        isinstance(value, dict)
        and isinstance(value_of_first_present_key_or_none(value, CHAT_ROLE_KEYS), str)
        and value_of_first_present_key_or_none(value, CHAT_CONTENT_KEYS) is not None
    )


def value_of_first_present_key_or_none(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((message[name] for name in keys if name in message), None)


def format_chat_content(content: Any) -> str:
    """Return the text of a chat message, which may have several parts."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "\n".join(part["text"] for part in content)
    return format_cell(content)
