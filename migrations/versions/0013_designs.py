"""Settings of designs, and of how many items their answers say something."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """What there is asks by sliders."""
    op.execute("""
        ALTER TABLE campaigns
        ADD design_settings jsonb NOT NULL DEFAULT '{}',
        ADD fewest_items int NOT NULL DEFAULT 1,
        DROP CONSTRAINT campaigns_items_per_hit_check,
        ADD CONSTRAINT campaigns_items_per_hit_check CHECK (items_per_hit BETWEEN 1 AND 10),
        ADD CONSTRAINT campaigns_fewest_items_check CHECK (fewest_items BETWEEN 1 AND items_per_hit)
    """)


def downgrade() -> None:
    """Campaigns that ask about one item at a time are kept as they are: the rule holds for new ones."""
    op.execute("""
        ALTER TABLE campaigns
        DROP design_settings, DROP fewest_items,
        DROP CONSTRAINT campaigns_items_per_hit_check,
        ADD CONSTRAINT campaigns_items_per_hit_check CHECK (items_per_hit BETWEEN 2 AND 10) NOT VALID
    """)
