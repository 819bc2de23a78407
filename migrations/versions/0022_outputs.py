"""Outputs of systems that are files."""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """So far outputs are the same if their texts are, and only items could be reported."""
    op.execute("ALTER TABLE outputs ADD digest text")
    op.execute("ALTER TABLE media_reports ADD segment int NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE media_reports DROP CONSTRAINT media_reports_pkey")
    op.execute("""
        ALTER TABLE media_reports
            ADD CONSTRAINT media_reports_pkey PRIMARY KEY (campaign_id, item, segment, annotator_id)
    """)


def downgrade() -> None:
    """Of what somebody reported of several outputs of a system, one report stays."""
    op.execute("""
        DELETE FROM media_reports a USING media_reports b
        WHERE a.campaign_id = b.campaign_id AND a.item = b.item AND a.annotator_id = b.annotator_id
        AND a.segment > b.segment
    """)
    op.execute("ALTER TABLE media_reports DROP CONSTRAINT media_reports_pkey")
    op.execute("""
        ALTER TABLE media_reports ADD CONSTRAINT media_reports_pkey PRIMARY KEY (campaign_id, item, annotator_id)
    """)
    op.execute("ALTER TABLE media_reports DROP segment")
    op.execute("ALTER TABLE outputs DROP digest")
