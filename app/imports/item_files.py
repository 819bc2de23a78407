"""Files of items: read as a table with a header, or as one text per line where that is what they have."""

import re
from dataclasses import replace
from typing import BinaryIO

from app.errors import Invalid
from app.imports.columns import (
    ColumnMapping,
    find_column_ignoring_case_or_none,
    is_outputs_table,
    normalize_column_name_for_comparison,
)
from app.imports.item_text import COMMON_SHOWN_COLUMN_NAMES, NEVER_SHOWN_COLUMNS, parse_template_paths_or_refuse
from app.uploads import (
    READ_AS_AUTO,
    READ_AS_LINES,
    READ_AS_TABLE,
    TEXT_COLUMN,
    ReadOptions,
    UploadedTable,
    read_table_of_any_length,
)

READ_AS_TITLES = {
    READ_AS_AUTO: "detect",
    READ_AS_TABLE: "a table with a header",
    READ_AS_LINES: "one text per line",
}
COMMON_ID_COLUMN_NAMES = ("id", "item_id", "itemid", "key", "identifier")
ITEM_HEADER_NAMES = frozenset(
    (
        *COMMON_SHOWN_COLUMN_NAMES,
        *COMMON_ID_COLUMN_NAMES,
        *NEVER_SHOWN_COLUMNS,
        *("texts", "sentences", "items", "image", "audio", "video", "file", "filename"),
    )
)
COLUMN_SEPARATOR = re.compile(r"[,;\t]")
# Refusals of tables that do not occur if every line is a text.
REFUSED_TABLE_CODES = ("ragged_row", "csv_unreadable", "quotes_unclear", "column_twice", "column_unnamed")


def read_item_table_of_any_length(
    file: BinaryIO, name: str, *, max_mb: int, mapping: ColumnMapping, read_options: ReadOptions
) -> UploadedTable:
    """Return the table of items in a file; unless `read_options` say how to read it, it is read as what it looks like.

    Raises what `read_table_of_any_length` raises. If one text per line could be read instead, the details of the
    refusal have `read_as`.
    """
    header_names = ITEM_HEADER_NAMES | chosen_column_names_in_lower_case(mapping)
    options = replace(read_options, read_as=read_options.read_as or READ_AS_AUTO, header_names=header_names)
    try:
        return read_table_of_any_length(file, name, max_mb=max_mb, read_options=options)
    except Invalid as refusal:
        if refusal.code not in REFUSED_TABLE_CODES or not can_be_read_as_lines(file, name, max_mb, options):
            raise
        message = (
            f"{refusal.message} If every line is one text, read the file as one text per line (on the command line "
            "--read-as lines, in the API read_as=lines)."
        )
        raise Invalid(message, code=refusal.code, **refusal.details, read_as=READ_AS_LINES) from None


def chosen_column_names_in_lower_case(mapping: ColumnMapping) -> frozenset[str]:
    """Return the names of columns that an uploader chose, and which the file therefore must have."""
    names = [
        mapping.shown,
        mapping.identifier,
        *(parse_template_paths_or_refuse(mapping.template) if mapping.template else []),
    ]
    return frozenset(normalize_column_name_for_comparison(name) for name in names if name)


def can_be_read_as_lines(file: BinaryIO, name: str, max_mb: int, options: ReadOptions) -> bool:
    """Return whether a refused table is a text file whose first line has no known name of a column."""
    file.seek(0)
    try:
        lines = read_table_of_any_length(
            file, name, max_mb=max_mb, read_options=replace(options, read_as=READ_AS_LINES)
        )
    except Invalid:
        return False
    first_row = next(lines.rows, None)
    cells = COLUMN_SEPARATOR.split(str(first_row.values[TEXT_COLUMN])) if first_row else []
    return lines.format == "txt" and not any(
        normalize_column_name_for_comparison(cell.strip('" ')) in options.header_names for cell in cells
    )


def mapping_with_numbered_rows_if_no_ids(mapping: ColumnMapping, upload: UploadedTable) -> ColumnMapping:
    """Return the mapping; the rows are numbered if the file has no header, or if it has checks alone and no `id`.

    Rows of outputs of systems have no ids.
    """
    may_lack_ids = not upload.has_header or bool(mapping.check_kind)
    has_ids = find_column_ignoring_case_or_none(upload.columns, ColumnMapping.identifier or "") is not None
    is_numbered = may_lack_ids and not has_ids and mapping.identifier == ColumnMapping.identifier
    if not is_numbered or is_outputs_table(upload.columns, mapping):
        return mapping
    return replace(mapping, identifier=None)
