"""What a HIT takes and pays, in the researcher's words."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("minutes_per_hit", sa.Double(), nullable=True))
    op.add_column("campaigns", sa.Column("pay", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("campaigns", "pay")
    op.drop_column("campaigns", "minutes_per_hit")
