"""Indexes that find due calls to platforms, however many wait for a later time."""

from alembic import op

revision = "0026_due_server_calls"
down_revision = "0025_unfinished_imports"


def upgrade() -> None:
    """Replace the index of open calls by one of prepared calls and one of calls that are being made."""
    op.execute("DROP INDEX server_calls_open_idx")
    op.execute("""
        CREATE INDEX server_calls_prepared_idx
        ON server_calls (campaign_id, coalesce(due_at, '-infinity'::timestamptz), id) WHERE state = 'prepared'
    """)
    op.execute("""
        CREATE INDEX server_calls_sending_idx ON server_calls (campaign_id, sending_at) WHERE state = 'sending'
    """)


def downgrade() -> None:
    """Put the former index back."""
    op.execute("DROP INDEX server_calls_prepared_idx")
    op.execute("DROP INDEX server_calls_sending_idx")
    op.execute("""
        CREATE INDEX server_calls_open_idx ON server_calls (campaign_id, due_at)
        WHERE state IN ('prepared', 'sending')
    """)
