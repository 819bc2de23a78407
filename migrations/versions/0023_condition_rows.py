"""The row of a square of conditions that each annotator has."""

from alembic import op

revision = "0023_condition_rows"
down_revision = "0022_rewards"


def upgrade() -> None:
    """Add the row, since when the annotator has it, and whether they have done all tasks."""
    op.execute(
        "ALTER TABLE annotators ADD COLUMN square_row smallint, ADD COLUMN square_row_at timestamptz, "
        "ADD COLUMN square_done boolean"
    )


def downgrade() -> None:
    """Take them away again."""
    op.execute("ALTER TABLE annotators DROP COLUMN square_row, DROP COLUMN square_row_at, DROP COLUMN square_done")
