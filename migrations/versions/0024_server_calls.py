"""Calls that tell the annotators' platform how a visit ended."""

from alembic import op

revision = "0024_server_calls"
down_revision = "0023_condition_rows"

STATEMENTS = (
    """
    CREATE TABLE server_calls (
        campaign_id bigint NOT NULL,
        id bigint GENERATED ALWAYS AS IDENTITY,
        annotator_id bigint NOT NULL,
        assignment_id bigint NOT NULL,
        outcome text NOT NULL,
        state text DEFAULT 'prepared' NOT NULL,
        tries smallint DEFAULT 0 NOT NULL,
        due_at timestamptz,
        attempt text,
        sending_at timestamptz,
        settled_at timestamptz,
        problem text DEFAULT '' NOT NULL,
        created_at timestamptz DEFAULT now() NOT NULL,
        decided_by text,
        CONSTRAINT server_calls_pkey PRIMARY KEY (campaign_id, id),
        CONSTRAINT server_calls_campaign_id_assignment_id_outcome_key UNIQUE (campaign_id, assignment_id, outcome),
        CONSTRAINT server_calls_assignment_id_fkey FOREIGN KEY (campaign_id, assignment_id)
            REFERENCES assignments (campaign_id, id) ON DELETE CASCADE,
        CONSTRAINT server_calls_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
            REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
        CONSTRAINT server_calls_state_check
            CHECK (state IN ('prepared', 'sending', 'sent', 'failed', 'unknown', 'cancelled'))
    )
    """,
    "CREATE INDEX server_calls_annotator_id_idx ON server_calls (campaign_id, annotator_id)",
    """
    CREATE INDEX server_calls_open_idx ON server_calls (campaign_id, due_at) WHERE state IN ('prepared', 'sending')
    """,
)


def upgrade() -> None:
    """Add the table."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE server_calls")
