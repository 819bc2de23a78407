"""Tables of work that one process at a time does, instead of locks of sessions, and of judgments counted so far."""

from alembic import op

revision = "0021_work_and_progress"
down_revision = "0020_participant_lists"


def upgrade() -> None:
    """Add the tables."""
    op.execute("""
        CREATE TABLE exclusive_work (
            work text NOT NULL,
            holder text NOT NULL,
            deadline timestamptz NOT NULL,
            CONSTRAINT exclusive_work_pkey PRIMARY KEY (work)
        )
    """)
    op.execute("""
        CREATE TABLE counted_judgments (
            campaign_id bigint NOT NULL,
            revision integer NOT NULL,
            decided bigint NOT NULL,
            always_shown integer[] NOT NULL,
            server_started timestamptz NOT NULL,
            watermark text NOT NULL,
            judgments bigint NOT NULL,
            CONSTRAINT counted_judgments_pkey PRIMARY KEY (campaign_id),
            CONSTRAINT counted_judgments_campaign_id_fkey FOREIGN KEY (campaign_id)
                REFERENCES campaigns (id) ON DELETE CASCADE
        )
    """)


def downgrade() -> None:
    """Take them away again."""
    op.execute("DROP TABLE exclusive_work, counted_judgments")
