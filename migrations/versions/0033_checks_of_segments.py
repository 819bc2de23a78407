"""Gold and attention items of campaigns that compare systems belong to a segment."""

from alembic import op

revision = "0033_checks_of_segments"
down_revision = "0032_hits_of_assignments"


def upgrade() -> None:
    """Add the number of the segment; present checks have none."""
    op.execute("ALTER TABLE check_items ADD segment integer")


def downgrade() -> None:
    """Drop it, with the checks that cannot be shown without it."""
    op.execute("""
        UPDATE campaigns SET has_checks = false
        WHERE id IN (SELECT campaign_id FROM check_items WHERE segment IS NOT NULL)
    """)
    op.execute("DELETE FROM check_items WHERE segment IS NOT NULL")
    op.execute("ALTER TABLE check_items DROP segment")
