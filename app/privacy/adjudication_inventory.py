"""Inventory of adjudications: their reasons may name annotators."""

from app.privacy.inventory_types import ERASED_REASON, NAMES_RESEARCHER, PersonalTable, personal_column

ADJUDICATIONS_TABLE = PersonalTable(
    "adjudications",
    r"campaign_id = :campaign AND reason ~ ('\m' || CAST(:name AS text) || '\M')",
    (
        personal_column(
            "reason",
            "reasons of final labels that name them, as A7",
            "free text",
            anonymised=f"CASE WHEN reason = '' THEN '' ELSE '{ERASED_REASON}' END",
            fate="overwritten",
            retention="free_text",
        ),
        personal_column("decided_by", "who chose the label", "technical", withheld=NAMES_RESEARCHER),
        personal_column("criterion item label decided_at", "the final label", "technical"),
        personal_column("campaign_id id replaces", "place in the list", "technical"),
    ),
)
