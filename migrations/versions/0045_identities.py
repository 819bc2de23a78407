"""Who a researcher is to a provider of logins."""

from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    """Nobody has come by one yet."""
    op.execute("""
        CREATE TABLE identities (
            issuer text NOT NULL,
            subject text NOT NULL,
            user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
            connected_at timestamptz NOT NULL,
            PRIMARY KEY (issuer, subject),
            UNIQUE (issuer, user_id)
        )
    """)
    op.execute("CREATE INDEX identities_user_id_idx ON identities (user_id)")


def downgrade() -> None:
    """Researchers log in by password or login link."""
    op.execute("DROP TABLE identities")
