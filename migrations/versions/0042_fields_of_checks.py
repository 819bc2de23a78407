"""Checks keep the columns that they were uploaded with, so that each can become an item again."""

from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """Of those that are there nobody knows them."""
    op.execute("ALTER TABLE check_items ADD fields json NOT NULL DEFAULT '{}'")
    op.execute("ALTER TABLE check_items ALTER fields DROP DEFAULT")


def downgrade() -> None:
    """They are forgotten."""
    op.execute("ALTER TABLE check_items DROP fields")
