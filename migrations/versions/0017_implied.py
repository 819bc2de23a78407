"""How many of the pairs that an annotator's own answers imply are asked anyway."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """So far nothing is implied: every pair may be asked."""
    op.execute("ALTER TABLE campaigns ADD implied_asked_percent int")


def downgrade() -> None:
    """Which pairs are implied follows from the answers."""
    op.execute("ALTER TABLE campaigns DROP implied_asked_percent")
