"""Index of the calls to platforms that wait for a person, however many are settled."""

from alembic import op

revision = "0028_calls_to_decide"
down_revision = "0026_due_server_calls"


def upgrade() -> None:
    """Add the index."""
    op.execute("""
        CREATE INDEX server_calls_to_decide_idx ON server_calls (campaign_id, state)
        WHERE state IN ('failed', 'unknown')
    """)


def downgrade() -> None:
    """Take it away again."""
    op.execute("DROP INDEX server_calls_to_decide_idx")
