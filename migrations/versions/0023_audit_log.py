"""The audit log, which only grows."""

from alembic import op

revision = "0023"
down_revision = "0022"

APPEND_ONLY = """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'lines of % are neither changed nor taken out', TG_TABLE_NAME USING ERRCODE = '42501';
    END $$
"""


def upgrade() -> None:
    op.execute("""
        CREATE TABLE audit_log (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            noted_at timestamptz DEFAULT now() NOT NULL,
            who text NOT NULL,
            way text NOT NULL CONSTRAINT audit_log_way_check CHECK (way IN ('page', 'api', 'command', 'server')),
            campaign_id bigint,
            campaign text,
            action text NOT NULL,
            about text DEFAULT '' NOT NULL,
            before jsonb,
            after jsonb
        )
    """)
    op.execute("CREATE INDEX audit_log_noted_at_idx ON audit_log (noted_at)")
    op.execute("CREATE INDEX audit_log_campaign_id_idx ON audit_log (campaign_id, id)")
    op.execute(APPEND_ONLY)
    op.execute("""
        CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """)


def downgrade() -> None:
    op.execute("DROP TABLE audit_log")
    op.execute("DROP FUNCTION refuse_change")
