"""Gold and attention items among the items of a HIT."""

from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE campaigns
        ADD checks_percent double precision,
        ADD has_checks boolean NOT NULL DEFAULT false
    """)
    op.execute("""
        CREATE TABLE check_items (
            campaign_id bigint NOT NULL CONSTRAINT check_items_campaign_id_fkey
                REFERENCES campaigns (id) ON DELETE CASCADE,
            number integer NOT NULL,
            external_id text NOT NULL,
            kind text NOT NULL CONSTRAINT check_items_kind_check CHECK (kind IN ('gold', 'attention')),
            shown text NOT NULL,
            expected jsonb NOT NULL,
            PRIMARY KEY (campaign_id, number),
            CONSTRAINT check_items_campaign_id_external_id_key UNIQUE (campaign_id, external_id)
        )
    """)
    op.execute("""
        CREATE TABLE hit_checks (
            campaign_id bigint NOT NULL,
            hit_id bigint NOT NULL,
            place integer NOT NULL,
            check_number integer NOT NULL,
            number integer NOT NULL,
            PRIMARY KEY (campaign_id, hit_id, place),
            CONSTRAINT hit_checks_hit_id_fkey FOREIGN KEY (campaign_id, hit_id)
                REFERENCES hits (campaign_id, id) ON DELETE CASCADE
        )
    """)
    op.execute("""
        CREATE TABLE check_answers (
            campaign_id bigint NOT NULL,
            hit_id bigint NOT NULL,
            check_number integer NOT NULL,
            annotator_id bigint NOT NULL,
            value double precision NOT NULL,
            answered_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, hit_id, check_number),
            CONSTRAINT check_answers_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
                REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
            CONSTRAINT check_answers_hit_id_fkey FOREIGN KEY (campaign_id, hit_id)
                REFERENCES hits (campaign_id, id) ON DELETE CASCADE
        )
    """)
    op.execute("CREATE INDEX check_answers_annotator_id_idx ON check_answers (campaign_id, annotator_id)")


def downgrade() -> None:
    op.execute("DROP TABLE check_answers, hit_checks, check_items")
    op.execute("ALTER TABLE campaigns DROP checks_percent, DROP has_checks")
