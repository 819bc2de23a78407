"""Who holds an item is found by an index; only who wants all open HITs of a campaign can go through all of them."""

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.execute("DROP INDEX hits_open_idx, hits_one_open_idx")
    op.execute("""
        CREATE INDEX hits_open_idx ON hits (campaign_id, expires_at) WHERE closed_at IS NULL AND leader IS NOT NULL
    """)
    op.execute("""
        CREATE UNIQUE INDEX hits_one_open_idx ON hits (campaign_id, assignment_id)
        WHERE closed_at IS NULL AND assignment_id IS NOT NULL
    """)
    op.execute("""
        CREATE INDEX hits_held_idx ON hits USING gin ((ARRAY[campaign_id]), items) WITH (fastupdate = off)
        WHERE num_nonnulls(closed_at) = 0
    """)


def downgrade() -> None:
    op.execute("DROP INDEX hits_held_idx, hits_open_idx, hits_one_open_idx")
    op.execute("CREATE INDEX hits_open_idx ON hits (campaign_id, expires_at) WHERE closed_at IS NULL")
    op.execute("CREATE UNIQUE INDEX hits_one_open_idx ON hits (campaign_id, assignment_id) WHERE closed_at IS NULL")
