"""Alerts: what whoever runs a campaign should hear of."""

from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE alerts (
            campaign_id bigint NOT NULL CONSTRAINT alerts_campaign_id_fkey REFERENCES campaigns (id) ON DELETE CASCADE,
            id bigint GENERATED ALWAYS AS IDENTITY,
            kind text NOT NULL,
            occasion text NOT NULL,
            about text NOT NULL,
            because text DEFAULT '' NOT NULL,
            raised_at timestamptz DEFAULT now() NOT NULL,
            seen_at timestamptz,
            seen_by text,
            CONSTRAINT alerts_pkey PRIMARY KEY (campaign_id, id),
            CONSTRAINT alerts_campaign_id_kind_occasion_key UNIQUE (campaign_id, kind, occasion)
        )
    """)


def downgrade() -> None:
    op.execute("DROP TABLE alerts")
