"""People may be told what was expected of a gold item."""

from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """So far nobody was."""
    op.execute("ALTER TABLE campaigns ADD gold_feedback boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    """Nobody is told any more."""
    op.execute("ALTER TABLE campaigns DROP gold_feedback")
