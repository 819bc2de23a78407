"""Who may come: whether the link is open, its passphrase, and links of people's own."""

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Links stay open."""
    op.execute("""
        ALTER TABLE campaigns ADD open_link boolean NOT NULL DEFAULT true, ADD passphrase text NOT NULL DEFAULT ''
    """)
    op.execute("""
        CREATE TABLE personal_links (
            campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE, number int NOT NULL,
            name text NOT NULL, link text NOT NULL, added_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, number),
            CONSTRAINT personal_links_campaign_id_link_key UNIQUE (campaign_id, link),
            CONSTRAINT personal_links_campaign_id_name_key UNIQUE (campaign_id, name)
        )
    """)


def downgrade() -> None:
    """Whoever had a link of their own has none any more."""
    op.execute("DROP TABLE personal_links")
    op.execute("ALTER TABLE campaigns DROP open_link, DROP passphrase")
