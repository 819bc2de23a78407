"""Rehearsals: copies of a campaign that a made-up crowd answers. And when a draft was tried."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """So far no campaign is one, and of no draft is known that it was tried."""
    op.execute("""
        ALTER TABLE campaigns ADD rehearsal_of bigint UNIQUE REFERENCES campaigns (id) ON DELETE CASCADE,
            ADD tried_at timestamptz
    """)


def downgrade() -> None:
    """Rehearsals stay, and look like any campaign that a made-up crowd answered."""
    op.execute("ALTER TABLE campaigns DROP tried_at, DROP rehearsal_of")
