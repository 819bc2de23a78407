"""The names of items in the fields of a page: by position in the HIT, so that nothing on a page outlives the HIT."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.designs.remarks import COMMENT, FLAG

NAMED = re.compile(r"((?:.*-)?)([0-9]+)", re.DOTALL)  # a field or an entry that names an item at its end
CHOICES = ("preferred", "best", "worst")  # fields whose value names an item


class ItemName(int):
    """Position of an item in a HIT, 0 for the first, written with two digits.

    The two digits tell it from the number of an item in its campaign, by which pages named items before version 0.2.
    """

    def __str__(self) -> str:
        """Two digits, as in `score-03`."""
        return f"{int(self):02d}"


def item_names(count: int) -> list[ItemName]:
    """Return the names of the items of a HIT, in the order in which they are shown."""
    return [ItemName(position) for position in range(count)]


def form_by_position(fields: Mapping[str, str], items: Sequence[int]) -> Mapping[str, str]:
    """Return the fields of a form for a HIT of these items, which name items by position.

    A page that was opened before an upgrade names them by number; a form that does so throughout is renamed.
    """
    names = names_by_number(items)
    if not is_by_number(fields, names):
        return fields
    return {renamed(name, names): chosen(name, value, names) for name, value in fields.items()}


def draft_by_position(entries: Mapping[str, Any], items: Sequence[int]) -> Mapping[str, Any]:
    """Return the entries of a draft by position, also of one that an earlier page saved by number."""
    names = names_by_number(items)
    values = {name: str(entry.get("value", "")) for name, entry in entries.items()}
    if not is_by_number(values, names):
        return entries
    found = {name: chosen(name, value, names) for name, value in values.items()}
    return {
        renamed(name, names): {**entry, "value": found[name]} if "value" in entry else entry
        for name, entry in entries.items()
    }


def item_by_name(name: str, items: Sequence[int]) -> int | None:
    """Return the number of the item that has this name on the page of its HIT, also on an earlier one; else None."""
    named = {str(item): item for item in items}
    named |= {str(one): item for one, item in zip(item_names(len(items)), items, strict=True)}
    return named.get(name)


def names_by_number(items: Iterable[int]) -> dict[str, str]:
    return {str(item): str(ItemName(position)) for position, item in enumerate(items)}


def is_by_number(fields: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Return whether all that names an item names one of these, by its number."""
    found = {reference for name, value in fields.items() if (reference := reference_in(name, value))}
    return bool(found) and found <= names.keys()


def reference_in(name: str, value: str) -> str | None:
    """Return what a field names an item by: the end of its name, or the value of a choice; None where it names none."""
    if chooses(name):
        return value.strip() if value.strip().isdigit() else None
    found = NAMED.fullmatch(name)
    return found[2] if found else None


def chooses(name: str) -> bool:
    return name.rpartition("-")[2] in CHOICES and not name.startswith((COMMENT, FLAG))


def renamed(name: str, names: Mapping[str, str]) -> str:
    found = NAMED.fullmatch(name)
    return f"{found[1]}{names[found[2]]}" if found else name


def chosen(name: str, value: str, names: Mapping[str, str]) -> str:
    return names.get(value.strip(), value) if chooses(name) else value
