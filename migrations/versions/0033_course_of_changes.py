"""How many answers a campaign had when something was changed, for the marks on its course."""

from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.execute("ALTER TABLE audit_log ADD COLUMN answers bigint")


def downgrade() -> None:
    op.execute("ALTER TABLE audit_log DROP COLUMN answers")
