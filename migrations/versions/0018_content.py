"""What items are, and the files that they name."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """So far all items are text."""
    op.execute("""
        ALTER TABLE campaigns
            ADD content text NOT NULL DEFAULT 'text',
            ADD source_column text,
            ADD reference_column text,
            ADD differences text NOT NULL DEFAULT 'none',
            ADD https_media boolean NOT NULL DEFAULT false
    """)
    op.execute("""
        CREATE TABLE media (
            campaign_id bigint NOT NULL CONSTRAINT media_campaign_id_fkey REFERENCES campaigns ON DELETE CASCADE,
            number int NOT NULL,
            name text NOT NULL,
            address uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT media_address_key UNIQUE,
            content_type text NOT NULL,
            size bigint NOT NULL,
            CONSTRAINT media_pkey PRIMARY KEY (campaign_id, number),
            CONSTRAINT media_campaign_id_name_key UNIQUE (campaign_id, name)
        )
    """)
    op.execute("""
        CREATE TABLE media_pieces (
            campaign_id bigint NOT NULL,
            number int NOT NULL,
            place int NOT NULL,
            data bytea NOT NULL,
            CONSTRAINT media_pieces_pkey PRIMARY KEY (campaign_id, number, place),
            CONSTRAINT media_pieces_number_fkey
                FOREIGN KEY (campaign_id, number) REFERENCES media (campaign_id, number) ON DELETE CASCADE
        )
    """)
    op.execute("ALTER TABLE media_pieces ALTER data SET STORAGE EXTERNAL")
    op.execute("""
        CREATE TABLE media_reports (
            campaign_id bigint NOT NULL,
            item int NOT NULL,
            annotator_id bigint NOT NULL,
            reported_at timestamptz NOT NULL,
            CONSTRAINT media_reports_pkey PRIMARY KEY (campaign_id, item, annotator_id),
            CONSTRAINT media_reports_annotator_id_fkey
                FOREIGN KEY (campaign_id, annotator_id) REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
        )
    """)
    op.execute("CREATE INDEX media_reports_annotator_id_idx ON media_reports (campaign_id, annotator_id)")


def downgrade() -> None:
    """The files go: there is no other place for them."""
    op.execute("DROP TABLE media_reports, media_pieces, media")
    op.execute("""
        ALTER TABLE campaigns
            DROP content, DROP source_column, DROP reference_column, DROP differences, DROP https_media
    """)
