"""Items that every HIT of a campaign shows."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """So far there are none."""
    op.execute("ALTER TABLE campaigns ADD always_shown int[] NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    """Which they were stands in the settings of the design."""
    op.execute("ALTER TABLE campaigns DROP always_shown")
