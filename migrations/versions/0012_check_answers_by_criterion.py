"""Answers to checks have values by every criterion of a campaign, not only by its first question."""

from alembic import op

revision = "0012_check_answers_by_criterion"
down_revision = "0011_lease_hits"


def upgrade() -> None:
    """Add the values by the criteria after the first; older answers have none."""
    op.execute("""
        ALTER TABLE check_answers
            ADD other_values double precision[] NOT NULL DEFAULT '{}', ADD other_changed_to double precision[]
    """)


def downgrade() -> None:
    """Drop them."""
    op.execute("ALTER TABLE check_answers DROP other_values, DROP other_changed_to")
