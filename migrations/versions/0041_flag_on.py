"""Annotators may flag a HIT, too."""

from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Where items could be flagged they still can."""
    op.execute("ALTER TABLE campaigns ADD flag_on text NOT NULL DEFAULT 'none'")
    op.execute("UPDATE campaigns SET flag_on = 'items' WHERE flag_items")
    op.execute("ALTER TABLE campaigns DROP flag_items")


def downgrade() -> None:
    """What was said of HITs stays in the responses."""
    op.execute("ALTER TABLE campaigns ADD flag_items boolean NOT NULL DEFAULT false")
    op.execute("UPDATE campaigns SET flag_items = flag_on IN ('items', 'both')")
    op.execute("ALTER TABLE campaigns DROP flag_on")
