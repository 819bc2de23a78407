"""From where an API token was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_tokens", sa.Column("last_used_from", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("api_tokens", "last_used_from")
