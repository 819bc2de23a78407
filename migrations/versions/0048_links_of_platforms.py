"""The links of platforms can be closed."""

from alembic import op

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    """They were open."""
    op.execute("ALTER TABLE campaigns ADD open_platforms boolean NOT NULL DEFAULT true")


def downgrade() -> None:
    """They are open again."""
    op.execute("ALTER TABLE campaigns DROP open_platforms")
