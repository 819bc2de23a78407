"""Systems and their outputs for segments: items that are shown as one of several texts."""

from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Campaigns that there are have no segments: what they show of an item is its own text."""
    op.execute("ALTER TABLE campaigns ADD segment_count int NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE hits ADD segment int, ADD shown_as int[]")
    op.execute("ALTER TABLE responses ADD segment int")
    op.execute("CREATE INDEX responses_segment_idx ON responses (campaign_id, segment) WHERE segment IS NOT NULL")
    op.execute("""
        CREATE TABLE segments (
            campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
            number int NOT NULL,
            external_id text NOT NULL,
            source text,
            reference text,
            PRIMARY KEY (campaign_id, number),
            UNIQUE (campaign_id, external_id)
        )
    """)
    op.execute("""
        CREATE TABLE outputs (
            campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
            segment int NOT NULL,
            item int NOT NULL,
            shown text NOT NULL,
            PRIMARY KEY (campaign_id, segment, item)
        )
    """)


def downgrade() -> None:
    """The systems stay as items, and what was answered about them; which outputs these were is forgotten."""
    op.execute("DROP TABLE outputs")
    op.execute("DROP TABLE segments")
    op.execute("ALTER TABLE responses DROP segment")
    op.execute("ALTER TABLE hits DROP segment, DROP shown_as")
    op.execute("ALTER TABLE campaigns DROP segment_count")
