"""The schema of Easel 0.2.0. Databases at the last revision of Easel 0.1 have it already: see `migrations/env.py`."""

from pathlib import Path

from alembic import op

revision = "0001_initial"
down_revision = None


def upgrade() -> None:
    """Make everything; several statements at once are for asyncpg, since SQLAlchemy prepares each."""
    statements = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    op.get_bind().connection.run_async(lambda driver: driver.execute(statements))


def downgrade() -> None:
    """Drop everything with all data; views and triggers go with their tables."""
    op.execute("""
        DROP TABLE
            installation, users, campaigns, alerts, alert_messages, annotators, api_tokens, assignments,
            audit_log, campaign_links, campaign_members, check_items, check_reports, consent_texts, crowds,
            experiment_arms, findings, hits, check_answers, hit_checks, identities, invitations, items,
            login_failures, logins, media, media_pieces, media_reports, one_time_logins, outputs,
            personal_links, planned_hits, posteriors, responses, decisions, segments, states,
            visit_allowances, visit_refusals, visits
        CASCADE
    """)
    op.execute("DROP SEQUENCE record_seq")
    op.execute("DROP FUNCTION exclusions, refuse_change, delete_record")
