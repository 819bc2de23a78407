"""The index by which a campaign's new responses are found, whatever other campaigns received."""

from alembic import op

revision = "0015_campaign_changes"
down_revision = "0013_lease_batches"


def upgrade() -> None:
    """Replace the index of all campaigns' transactions."""
    op.create_index("responses_changes_idx", "responses", ["campaign_id", "transaction_id"])
    op.drop_index("responses_transaction_id_idx", "responses")


def downgrade() -> None:
    """Restore the index of all campaigns' transactions."""
    op.create_index("responses_transaction_id_idx", "responses", ["transaction_id"])
    op.drop_index("responses_changes_idx", "responses")
