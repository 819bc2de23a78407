"""Steps before the work: a welcome for all platforms, and consent."""

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Campaigns that are there let everybody in, as they did."""
    op.execute("""
        ALTER TABLE campaigns ADD welcome boolean NOT NULL DEFAULT false, ADD consent text NOT NULL DEFAULT '',
            ADD visit_version int NOT NULL DEFAULT 0
    """)
    op.execute("ALTER TABLE annotators ADD admitted int NOT NULL DEFAULT 0")
    op.execute("""
        CREATE TABLE visits (
            campaign_id bigint NOT NULL, annotator_id bigint NOT NULL, step text NOT NULL, version int NOT NULL,
            outcome text NOT NULL, said jsonb NOT NULL DEFAULT '{}', taken_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, annotator_id, step, version),
            CONSTRAINT visits_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
                REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
            CONSTRAINT visits_outcome_check CHECK (outcome IN ('passed', 'declined', 'failed', 'taken'))
        )
    """)
    op.execute("""
        CREATE TABLE consent_texts (
            campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE, version int NOT NULL,
            markdown text NOT NULL, sha256 text NOT NULL, since timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (campaign_id, version)
        )
    """)


def downgrade() -> None:
    """Who agreed to what is forgotten."""
    op.execute("DROP TABLE consent_texts, visits")
    op.execute("ALTER TABLE annotators DROP admitted")
    op.execute("ALTER TABLE campaigns DROP welcome, DROP consent, DROP visit_version")
