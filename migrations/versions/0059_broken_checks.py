"""Reports that the file of a gold or attention item does not load are kept, too; links of platforms may follow the
open link.
"""

from alembic import op

revision = "0059"
down_revision = "0056"


def upgrade() -> None:
    """Nobody has reported one so far.

    Campaigns that people can come to by the open link, without a passphrase, and drafts follow the new rule: once the
    link is closed or a passphrase set, links of platforms are closed, too. Campaigns that were launched with either
    keep their links of platforms open, as they were.
    """
    op.execute("""
        CREATE TABLE check_reports (
            campaign_id bigint NOT NULL,
            check_number integer NOT NULL,
            annotator_id bigint NOT NULL,
            reported_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, check_number, annotator_id),
            CONSTRAINT check_reports_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
                REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
        )
    """)
    op.execute("CREATE INDEX check_reports_annotator_id_idx ON check_reports (campaign_id, annotator_id)")
    op.execute("ALTER TABLE campaigns ALTER open_platforms DROP NOT NULL, ALTER open_platforms DROP DEFAULT")
    op.execute("""
        UPDATE campaigns SET open_platforms = NULL
        WHERE open_platforms AND (status = 'draft' OR (open_link AND passphrase = ''))
    """)


def downgrade() -> None:
    """Reports are forgotten; links of platforms are open or closed as they are now."""
    op.execute("DROP TABLE check_reports")
    op.execute("UPDATE campaigns SET open_platforms = open_link AND passphrase = '' WHERE open_platforms IS NULL")
    op.execute("ALTER TABLE campaigns ALTER open_platforms SET NOT NULL, ALTER open_platforms SET DEFAULT true")
