"""Training and qualification before the work."""

from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE campaigns ADD training text NOT NULL DEFAULT '', ADD qualification text NOT NULL DEFAULT '',
            ADD pass_percent int NOT NULL DEFAULT 80, ADD qualification_tries int NOT NULL DEFAULT 1
    """)


def downgrade() -> None:
    op.execute("""
        ALTER TABLE campaigns DROP training, DROP qualification, DROP pass_percent, DROP qualification_tries
    """)
