"""Erasures of annotators: their receipts, codes for withdrawals, and the state and decision that they leave."""

from alembic import op

revision = "0017_erasures"
down_revision = "0015_campaign_changes"

CREATE_TABLES = """
    CREATE TABLE erasures (
        campaign_id bigint NOT NULL,
        id bigint GENERATED ALWAYS AS IDENTITY,
        receipt text NOT NULL,
        annotator_id bigint NOT NULL,
        rule text NOT NULL,
        requested_by text NOT NULL,
        requested_at timestamptz NOT NULL,
        due_at timestamptz NOT NULL,
        identifiers_erased_at timestamptz,
        finished_at timestamptz,
        counts jsonb NOT NULL DEFAULT '{}',
        person_hashes bytea[] NOT NULL DEFAULT '{}',
        CONSTRAINT erasures_pkey PRIMARY KEY (campaign_id, id),
        CONSTRAINT erasures_receipt_key UNIQUE (receipt),
        CONSTRAINT erasures_campaign_id_annotator_id_rule_key UNIQUE (campaign_id, annotator_id, rule),
        CONSTRAINT erasures_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
            REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
        CONSTRAINT erasures_rule_check CHECK (rule IN ('anonymise', 'remove'))
    );
    CREATE INDEX erasures_open_idx ON erasures (due_at) WHERE finished_at IS NULL;
    CREATE TABLE withdrawal_codes (
        campaign_id bigint NOT NULL,
        annotator_id bigint NOT NULL,
        code_hash bytea NOT NULL,
        CONSTRAINT withdrawal_codes_pkey PRIMARY KEY (campaign_id, annotator_id),
        CONSTRAINT withdrawal_codes_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
            REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
    );
    CREATE INDEX withdrawal_codes_code_hash_idx ON withdrawal_codes (campaign_id, code_hash);
    CREATE TABLE retention_runs (
        campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
        kind text NOT NULL,
        ran_at timestamptz NOT NULL,
        finished_at timestamptz,
        counts jsonb NOT NULL,
        CONSTRAINT retention_runs_pkey PRIMARY KEY (campaign_id, kind, ran_at)
    )
"""

# 'erased' is a state of annotators who get no more HITs, and a decision by which none of their answers counts.
CHECKS = {
    ("annotators", "annotators_barred_check"): (
        "barred IN ('held', 'excluded', 'erased')",
        "barred IN ('held', 'excluded')",
    ),
    ("decisions", "decisions_kind_check"): (
        "kind IN ('exclude', 'include', 'withdraw', 'erased')",
        "kind IN ('exclude', 'include', 'withdraw')",
    ),
}

# A line of the audit log may lose the reason of a decision about an annotator, which is free text, and nothing else.
ALLOW_ERASURE_OF_REASONS = """
    DROP TRIGGER audit_log_only_grows ON audit_log;
    CREATE TRIGGER audit_log_only_grows BEFORE DELETE OR TRUNCATE ON audit_log
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
    CREATE TRIGGER audit_log_keeps_lines BEFORE UPDATE ON audit_log FOR EACH ROW WHEN (NOT coalesce(
        to_jsonb(NEW) - 'after' = to_jsonb(OLD) - 'after'
        AND OLD.action IN ('answers.exclude', 'answers.include', 'answers.hold', 'answers.release')
        AND OLD.after ? 'reason' AND NEW.after = jsonb_set(OLD.after, '{reason}', '"erased"'), false))
        EXECUTE FUNCTION refuse_change()
"""
REFUSE_ALL_CHANGES = """
    DROP TRIGGER audit_log_keeps_lines ON audit_log;
    DROP TRIGGER audit_log_only_grows ON audit_log;
    CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
"""


def upgrade() -> None:
    """Add the tables, the state, the decision, and the one change that the audit log allows."""
    for statement in f"{CREATE_TABLES};{ALLOW_ERASURE_OF_REASONS}".split(";"):
        op.execute(statement)
    for (table, name), (check, _) in CHECKS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} CHECK ({check})")


def downgrade() -> None:
    """Take them away again. Erased annotators become excluded ones; nothing that was erased comes back."""
    op.execute("UPDATE annotators SET barred = 'excluded' WHERE barred = 'erased'")
    op.execute("UPDATE decisions SET kind = 'exclude' WHERE kind = 'erased'")
    for (table, name), (_, check) in CHECKS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} CHECK ({check})")
    for statement in REFUSE_ALL_CHANGES.split(";"):
        op.execute(statement)
    op.execute("DROP TABLE erasures, withdrawal_codes, retention_runs")
