"""When a campaign knows enough, and what happens then."""

from alembic import op

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    """Campaigns of before have no goal."""
    op.execute("""
        ALTER TABLE campaigns
        ADD goal text NOT NULL DEFAULT 'none',
        ADD goal_percent int NOT NULL DEFAULT 95,
        ADD goal_within double precision NOT NULL DEFAULT 5,
        ADD goal_width double precision NOT NULL DEFAULT 10,
        ADD goal_correlation double precision NOT NULL DEFAULT 0.9,
        ADD when_reached text NOT NULL DEFAULT 'tell',
        ADD goal_reached text
    """)


def downgrade() -> None:
    """Campaigns go on until they have all that is wanted."""
    op.execute("""
        ALTER TABLE campaigns DROP goal, DROP goal_percent, DROP goal_within, DROP goal_width, DROP goal_correlation,
        DROP when_reached, DROP goal_reached
    """)
