"""Campaigns can be archived; annotators have short names within their campaign."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("archived_at", sa.TIMESTAMP(timezone=True), nullable=True))
    op.create_check_constraint(
        op.f("campaigns_archived_check"), "campaigns", "archived_at IS NULL OR status <> 'running'"
    )
    op.execute("""
        CREATE VIEW named_annotators AS
        SELECT id, campaign_id, pseudonym, 'A' || row_number() OVER (PARTITION BY campaign_id ORDER BY id) AS name
        FROM annotators
    """)


def downgrade() -> None:
    op.execute("DROP VIEW named_annotators")
    op.drop_constraint(op.f("campaigns_archived_check"), "campaigns", type_="check")
    op.drop_column("campaigns", "archived_at")
