"""Text of an item that annotators see: one column of its row, or a small template over columns."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.designs.field_flags import is_blank
from app.errors import Invalid, join_names, shorten_echo, shorten_names
from app.imports.columns import find_column, fold_name, require_column
from app.imports.row_path import RowPath, format_cell_value, parse_row_path
from app.uploads import INDEX_COLUMN

COMMON_SHOWN_COLUMN_NAMES = ("text", "sent", "sentence", "shown", "item")
NEVER_SHOWN_COLUMNS = ("id", "alpha", "beta", "mode", "var", "mu", "sigma", "sigma2", INDEX_COLUMN)
TEMPLATE_TOKEN_PATTERN = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")


def find_obvious_shown_column(columns: Sequence[str]) -> str | None:
    """Return the obvious column to show: one with a usual name, or the only one there is."""
    for name in COMMON_SHOWN_COLUMN_NAMES:
        if column := find_column(columns, name):
            return column
    candidates = [name for name in columns if fold_name(name) not in NEVER_SHOWN_COLUMNS]
    return candidates[0] if len(candidates) == 1 else None


class ItemTextMaker:
    """Makes the text of an item from its row. The text is empty if all of its values look empty.

    `path_by_text` maps each value's notation to its path; `join_texts` makes the item's text of the values' texts.
    """

    def __init__(self, path_by_text: Mapping[str, RowPath], join_texts: Callable[[Mapping[str, str]], str]) -> None:
        self.path_by_text = path_by_text
        self.join_texts = join_texts
        self.paths_not_found = {notation: path for notation, path in path_by_text.items() if path.steps}

    def __call__(self, row: Mapping[str, Any]) -> str:
        """Return the text of one row."""
        if self.paths_not_found:
            self.paths_not_found = {
                notation: path for notation, path in self.paths_not_found.items() if not path.has_value_in(row)
            }
        texts = {notation: format_cell_value(path.value_in(row)) for notation, path in self.path_by_text.items()}
        return "" if all(map(is_blank, texts.values())) else self.join_texts(texts)

    def refuse_paths_never_found(self) -> None:
        """Raise `Invalid` (`column_unknown`) for a path within a column that no row had."""
        for notation in self.paths_not_found:
            path_text = shorten_echo(notation)
            raise Invalid(
                f"No row has a value at “{path_text}”. Nothing was imported.", code="column_unknown", column=path_text
            )


def build_item_text_maker(columns: Sequence[str], column: str | None, template: str | None) -> ItemTextMaker:
    """Return how a row is shown: by a column, a path into one such as `messages[0].content`, or a template of these.

    Raises `Invalid`: `shown_not_chosen`, `column_unknown`, `template_invalid`.
    """
    if column and template:
        raise Invalid("Choose a column to show or a template, not both.", code="shown_not_chosen")
    if template:
        return text_maker_of_template(columns, template)
    shown_column = column or find_obvious_shown_column(columns)
    if shown_column is None:
        raise Invalid(
            f"Choose which column annotators see: {join_names(columns)}. Nothing was imported.",
            code="shown_not_chosen",
            columns=shorten_names(columns),
        )
    return ItemTextMaker(require_row_paths(columns, [shown_column]), lambda texts: texts[shown_column])


def text_maker_of_template(columns: Sequence[str], template: str) -> ItemTextMaker:
    """Return how a template shows rows: `{column}` and `{column[0].name}` are values, `{{` and `}}` are braces.

    Attributes and formats are not looked up.
    """

    def fill_template(texts: Mapping[str, str]) -> str:
        return TEMPLATE_TOKEN_PATTERN.sub(lambda token: texts[token[1]] if token[1] else token[0][0], template)

    return ItemTextMaker(require_row_paths(columns, parse_template_paths(template)), fill_template)


def require_row_paths(columns: Sequence[str], path_texts: Sequence[str]) -> dict[str, RowPath]:
    """Return the path of each notation. Raises `Invalid` (`column_unknown`)."""
    parsed_paths = {name: path for name in path_texts if (path := parse_row_path(name, columns))}
    return parsed_paths | {
        name: RowPath(require_column(columns, name)) for name in path_texts if name not in parsed_paths
    }


def parse_template_paths(template: str) -> list[str]:
    """Return the columns that a template is made of. Raises `Invalid` (`template_invalid`)."""
    path_texts = []
    for token in TEMPLATE_TOKEN_PATTERN.finditer(template):
        if token[1]:
            path_texts.append(token[1])
        elif len(token[0]) == 1:
            raise Invalid(
                f"The template has a {token[0]} without its other half. For a brace itself, write it twice.",
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
                columns=shorten_names(columns),
            )
