"""The language of annotators' pages."""

from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Campaigns of before speak to each annotator as their browser asks for."""
    op.execute("ALTER TABLE campaigns ADD language text NOT NULL DEFAULT 'browser'")


def downgrade() -> None:
    """In English again."""
    op.execute("ALTER TABLE campaigns DROP language")
