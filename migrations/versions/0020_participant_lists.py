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

CREATE_INDEX_OF_PEOPLE = "CREATE INDEX participant_lists_person_idx ON participant_lists (campaign_id, person_hash)"

CREATE_INDEX_OF_PLACES = """
    CREATE INDEX visits_passed_questions_idx ON visits (campaign_id) WHERE step = 'questions' AND outcome = 'passed'
"""

# The quota of an answer is full, or the person left and lost the place.
ALLOW_OUTCOMES = """
    ALTER TABLE visits DROP CONSTRAINT visits_outcome_check,
        ADD CONSTRAINT visits_outcome_check CHECK (outcome IN ('passed', 'declined', 'failed', 'taken'{more}))
"""


def upgrade() -> None:
    """Add the table, the outcomes and the indexes."""
    op.execute(CREATE_PARTICIPANT_LISTS)
    op.execute(CREATE_INDEX_OF_PEOPLE)
    op.execute(CREATE_INDEX_OF_PLACES)
    op.execute(ALLOW_OUTCOMES.format(more=", 'full', 'lapsed'"))


def downgrade() -> None:
    """Drop the table, and let people without a place be screened out."""
    op.execute("DROP TABLE participant_lists")
    op.execute("DROP INDEX visits_passed_questions_idx")
    op.execute("UPDATE visits SET outcome = 'failed' WHERE outcome IN ('full', 'lapsed')")
    op.execute(ALLOW_OUTCOMES.format(more=""))
