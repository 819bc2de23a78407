"""Metadata of all tables, and helpers for indexes, foreign keys and types."""

from typing import Any

from sqlalchemy import TIMESTAMP, ForeignKeyConstraint, Index, MetaData, TextClause, text
from sqlalchemy.types import UserDefinedType

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

Time = TIMESTAMP(timezone=True)
OPEN_HIT_CONDITION = "closed_at IS NULL AND"
GIN_INDEX_OPTIONS: dict[str, Any] = {"postgresql_using": "gin", "postgresql_with": {"fastupdate": "off"}}


def partial_index(condition: str, name: str, *columns: str | TextClause, **options: Any) -> Index:
    return Index(name, *columns, postgresql_where=text(condition), **options)


def cascading_foreign_key(to_table: str, column: str, *, from_table: str) -> ForeignKeyConstraint:
    """Return a foreign key by which rows of `from_table` are deleted with the row of `to_table` that `column` names."""
    return campaign_foreign_key(to_table, column, from_table=from_table, ondelete="CASCADE")


def restricting_foreign_key(to_table: str, column: str, *, from_table: str) -> ForeignKeyConstraint:
    """Return a foreign key by which a row of `to_table` cannot be deleted while a row of `from_table` names it."""
    return campaign_foreign_key(to_table, column, from_table=from_table, ondelete="RESTRICT")


def campaign_foreign_key(to_table: str, column: str, *, from_table: str, ondelete: str) -> ForeignKeyConstraint:
    """Return the foreign key from a `column` of `from_table` to a row of `to_table` in the same campaign."""
    return ForeignKeyConstraint(
        ["campaign_id", column],
        [f"{to_table}.campaign_id", f"{to_table}.id"],
        ondelete=ondelete,
        name=f"{from_table}_{column}_fkey",
    )


class TransactionId(UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction id. A snapshot tells whether its transaction had ended: see `record.changes`."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"
