"""Files of answers whose import has begun, so that an interrupted import is continued."""

from alembic import op

revision = "0025_unfinished_imports"
down_revision = "0024_server_calls"


def upgrade() -> None:
    """Add the table."""
    op.execute("""
        CREATE TABLE unfinished_imports (
            campaign_id bigint NOT NULL,
            name text NOT NULL,
            file bytea NOT NULL,
            options jsonb NOT NULL,
            started_at timestamptz NOT NULL,
            hits integer NOT NULL,
            CONSTRAINT unfinished_imports_pkey PRIMARY KEY (campaign_id),
            CONSTRAINT unfinished_imports_campaign_id_fkey FOREIGN KEY (campaign_id)
                REFERENCES campaigns (id) ON DELETE CASCADE
        )
    """)
    op.execute("ALTER TABLE unfinished_imports ALTER COLUMN file SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Take it away again; what was not stored yet is lost."""
    op.execute("DROP TABLE unfinished_imports")
