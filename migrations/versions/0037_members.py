"""Members of campaigns; scopes of API tokens."""

from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Whoever created a campaign owns it, as far as the log knows; roles for the whole server and tokens stay."""
    op.execute("ALTER TABLE users ALTER role SET DEFAULT 'guest', DROP CONSTRAINT users_role_check")
    op.execute("""
        ALTER TABLE users ADD CONSTRAINT users_role_check
        CHECK (role IN ('guest', 'member', 'viewer', 'manager', 'owner'))
    """)
    op.execute("""
        CREATE TABLE campaign_members (
            campaign_id bigint NOT NULL CONSTRAINT campaign_members_campaign_id_fkey
                REFERENCES campaigns (id) ON DELETE CASCADE,
            user_id bigint NOT NULL CONSTRAINT campaign_members_user_id_fkey
                REFERENCES users (id) ON DELETE CASCADE,
            role text NOT NULL CONSTRAINT campaign_members_role_check CHECK (role IN ('viewer', 'manager', 'owner')),
            added_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, user_id)
        )
    """)
    op.execute("CREATE INDEX campaign_members_user_id_idx ON campaign_members (user_id)")
    op.execute("""
        INSERT INTO campaign_members (campaign_id, user_id, role, added_at)
        SELECT DISTINCT c.id, u.id, 'owner', c.created_at FROM campaigns c
        JOIN audit_log l ON l.campaign_id = c.id AND l.action IN ('campaign.created', 'campaign.copied')
            AND l.way IN ('page', 'api')
        JOIN users u ON u.name = l.who AND u.created_at <= l.noted_at
        WHERE c.rehearsal_of IS NULL
    """)
    op.execute("""
        ALTER TABLE api_tokens ADD scopes text[] NOT NULL DEFAULT '{read,collect,manage}',
        ADD campaign_id bigint CONSTRAINT api_tokens_campaign_id_fkey REFERENCES campaigns (id) ON DELETE CASCADE
    """)
    op.execute("ALTER TABLE api_tokens ALTER scopes DROP DEFAULT")
    op.execute("CREATE INDEX api_tokens_campaign_id_idx ON api_tokens (campaign_id)")


def downgrade() -> None:
    """Back to roles for the whole server: whoever had none is a viewer, and no token has less than its owner."""
    op.execute("DROP TABLE campaign_members")
    op.execute("DELETE FROM api_tokens WHERE campaign_id IS NOT NULL OR NOT scopes @> '{read,collect,manage}'")
    op.execute("ALTER TABLE api_tokens DROP scopes, DROP campaign_id")
    op.execute("DELETE FROM users WHERE role IN ('guest', 'member')")
    op.execute("ALTER TABLE users ALTER role SET DEFAULT 'viewer', DROP CONSTRAINT users_role_check")
    op.execute("ALTER TABLE users ADD CONSTRAINT users_role_check CHECK (role IN ('viewer', 'manager', 'owner'))")
