"""Ways back by how a visit ended, and what is said beside the work."""

from alembic import op

revision = "0035"
down_revision = "0034"
COLUMNS = (
    "pay_per_hit double precision",
    "currency text NOT NULL DEFAULT 'USD'",
    "in_short text NOT NULL DEFAULT ''",
    "leave_early boolean NOT NULL DEFAULT false",
    "break_minutes int",
    "return_completed text",
    "return_failed_checks text",
    "return_screened_out text",
    "return_nothing_left text",
)


def upgrade() -> None:
    """Campaigns of before show nothing of it."""
    op.execute("ALTER TABLE campaigns " + ", ".join(f"ADD {column}" for column in COLUMNS))


def downgrade() -> None:
    """Back to the one code."""
    op.execute("ALTER TABLE campaigns " + ", ".join(f"DROP {column.split()[0]}" for column in COLUMNS))
