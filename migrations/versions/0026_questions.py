"""What annotators are asked once, before they begin."""

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.execute("ALTER TABLE campaigns ADD questions text[] NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    op.execute("ALTER TABLE campaigns DROP questions")
