"""Items that annotators say they cannot judge: whether they may, why, and how many people have said so of each."""

from alembic import op

revision = "0015"
down_revision = "0014"

CURRENT_POSTERIORS = """
    CREATE VIEW current_posteriors AS
    SELECT p.campaign_id, p.revision, p.subject AS number, p.state, p.score, p.variance, p.judgments{more}
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision AND p.criterion = 0
"""

# What a new campaign begins with; drafts get it too, should they come to ask.
REASONS = "{I do not understand it,It is broken or incomplete,It is in another language,Another reason}"


def upgrade() -> None:
    """So far nobody was asked."""
    op.execute(f"""
        ALTER TABLE campaigns
        ADD cannot_be_judged boolean NOT NULL DEFAULT false,
        ADD unjudged_reasons text[] NOT NULL DEFAULT '{REASONS}',
        ADD unjudged_people int NOT NULL DEFAULT 2
    """)
    op.execute("ALTER TABLE campaigns ALTER unjudged_reasons SET DEFAULT '{}'")
    op.execute("ALTER TABLE posteriors ADD unjudged int NOT NULL DEFAULT 0")
    op.execute("DROP VIEW current_posteriors")
    op.execute(CURRENT_POSTERIORS.format(more=", p.unjudged"))
    op.execute("CREATE INDEX responses_unjudged_idx ON responses (campaign_id, seq) WHERE extra ? 'cannot_be_judged'")


def downgrade() -> None:
    """What was said stays in the responses, which an earlier version cannot replay."""
    op.execute("DROP INDEX responses_unjudged_idx")
    op.execute("DROP VIEW current_posteriors")
    op.execute("ALTER TABLE posteriors DROP unjudged")
    op.execute(CURRENT_POSTERIORS.format(more=""))
    op.execute("ALTER TABLE campaigns DROP cannot_be_judged, DROP unjudged_reasons, DROP unjudged_people")
