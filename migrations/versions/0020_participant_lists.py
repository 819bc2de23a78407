"""Lists of the people who may take part in a campaign, or may not."""

from alembic import op

revision = "0020_participant_lists"
down_revision = "0018_withdrawals_and_leases"

CREATE_PARTICIPANT_LISTS = """
    CREATE TABLE participant_lists (
        campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        list text NOT NULL,
        person_hash bytea NOT NULL,
        worker_id text,
        added_at timestamptz NOT NULL,
        CONSTRAINT participant_lists_pkey PRIMARY KEY (campaign_id, list, person_hash),
        CONSTRAINT participant_lists_list_check CHECK (list IN ('allow', 'block'))
    )
"""


def upgrade() -> None:
    """Add the table."""
    op.execute(CREATE_PARTICIPANT_LISTS)


def downgrade() -> None:
    """Drop the table."""
    op.execute("DROP TABLE participant_lists")
