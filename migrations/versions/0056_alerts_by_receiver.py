"""Alerts by receiver, crowds that a process leads, and visits that were turned away."""

from alembic import op

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    """A mail that still waits goes to each address of its campaign by itself, with the tries that it had."""
    op.execute("ALTER TABLE alert_messages ADD COLUMN receiver text NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE alert_messages DROP CONSTRAINT alert_messages_pkey")
    op.execute("ALTER TABLE alert_messages ADD PRIMARY KEY (campaign_id, alert_id, way, receiver)")
    op.execute("""
        INSERT INTO alert_messages (campaign_id, alert_id, way, receiver, tries, next_try_at, problem)
        SELECT DISTINCT m.campaign_id, m.alert_id, m.way, address, m.tries, m.next_try_at, m.problem
        FROM alert_messages m JOIN campaigns c ON c.id = m.campaign_id, unnest(c.alert_emails) AS address
        WHERE m.way = 'email' AND m.sent_at IS NULL
    """)
    op.execute("DELETE FROM alert_messages WHERE way = 'email' AND sent_at IS NULL AND receiver = ''")
    op.execute("""
        CREATE TABLE crowds (
            campaign_id bigint PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
            described jsonb NOT NULL,
            led_until timestamptz NOT NULL
        )
    """)
    op.execute("""
        ALTER TABLE campaigns ADD COLUMN people_per_address integer,
        ADD CONSTRAINT campaigns_people_per_address_check CHECK (people_per_address >= 1)
    """)
    op.execute("""
        CREATE TABLE visit_refusals (
            campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
            day date NOT NULL,
            refused integer NOT NULL,
            PRIMARY KEY (campaign_id, day)
        )
    """)


def downgrade() -> None:
    """A mail that still waits goes to all addresses at once again."""
    op.execute("DROP TABLE visit_refusals")
    op.execute("ALTER TABLE campaigns DROP COLUMN people_per_address")
    op.execute("DROP TABLE crowds")
    op.execute("""
        INSERT INTO alert_messages (campaign_id, alert_id, way, tries, next_try_at, sent_at, problem)
        SELECT campaign_id, alert_id, way, min(tries), min(next_try_at),
               CASE WHEN bool_and(sent_at IS NOT NULL) THEN max(sent_at) END, min(problem)
        FROM alert_messages WHERE receiver <> '' GROUP BY 1, 2, 3
    """)
    op.execute("DELETE FROM alert_messages WHERE receiver <> ''")
    op.execute("ALTER TABLE alert_messages DROP CONSTRAINT alert_messages_pkey")
    op.execute("ALTER TABLE alert_messages DROP COLUMN receiver")
    op.execute("ALTER TABLE alert_messages ADD PRIMARY KEY (campaign_id, alert_id, way)")
