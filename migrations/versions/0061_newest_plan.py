"""What the last plan found, so that a launch can say it again."""

from alembic import op

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    """Nothing is known of plans that were made before."""
    op.execute("ALTER TABLE campaigns ADD COLUMN newest_plan jsonb")


def downgrade() -> None:
    """Plans can be made again."""
    op.execute("ALTER TABLE campaigns DROP COLUMN newest_plan")
