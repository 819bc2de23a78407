"""What was said of a check when its HIT was changed, so that it is shown as it was left."""

from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    """What people said first still counts."""
    op.execute("ALTER TABLE check_answers ADD COLUMN changed_to double precision")


def downgrade() -> None:
    """Nothing reads it but the page on which an answer is changed."""
    op.execute("ALTER TABLE check_answers DROP COLUMN changed_to")
