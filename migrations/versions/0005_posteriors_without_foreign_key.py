"""Posteriors follow from items: a launch need not look each item up again."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_constraint(op.f("posteriors_campaign_id_fkey"), "posteriors", type_="foreignkey")


def downgrade() -> None:
    op.create_foreign_key(
        op.f("posteriors_campaign_id_fkey"),
        "posteriors",
        "items",
        ["campaign_id", "number"],
        ["campaign_id", "number"],
        ondelete="CASCADE",
    )
