"""Invitations and read-only links."""

from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE invitations (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            token_hash bytea NOT NULL CONSTRAINT invitations_token_hash_key UNIQUE,
            campaign_id bigint CONSTRAINT invitations_campaign_id_fkey REFERENCES campaigns (id) ON DELETE CASCADE,
            role text NOT NULL,
            words text NOT NULL,
            invited_by bigint CONSTRAINT invitations_invited_by_fkey REFERENCES users (id) ON DELETE CASCADE,
            created_at timestamptz NOT NULL,
            expires_at timestamptz NOT NULL
        )
    """)
    op.execute("CREATE INDEX invitations_campaign_id_idx ON invitations (campaign_id)")
    op.execute("CREATE INDEX invitations_invited_by_idx ON invitations (invited_by)")
    op.execute("""
        CREATE TABLE campaign_links (
            campaign_id bigint NOT NULL CONSTRAINT campaign_links_campaign_id_fkey
                REFERENCES campaigns (id) ON DELETE CASCADE,
            id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
            token_hash bytea NOT NULL CONSTRAINT campaign_links_token_hash_key UNIQUE,
            words text NOT NULL,
            made_by text NOT NULL,
            made_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, id)
        )
    """)


def downgrade() -> None:
    """Back to members who are added by an owner."""
    op.execute("DROP TABLE campaign_links, invitations")
