"""Rules on annotators: how a campaign is watched, what was found, and who is held."""

from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE campaigns
        ADD quality_preset text NOT NULL DEFAULT 'watch',
        ADD quality_rules text[] NOT NULL DEFAULT '{}',
        ADD false_alarms double precision NOT NULL DEFAULT 2
    """)
    op.execute("ALTER TABLE annotators ADD held_at timestamptz")
    op.execute("""
        CREATE TABLE findings (
            campaign_id bigint NOT NULL CONSTRAINT findings_campaign_id_fkey
                REFERENCES campaigns (id) ON DELETE CASCADE,
            id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
            annotator_id bigint NOT NULL,
            rule text NOT NULL,
            action text NOT NULL,
            seen jsonb NOT NULL,
            said text NOT NULL,
            found_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, id),
            CONSTRAINT findings_campaign_id_annotator_id_rule_action_key
                UNIQUE (campaign_id, annotator_id, rule, action),
            CONSTRAINT findings_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
                REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
        )
    """)


def downgrade() -> None:
    op.execute("DROP TABLE findings")
    op.execute("ALTER TABLE annotators DROP held_at")
    op.execute("ALTER TABLE campaigns DROP quality_preset, DROP quality_rules, DROP false_alarms")
