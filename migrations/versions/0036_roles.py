"""Roles of researchers."""

from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Whoever was there could do everything, so they are owners."""
    op.execute("ALTER TABLE users ADD role text NOT NULL DEFAULT 'owner'")
    op.execute("ALTER TABLE users ALTER role SET DEFAULT 'viewer'")
    op.execute("ALTER TABLE users ADD CONSTRAINT users_role_check CHECK (role IN ('viewer', 'manager', 'owner'))")


def downgrade() -> None:
    """Back to researchers who may all do everything."""
    op.execute("ALTER TABLE users DROP role")
