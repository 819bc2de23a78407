"""What annotators see of an item: one column of its row, or a small template over columns."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.errors import Invalid, listed, shortened, some_of
from app.upload import as_text

TextOfItem = Callable[[Mapping[str, Any]], str]

USUAL_NAMES = ("text", "sent", "sentence", "shown", "item")
NOT_SHOWN = ("id", "alpha", "beta", "mode", "var", "mu", "sigma", "sigma2")
TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")


def guess(columns: Sequence[str]) -> str | None:
    """The column to show if it is plain which: one with a usual name, or the only one there is."""
    for name in USUAL_NAMES:
        if name in columns:
            return name
    others = [name for name in columns if name not in NOT_SHOWN]
    return others[0] if len(others) == 1 else None


def shown_by(columns: Sequence[str], column: str | None, template: str | None) -> TextOfItem:
    """How a row is shown. The text is empty when all columns it is made of are.

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
    check_known(columns, [chosen])
    return lambda values: as_text(values.get(chosen))


def from_template(columns: Sequence[str], template: str) -> TextOfItem:
    """`{column}` stands for a value, `{{` and `}}` for braces. Nothing else is looked up: no attributes, no formats."""
    names = names_in(template)
    check_known(columns, names)

    def shown(values: Mapping[str, Any]) -> str:
        texts = {name: as_text(values.get(name)) for name in names}
        if not any(text.strip() for text in texts.values()):
            return ""
        return TOKEN.sub(lambda token: texts[token[1]] if token[1] else token[0][0], template)

    return shown


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
