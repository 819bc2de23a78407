"""What the law easl-aware has learned."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "learned",
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("learned_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "kind", "number", name=op.f("learned_pkey")),
    )


def downgrade() -> None:
    op.drop_table("learned")
