"""Items of a HIT that were marked N/A; and imported assignments are found by their id."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("hits", sa.Column("not_applicable", sa.ARRAY(sa.Integer()), nullable=True))
    marked = sa.text("not_applicable IS NOT NULL")
    op.create_index("hits_not_applicable_idx", "hits", ["campaign_id"], postgresql_where=marked)
    op.create_index(op.f("assignments_external_id_idx"), "assignments", ["external_id"])


def downgrade() -> None:
    op.drop_index(op.f("assignments_external_id_idx"), "assignments")
    op.drop_index("hits_not_applicable_idx", "hits")
    op.drop_column("hits", "not_applicable")
