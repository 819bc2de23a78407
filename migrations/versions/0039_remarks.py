"""Comments and flags of annotators, kept beside their answers."""

from alembic import op

revision = "0039"
down_revision = "0038"

# What a new campaign begins with; those that are there get it too, should they come to ask.
REASONS = "{It is broken or incomplete,It is offensive,It tells who somebody is,Another reason}"


def upgrade() -> None:
    """So far nobody was asked."""
    op.execute(f"""
        ALTER TABLE campaigns
        ADD comment_on text NOT NULL DEFAULT 'none',
        ADD flag_items boolean NOT NULL DEFAULT false,
        ADD flag_reasons text[] NOT NULL DEFAULT '{REASONS}',
        ADD flag_people int NOT NULL DEFAULT 2
    """)
    op.execute("ALTER TABLE campaigns ALTER flag_reasons SET DEFAULT '{}'")
    op.execute("CREATE INDEX responses_remarks_idx ON responses (campaign_id, seq) WHERE extra ? 'remarks'")


def downgrade() -> None:
    """What was said stays in the responses."""
    op.execute("DROP INDEX responses_remarks_idx")
    op.execute("ALTER TABLE campaigns DROP comment_on, DROP flag_items, DROP flag_reasons, DROP flag_people")
