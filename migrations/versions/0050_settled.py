"""Items that are settled, and are asked about no more."""

from alembic import op

revision = "0050"
down_revision = "0049"

CURRENT_POSTERIORS = """
    CREATE OR REPLACE VIEW current_posteriors AS
    SELECT p.campaign_id, p.revision, p.criterion, p.subject AS number, p.state, p.score, p.variance, p.judgments,
           p.unjudged{more}
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision
"""


def upgrade() -> None:
    """No item is settled before the next look at its campaign."""
    op.execute("ALTER TABLE campaigns ADD releases int NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE posteriors ADD settled boolean NOT NULL DEFAULT false")
    op.execute(CURRENT_POSTERIORS.format(more=", p.settled"))


def downgrade() -> None:
    """Settled items are asked about again."""
    op.execute("DROP VIEW current_posteriors")
    op.execute(CURRENT_POSTERIORS.format(more=""))
    op.execute("ALTER TABLE posteriors DROP settled")
    op.execute("ALTER TABLE campaigns DROP releases")
    op.execute("UPDATE campaigns SET when_reached = 'tell' WHERE when_reached = 'release'")
