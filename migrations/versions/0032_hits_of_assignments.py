"""An index on the HITs of an assignment that no statement about something else can take."""

from alembic import op

revision = "0032_hits_of_assignments"
down_revision = "0031_answers_and_leases"

# While a table is small, PostgreSQL takes all its indexes for equally good, and chooses the newest one. So the index on
# open HITs, which has the fewest rows, is made last.
OPEN_HIT_INDEX = """
    CREATE UNIQUE INDEX hits_one_open_idx ON hits (campaign_id, assignment_id)
    WHERE closed_at IS NULL AND assignment_id IS NOT NULL
"""


def upgrade() -> None:
    """Give the index a condition that only statements with an assignment meet."""
    op.drop_index("hits_assignment_id_idx", "hits")
    op.execute(
        "CREATE INDEX hits_assignment_id_idx ON hits (campaign_id, assignment_id) WHERE assignment_id IS NOT NULL"
    )
    op.drop_index("hits_one_open_idx", "hits")
    op.execute(OPEN_HIT_INDEX)


def downgrade() -> None:
    """Index all HITs again."""
    op.drop_index("hits_assignment_id_idx", "hits")
    op.create_index("hits_assignment_id_idx", "hits", ["campaign_id", "assignment_id"])
    op.drop_index("hits_one_open_idx", "hits")
    op.execute(OPEN_HIT_INDEX)
