"""The inventory names every column of the database, once."""

from collections import Counter

from app.database import payment_tables, privacy_tables, quality_tables, sharing_tables  # noqa: F401  (parts of the metadata)
from app.database.schema import metadata
from app.privacy.inventory import PERSONAL_TABLES
from app.privacy.other_columns import OTHER_TABLES


def inventory_columns() -> Counter[str]:
    personal = [
        f"{table.name}.{name}" for table in PERSONAL_TABLES for column in table.columns for name in column.names
    ]
    other = [f"{name}.{column}" for name, table in OTHER_TABLES.items() for column in table.columns]
    return Counter(personal + other)


def test_every_column_of_the_database_has_a_line() -> None:
    stored = {f"{table.name}.{column.name}" for table in metadata.sorted_tables for column in table.columns}
    assert stored - set(inventory_columns()) == set()


def test_no_line_names_a_column_that_does_not_exist_or_that_another_line_names() -> None:
    stored = {f"{table.name}.{column.name}" for table in metadata.sorted_tables for column in table.columns}
    assert set(inventory_columns()) - stored == set()
    assert [name for name, lines in inventory_columns().items() if lines > 1] == []


def test_tables_that_name_an_annotator_have_rows_about_a_person() -> None:
    personal = {table.name for table in PERSONAL_TABLES}
    assert {table.name for table in metadata.sorted_tables if "annotator_id" in table.columns} <= personal


def test_whatever_erasure_changes_is_explained() -> None:
    changed = [column for table in PERSONAL_TABLES for column in table.columns if column.anonymised or column.removed]
    assert [column.names for column in changed if not column.fate] == []
