"""Lists of the people who may take part in a campaign, or may not, and results of visits that quotas decide."""

from alembic import op

revision = "0020_participant_lists"
down_revision = "0019_payments"

CREATE_PARTICIPANT_LISTS = """
    CREATE TABLE participant_lists (
        campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        list text NOT NULL,
        person_hash bytea NOT NULL,
        worker_id text,
        added_at timestamptz NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY,
        CONSTRAINT participant_lists_pkey PRIMARY KEY (campaign_id, list, person_hash),
        CONSTRAINT participant_lists_list_check CHECK (list <> '')
    )
"""


# The quota of an answer is full, or the person left and lost the place.
ALLOW_OUTCOMES = """
    ALTER TABLE visits DROP CONSTRAINT visits_outcome_check,
        ADD CONSTRAINT visits_outcome_check CHECK (outcome IN ('passed', 'declined', 'failed', 'taken'{more}))
"""


def upgrade() -> None:
    """Add the table and the outcomes."""
    op.execute(CREATE_PARTICIPANT_LISTS)
    op.execute(ALLOW_OUTCOMES.format(more=", 'full', 'lapsed'"))


def downgrade() -> None:
    """Drop the table, and let people without a place be screened out."""
    op.execute("DROP TABLE participant_lists")
    op.execute("UPDATE visits SET outcome = 'failed' WHERE outcome IN ('full', 'lapsed')")
    op.execute(ALLOW_OUTCOMES.format(more=""))
