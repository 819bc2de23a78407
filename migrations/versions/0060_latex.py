"""Whether formulas in LaTeX are typeset."""

from alembic import op

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    """So far they are shown as they are written."""
    op.execute("ALTER TABLE campaigns ADD latex boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    """Formulas are shown as they are written again."""
    op.execute("ALTER TABLE campaigns DROP latex")
