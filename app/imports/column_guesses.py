"""Likely columns of a table of items: which one names the items, and which one annotators see.

A column of ids is guessed by its name, such as `id`, `comment_id`, `Tweet ID` or `ResponseId`. If the column repeats
values in many rows, it names something else, such as authors.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any
from unicodedata import normalize

from app.imports.columns import (
    find_column_ignoring_case_or_none,
    join_names_with_and,
    normalize_column_name_for_comparison,
)
from app.imports.item_files import COMMON_ID_COLUMN_NAMES
from app.imports.item_text import find_obvious_shown_column_or_none
from app.uploads import INDEX_COLUMN, UploadedRow, format_cell, parse_finite_number_or_none

ID_AT_END = re.compile(r"(?:^|[\W_])[iI][dD]$|[a-z0-9]I[dD]$")
UNDIVIDED_ID_NAMES = frozenset(
    (
        *("sid", "uid", "pid", "qid", "tid", "cid", "uuid", "guid"),
        *("docid", "textid", "sentid", "sentenceid", "commentid", "postid", "tweetid"),
    )
)


def is_common_id_name(name: str) -> bool:
    return normalize_column_name_for_comparison(name) in COMMON_ID_COLUMN_NAMES


def is_id_name(name: str) -> bool:
    """Return whether a column's name says that it holds ids, of whatever kind."""
    return (
        is_common_id_name(name)
        or ID_AT_END.search(normalize("NFC", name).strip()) is not None
        or normalize_column_name_for_comparison(name) in UNDIVIDED_ID_NAMES
    )


def guess_id_column_or_none(columns: Sequence[str], rejected_columns: Collection[str] = ()) -> str | None:
    """Return a column with a common name of ids, else the first one whose name ends like one; None if there is none."""
    common_columns = (find_column_ignoring_case_or_none(columns, name) for name in COMMON_ID_COLUMN_NAMES)
    id_columns = (name for name in columns if is_id_name(name) and name not in rejected_columns)
    return next((name for name in common_columns if name), None) or next(id_columns, None)


def notes_on_rejected_ids(rejected_columns: Sequence[str], identifier: str | None) -> list[str]:
    """Return a note if columns look like ids by their name, but their values repeat; `identifier` is used instead."""
    if not rejected_columns:
        return []
    verb = "repeats values or is" if len(rejected_columns) == 1 else "repeat values or are"
    instead = f"ids come from “{identifier}”" if identifier else "the rows are numbered"
    return [f"{join_names_with_and(rejected_columns)} {verb} empty in many rows, so {instead}."]


def guess_shown_column_or_first(
    columns: Sequence[str], first_records: Sequence[UploadedRow], identifier: str | None
) -> str:
    """Return the obvious column to show, else the first text column without ids, else the first that is not the id."""
    candidates = [name for name in columns if name not in (identifier, INDEX_COLUMN)] or [*columns]
    text_columns = (
        name
        for name in candidates
        if not is_id_name(name) and any(is_text_cell(record.values.get(name)) for record in first_records)
    )
    return find_obvious_shown_column_or_none(candidates) or next(text_columns, candidates[0])


def is_text_cell(value: Any) -> bool:
    """Return whether a cell holds something else than a number."""
    return bool(format_cell(value).strip()) and parse_finite_number_or_none(value) is None
