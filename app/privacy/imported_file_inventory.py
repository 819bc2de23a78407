"""Inventory of the files of answers that are being imported."""

from app.privacy.inventory_types import PersonalTable, personal_column

UNFINISHED_IMPORTS_TABLE = PersonalTable(
    "unfinished_imports",
    "campaign_id = :campaign AND false",  # a file is about many people, so no row is one person's
    (
        personal_column(
            "file",
            "a file of answers with ids of annotators, until its last answer is stored",
            "identifier",
            fate="the import skips the person; the erasure is finished when the file is gone",
            retention="identifiers",
            withheld="it has other people, too, and is deleted with its last answer",
        ),
        personal_column("campaign_id name options started_at hits", "how it is imported", "technical"),
    ),
    deleted_by_anonymise="true",
    retention="identifiers",
)
