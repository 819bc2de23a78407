"""What a campaign is for: its best items, or those above a threshold."""

from alembic import op

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    """No rule of before reads them."""
    op.execute("ALTER TABLE campaigns ADD best_items int NOT NULL DEFAULT 10")
    op.execute("ALTER TABLE campaigns ADD threshold double precision NOT NULL DEFAULT 50")


def downgrade() -> None:
    """Campaigns with one of their rules go on by Algorithm 1."""
    op.execute("UPDATE campaigns SET rule = 'easl' WHERE rule IN ('best', 'threshold')")
    op.execute("ALTER TABLE campaigns DROP best_items, DROP threshold")
