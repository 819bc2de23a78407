"""Drafts no longer store whether somebody has tried a HIT: the preview of the whole visit replaces that page."""

from alembic import op

revision = "0009_no_trials"
down_revision = "0008_output_versions"


def upgrade() -> None:
    """Drop the time of the trial."""
    op.execute("ALTER TABLE campaigns DROP tried_at")


def downgrade() -> None:
    """Add it again: no draft was tried."""
    op.execute("ALTER TABLE campaigns ADD tried_at timestamptz")
