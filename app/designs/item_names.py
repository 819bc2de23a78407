"""The names of items in the fields of a page: by position in the HIT, so that nothing on a page outlives the HIT."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.designs.remarks import COMMENT_PREFIX, FLAG_PREFIX
from app.errors import Invalid

NAME_ENDING_IN_ITEM = re.compile(r"((?:.*-)?)([0-9]+)", re.DOTALL)  # a field or an entry that names an item at its end
CHOICE_FIELDS = ("preferred", "best", "worst")  # fields whose value names an item


class ItemName(int):
    """Position of an item in a HIT, 0 for the first, written with two digits.

    The two digits tell it from an item number in the campaign, which pages before version 0.2 used.
    """

    def __str__(self) -> str:
        """Return two digits, as in `score-03`."""
        return f"{int(self):02d}"


def item_names(count: int) -> list[ItemName]:
    """Return the names of the items of a HIT, in the order in which they are shown."""
    return [ItemName(position) for position in range(count)]


def rename_form_items_to_positions(fields: Mapping[str, str], items: Sequence[int]) -> Mapping[str, str]:
    """Return the fields of a form for a HIT of these items, which name items by position.

    A page that was opened before an upgrade names them by number; a form that does so throughout is renamed.
    """
    names = position_name_by_item_number(items)
    if not do_all_fields_use_item_numbers(fields, names):
        return fields
    return {
        rename_item_in_field_name(name, names): rename_item_in_choice_value(name, value, names)
        for name, value in fields.items()
    }


def rename_draft_items_to_positions(entries: Mapping[str, Any], items: Sequence[int]) -> Mapping[str, Any]:
    """Return the entries of a draft by position, also of one that an earlier page saved by number."""
    names = position_name_by_item_number(items)
    values = {name: str(entry.get("value", "")) for name, entry in entries.items()}
    if not do_all_fields_use_item_numbers(values, names):
        return entries
    translated = {name: rename_item_in_choice_value(name, value, names) for name, value in values.items()}
    return {
        rename_item_in_field_name(name, names): {**entry, "value": translated[name]} if "value" in entry else entry
        for name, entry in entries.items()
    }


def item_number_of_page_name_or_none(name: str, items: Sequence[int]) -> int | None:
    """Return the number of the item that has this name on the page of its HIT, also on an earlier one; else None."""
    numbers_by_name = {str(item): item for item in items}
    numbers_by_name |= {str(one): item for one, item in zip(item_names(len(items)), items, strict=True)}
    return numbers_by_name.get(name)


def item_number_of_media_report_or_refuse(form: Mapping[str, str], items: Sequence[int]) -> int:
    """Return the number of the item whose media the field `broken` reports. Raises `Invalid` (`item_not_shown`)."""
    number = item_number_of_page_name_or_none(form["broken"], items)
    if number is None:
        raise Invalid(
            "This report is about an item that this task does not show. Nothing was stored.", code="item_not_shown"
        )
    return number


def position_name_by_item_number(items: Iterable[int]) -> dict[str, str]:
    return {str(item): str(ItemName(position)) for position, item in enumerate(items)}


def do_all_fields_use_item_numbers(fields: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Return whether every field that names an item names one of these, by its number."""
    references = {
        reference for name, value in fields.items() if (reference := item_reference_in_field_or_none(name, value))
    }
    return bool(references) and references <= names.keys()


def item_reference_in_field_or_none(name: str, value: str) -> str | None:
    """Return the name of the item in a field: the end of the field's name, or the value of a choice; None if there is
    none.
    """
    if is_field_choosing_an_item(name):
        return value.strip() if value.strip().isdigit() else None
    match = NAME_ENDING_IN_ITEM.fullmatch(name)
    return match[2] if match else None


def is_field_choosing_an_item(name: str) -> bool:
    return name.rpartition("-")[2] in CHOICE_FIELDS and not name.startswith((COMMENT_PREFIX, FLAG_PREFIX))


def rename_item_in_field_name(name: str, names: Mapping[str, str]) -> str:
    match = NAME_ENDING_IN_ITEM.fullmatch(name)
    return f"{match[1]}{names[match[2]]}" if match else name


def rename_item_in_choice_value(name: str, value: str, names: Mapping[str, str]) -> str:
    return names.get(value.strip(), value) if is_field_choosing_an_item(name) else value
