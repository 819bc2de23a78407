"""Types of the inventory: a table with rows about annotators, and what each column holds."""

from dataclasses import dataclass
from typing import Literal

DataKind = Literal["identifier", "about themselves", "answers", "free text", "telemetry", "conduct", "technical"]
RetentionKind = Literal["identifiers", "free_text", "telemetry"]

ERASED_PREFIX = "erased:"
ERASED_REASON = "erased"
NAMES_RESEARCHER = "it names a researcher, not the person"
BY_ANNOTATOR = "campaign_id = :campaign AND annotator_id = :annotator"


@dataclass(frozen=True)
class PersonalColumn:
    """A column with something about an annotator.

    Attributes:
        names: Names of the column, and of others that are treated alike.
        meaning: What it holds, for the documentation and the person's export.
        kind: Kind of data.
        anonymised: SQL of its value after `anonymise`; empty if it stays.
        removed: SQL of its value after `remove`; empty if it is as after `anonymise`.
        fate: What becomes of it, in words; empty if it stays.
        retention: The period after which it is erased from a finished campaign, too.
        withheld: Reason why the person's export leaves it out; empty if it has it.

    """

    names: tuple[str, ...]
    meaning: str
    kind: DataKind
    anonymised: str = ""
    removed: str = ""
    fate: str = ""
    retention: RetentionKind | None = None
    withheld: str = ""


def personal_column(
    names: str,
    meaning: str,
    kind: DataKind,
    *,
    anonymised: str = "",
    removed: str = "",
    fate: str = "",
    retention: RetentionKind | None = None,
    withheld: str = "",
) -> PersonalColumn:
    """Return an entry for one or several columns, named with blanks between them."""
    return PersonalColumn(tuple(names.split()), meaning, kind, anonymised, removed, fate, retention, withheld)


@dataclass(frozen=True)
class PersonalTable:
    """A table with rows about annotators.

    Attributes:
        name: Name of the table.
        rows: SQL condition on its rows about one annotator.
        columns: All of its columns.
        deleted_by_anonymise: SQL condition on the rows that `anonymise` and `remove` delete; empty if none.
        deleted_by_remove: Likewise, of `remove` alone.
        retention: The period after which `deleted_by_anonymise` holds for all annotators of the campaign.
        about_any_annotator: SQL condition on the rows of a campaign that are about any annotator.

    """

    name: str
    rows: str
    columns: tuple[PersonalColumn, ...]
    deleted_by_anonymise: str = ""
    deleted_by_remove: str = ""
    retention: RetentionKind | None = None
    about_any_annotator: str = "true"

    @property
    def exported_columns(self) -> list[str]:
        """Names of the columns that a person's export has."""
        return [name for column in self.columns if not column.withheld for name in column.names]


def random_id_sql(column: str) -> str:
    """Return SQL of an id's value after erasure: a random id, unless it is one already."""
    return (
        f"CASE WHEN starts_with({column}, '{ERASED_PREFIX}') THEN {column} "
        f"ELSE '{ERASED_PREFIX}' || gen_random_uuid() END"
    )
