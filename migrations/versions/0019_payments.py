"""Money: connections to platforms' services, payments, and the services' submissions."""

from alembic import op

revision = "0019_payments"
down_revision = "0018_withdrawals_and_leases"

CREATE_TABLES = """
    CREATE TABLE payment_accounts (
        campaign_id BIGINT NOT NULL,
        platform TEXT NOT NULL,
        token BYTEA,
        token_variable TEXT,
        workspace TEXT DEFAULT '' NOT NULL,
        study TEXT DEFAULT '' NOT NULL,
        other_studies TEXT[] DEFAULT '{}' NOT NULL,
        currency TEXT NOT NULL,
        budget BIGINT NOT NULL,
        approves BOOLEAN DEFAULT false NOT NULL,
        hook_key TEXT NOT NULL,
        hook_secret BYTEA,
        send_through BIGINT DEFAULT '0' NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE,
        held_until TIMESTAMP WITH TIME ZONE,
        checked_at TIMESTAMP WITH TIME ZONE,
        problem TEXT DEFAULT '' NOT NULL,
        connected_by TEXT NOT NULL,
        connected_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT payment_accounts_pkey PRIMARY KEY (campaign_id),
        CONSTRAINT payment_accounts_one_token_check CHECK (token IS NULL OR token_variable IS NULL),
        CONSTRAINT payment_accounts_workspace_check
            CHECK (workspace <> '' OR (token IS NULL AND token_variable IS NULL)),
        CONSTRAINT payment_accounts_budget_check CHECK (budget >= 0),
        CONSTRAINT payment_accounts_campaign_id_fkey FOREIGN KEY(campaign_id)
            REFERENCES campaigns (id) ON DELETE CASCADE,
        CONSTRAINT payment_accounts_hook_key_key UNIQUE (hook_key)
    );
    CREATE INDEX payment_accounts_due_at_idx ON payment_accounts (due_at);
    CREATE TABLE payments (
        campaign_id BIGINT NOT NULL,
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        annotator_id BIGINT NOT NULL,
        submission TEXT NOT NULL,
        study TEXT NOT NULL,
        amount INTEGER NOT NULL,
        currency TEXT NOT NULL,
        reason TEXT NOT NULL,
        state TEXT DEFAULT 'prepared' NOT NULL,
        request_key TEXT NOT NULL,
        line INTEGER NOT NULL,
        batch TEXT,
        bulk_id TEXT,
        paid_before INTEGER,
        sending_at TIMESTAMP WITH TIME ZONE,
        settled_at TIMESTAMP WITH TIME ZONE,
        problem TEXT DEFAULT '' NOT NULL,
        looked_at TIMESTAMP WITH TIME ZONE,
        amounts_seen INTEGER[],
        created_by TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        decided_by TEXT,
        CONSTRAINT payments_pkey PRIMARY KEY (campaign_id, id),
        CONSTRAINT payments_campaign_id_request_key_line_key UNIQUE (campaign_id, request_key, line),
        CONSTRAINT payments_annotator_id_fkey FOREIGN KEY(campaign_id, annotator_id)
            REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
        CONSTRAINT payments_state_check
            CHECK (state IN ('prepared', 'sending', 'sent', 'failed', 'unknown', 'cancelled')),
        CONSTRAINT payments_amount_check CHECK (amount > 0)
    );
    CREATE INDEX payments_open_idx ON payments (campaign_id, state, id)
        WHERE state IN ('prepared', 'sending', 'unknown');
    CREATE INDEX payments_annotator_id_idx ON payments (campaign_id, annotator_id);
    CREATE INDEX payments_submission_idx ON payments (campaign_id, submission, amount);
    CREATE TABLE payment_calls (
        workspace TEXT NOT NULL,
        batch TEXT NOT NULL,
        held_until TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT payment_calls_pkey PRIMARY KEY (workspace)
    );
    CREATE TABLE submissions (
        campaign_id BIGINT NOT NULL,
        external_id TEXT NOT NULL,
        annotator_id BIGINT,
        study TEXT NOT NULL,
        status TEXT NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
        problem TEXT DEFAULT '' NOT NULL,
        CONSTRAINT submissions_pkey PRIMARY KEY (campaign_id, external_id),
        CONSTRAINT submissions_annotator_id_fkey FOREIGN KEY(campaign_id, annotator_id)
            REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
        CONSTRAINT submissions_campaign_id_fkey FOREIGN KEY(campaign_id)
            REFERENCES campaigns (id) ON DELETE CASCADE
    );
    CREATE INDEX submissions_annotator_id_idx ON submissions (campaign_id, annotator_id);
    CREATE TABLE service_notices (
        campaign_id BIGINT NOT NULL,
        event_id TEXT NOT NULL,
        received_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT service_notices_pkey PRIMARY KEY (campaign_id, event_id),
        CONSTRAINT service_notices_campaign_id_fkey FOREIGN KEY(campaign_id)
            REFERENCES campaigns (id) ON DELETE CASCADE
    )
"""


def upgrade() -> None:
    """Add the tables."""
    for statement in CREATE_TABLES.split(";"):
        op.execute(statement)


def downgrade() -> None:
    """Take them away again, with all that is known about payments."""
    op.execute("DROP TABLE payment_accounts, payments, payment_calls, submissions, service_notices")
