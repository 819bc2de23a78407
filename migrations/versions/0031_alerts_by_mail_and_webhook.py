"""Alerts go out by mail and webhook; silence can be one."""

from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE campaigns
            ADD COLUMN alert_emails text[] DEFAULT '{}' NOT NULL,
            ADD COLUMN alert_webhook text,
            ADD COLUMN alert_quiet_minutes integer
    """)
    op.execute("""
        CREATE TABLE alert_messages (
            campaign_id bigint NOT NULL,
            alert_id bigint NOT NULL,
            way text NOT NULL CONSTRAINT alert_messages_way_check CHECK (way IN ('email', 'webhook')),
            tries integer DEFAULT 0 NOT NULL,
            next_try_at timestamptz DEFAULT now() NOT NULL,
            sent_at timestamptz,
            problem text,
            CONSTRAINT alert_messages_pkey PRIMARY KEY (campaign_id, alert_id, way),
            CONSTRAINT alert_messages_alert_id_fkey FOREIGN KEY (campaign_id, alert_id)
                REFERENCES alerts (campaign_id, id) ON DELETE CASCADE
        )
    """)
    op.execute("CREATE INDEX alert_messages_due_idx ON alert_messages (next_try_at) WHERE sent_at IS NULL")


def downgrade() -> None:
    op.execute("DROP TABLE alert_messages")
    op.execute("ALTER TABLE campaigns DROP alert_emails, DROP alert_webhook, DROP alert_quiet_minutes")
