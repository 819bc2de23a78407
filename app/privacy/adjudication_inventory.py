"""Inventory of adjudications: their reasons may name annotators."""

from app.privacy.inventory_types import ERASED_REASON, NAMES_RESEARCHER, PersonalTable, personal_column

# By their name on pages, as a word in any case, or by their pseudonym in exports.
REASON_NAMES_ANNOTATOR_SQL = r"""campaign_id = :campaign AND (
    reason ~* ('\m' || CAST(:name AS text) || '\M') OR strpos(reason, (
        SELECT a.pseudonym FROM annotators a WHERE a.campaign_id = :campaign AND a.id = :annotator)) > 0)"""

ADJUDICATIONS_TABLE = PersonalTable(
    "adjudications",
    REASON_NAMES_ANNOTATOR_SQL,
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
