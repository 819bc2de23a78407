"""When a session ends that nobody uses, who came by a link, and failures of browsers that are known."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("logins", sa.Column("idle_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE logins SET idle_at = expires_at")
    op.alter_column("logins", "idle_at", nullable=False)
    op.add_column("logins", sa.Column("by_link_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("login_failures", sa.Column("browser", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("login_failures", "browser")
    op.drop_column("logins", "by_link_at")
    op.drop_column("logins", "idle_at")
