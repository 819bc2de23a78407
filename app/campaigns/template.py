"""What annotators see of an item: one column of its row, or a small template over columns."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.campaigns.columns import column_called, fold_name, known_column
from app.campaigns.row_path import RowPath, parse_path, readable
from app.errors import Invalid, listed, shortened, some_of
from app.fields import is_blank
from app.upload import INDEX

USUAL_NAMES = ("text", "sent", "sentence", "shown", "item")
NOT_SHOWN = ("id", "alpha", "beta", "mode", "var", "mu", "sigma", "sigma2", INDEX)
TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")


def guess(columns: Sequence[str]) -> str | None:
    """The column to show if it is plain which: one with a usual name, or the only one there is."""
    for name in USUAL_NAMES:
        if column := column_called(columns, name):
            return column
    others = [name for name in columns if fold_name(name) not in NOT_SHOWN]
    return others[0] if len(others) == 1 else None


class TextOfItem:
    """Makes the text of an item of its row. The text is empty when all values that it is made of look empty.

    paths: what it is made of, by how it is written. make: the text, of a text for each of these.
    """

    def __init__(self, paths: Mapping[str, RowPath], make: Callable[[Mapping[str, str]], str]) -> None:
        self.paths = paths
        self.make = make
        self.never_found = {written: path for written, path in paths.items() if path.steps}

    def __call__(self, row: Mapping[str, Any]) -> str:
        """Return the text of one row."""
        if self.never_found:
            self.never_found = {written: path for written, path in self.never_found.items() if not path.exists(row)}
        texts = {written: readable(path.value(row)) for written, path in self.paths.items()}
        return "" if all(map(is_blank, texts.values())) else self.make(texts)

    def check_found(self) -> None:
        """Raise `Invalid` (`column_unknown`) if no row that was read has one of the values within a column."""
        for written in self.never_found:
            said = shortened(written)
            raise Invalid(f"No row has a value at “{said}”. Nothing was imported.", code="column_unknown", column=said)


def shown_by(columns: Sequence[str], column: str | None, template: str | None) -> TextOfItem:
    """Return how a row is shown: by a column, a path into one such as `messages[0].content`, or a template of these.

    Raises `Invalid`: `shown_not_chosen`, `column_unknown`, `template_invalid`.
    """
    if column and template:
        raise Invalid("Choose a column to show or a template, not both.", code="shown_not_chosen")
    if template:
        return from_template(columns, template)
    chosen = column or guess(columns)
    if chosen is None:
        raise Invalid(
            f"Choose which column annotators see: {listed(columns)}. Nothing was imported.",
            code="shown_not_chosen",
            columns=some_of(columns),
        )
    return TextOfItem(known_paths(columns, [chosen]), lambda texts: texts[chosen])


def from_template(columns: Sequence[str], template: str) -> TextOfItem:
    """Return how rows are shown by a template: `{column}` and `{column[0].name}` stand for values, `{{` and `}}` for
    braces. Nothing else is looked up: no attributes, no formats.
    """

    def make(texts: Mapping[str, str]) -> str:
        return TOKEN.sub(lambda token: texts[token[1]] if token[1] else token[0][0], template)

    return TextOfItem(known_paths(columns, names_in(template)), make)


def known_paths(columns: Sequence[str], written: Sequence[str]) -> dict[str, RowPath]:
    """Return the paths that are written so. Raises `Invalid` (`column_unknown`)."""
    found = {name: path for name in written if (path := parse_path(name, columns))}
    return found | {name: RowPath(known_column(columns, name)) for name in written if name not in found}


def names_in(template: str) -> list[str]:
    """The columns a template is made of. Raises `Invalid` (`template_invalid`)."""
    names = []
    for token in TOKEN.finditer(template):
        if token[1]:
            names.append(token[1])
        elif len(token[0]) == 1:
            raise Invalid(
                f"The template has a {token[0]} without its other half. For a brace itself, write it twice.",
                code="template_invalid",
            )
    if not names:
        raise Invalid(
            "The template names no column, so all items would look the same. Write for example {text}.",
            code="template_invalid",
        )
    return names


def check_known(columns: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in columns:
            raise Invalid(
                f"There is no column “{shortened(name)}”. The columns are: {listed(columns)}. Nothing was imported.",
                code="column_unknown",
                column=shortened(name),
                columns=some_of(columns),
            )
