"""Inventory of the tables about money, which keep amounts and times after an erasure, but no id of the platform."""

from app.privacy.inventory_types import (
    BY_ANNOTATOR,
    ERASED_REASON,
    NAMES_RESEARCHER,
    PersonalTable,
    personal_column,
    random_id_sql,
)

HASH_OF_KNOWN_ID = "it says no more than the id"

MONEY_TABLES = (
    PersonalTable(
        "payments",
        BY_ANNOTATOR,
        (
            personal_column(
                "submission",
                "the platform’s id of the submission that was paid",
                "identifier",
                anonymised=random_id_sql("submission"),
                fate="replaced by a random one",
                retention="identifiers",
            ),
            personal_column(
                "submission_hash",
                "hash of that id, made with the server’s secret key; so each reward is booked once",
                "identifier",
                withheld=HASH_OF_KNOWN_ID,
            ),
            personal_column(
                "reason",
                "what a payment was for",
                "free text",
                anonymised=f"'{ERASED_REASON}'",
                fate="overwritten",
                retention="free_text",
            ),
            personal_column("created_by decided_by", "who paid", "technical", withheld=NAMES_RESEARCHER),
            personal_column(
                "kind amount currency state created_at sending_at settled_at", "what they were paid", "conduct"
            ),
            personal_column(
                "campaign_id id annotator_id study request_key line batch bulk_id paid_before looked_at amounts_seen",
                "how it was paid",
                "technical",
            ),
            personal_column(
                "problem",
                "why a payment failed, in the platform’s words",
                "identifier",
                anonymised="''",
                fate="emptied",
                retention="identifiers",
            ),
        ),
    ),
    PersonalTable(
        "submissions",
        BY_ANNOTATOR,
        (
            personal_column(
                "external_id",
                "the platform’s id of the submission",
                "identifier",
                anonymised=random_id_sql("external_id"),
                fate="replaced by a random one",
                retention="identifiers",
            ),
            personal_column(
                "status seen_at reward return_requested_at decision_pending_since",
                "what became of the submission at the platform",
                "conduct",
            ),
            personal_column(
                "problem",
                "why it was not approved, in the platform’s words",
                "identifier",
                anonymised="''",
                fate="emptied",
                retention="identifiers",
            ),
            personal_column(
                "submission_hash",
                "hash of that id, made with the server’s secret key",
                "identifier",
                anonymised="NULL",
                fate="emptied",
                retention="identifiers",
                withheld=HASH_OF_KNOWN_ID,
            ),
            personal_column("campaign_id annotator_id study", "whose it is", "technical"),
        ),
    ),
    PersonalTable(
        "server_calls",
        BY_ANNOTATOR,
        (
            personal_column(
                "outcome state created_at sending_at settled_at",
                "what their platform was told about the end of their visit",
                "conduct",
            ),
            personal_column("decided_by", "who decided about it", "technical", withheld=NAMES_RESEARCHER),
            personal_column(
                "campaign_id id annotator_id assignment_id tries due_at attempt problem", "how it was told", "technical"
            ),
        ),
    ),
)
