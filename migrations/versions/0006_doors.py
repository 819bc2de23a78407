"""How many new visits a public link still takes, and from where a HIT was leased that nobody has touched."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "visit_allowances",
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.LargeBinary(), nullable=False),
        sa.Column("full_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("visit_allowances_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "address", name=op.f("visit_allowances_pkey")),
    )
    op.create_index(op.f("visit_allowances_full_at_idx"), "visit_allowances", ["full_at"])
    op.add_column("hits", sa.Column("untouched_by", sa.LargeBinary(), nullable=True))
    op.create_index(
        "hits_untouched_idx",
        "hits",
        ["campaign_id", "expires_at", "untouched_by"],
        postgresql_where=sa.text("closed_at IS NULL AND untouched_by IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("hits_untouched_idx", table_name="hits")
    op.drop_column("hits", "untouched_by")
    op.drop_table("visit_allowances")
