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
    """Rehearsals are deleted: without the mark, people could come into them."""
    # Of the tables below a campaign, only this one has no foreign key.
    op.execute("DELETE FROM posteriors WHERE campaign_id IN (SELECT id FROM campaigns WHERE rehearsal_of IS NOT NULL)")
    op.execute("DELETE FROM campaigns WHERE rehearsal_of IS NOT NULL")
    op.execute("ALTER TABLE campaigns DROP tried_at, DROP rehearsal_of")
