"""Keyed hashes of submissions, so that a reward counts once although the ids of its person were erased."""

from alembic import op

revision = "0029_submission_hashes"
down_revision = "0028_calls_to_decide"

INDEXES = {
    "payments_reward_submission_idx": "(submission) WHERE kind = 'reward'",
    "payments_reward_hash_idx": "(submission_hash) WHERE kind = 'reward'",
    "payments_unclear_reward_idx": "(study) WHERE kind = 'reward' AND state = 'unknown'",
}


def upgrade() -> None:
    """Add the columns, and let rewards be found in all campaigns. The next reading fills the hashes."""
    op.execute("ALTER TABLE payments ADD COLUMN submission_hash bytea")
    op.execute("ALTER TABLE submissions ADD COLUMN submission_hash bytea")
    for name, definition in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON payments {definition}")


def downgrade() -> None:
    """Take them away again."""
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    op.execute("ALTER TABLE submissions DROP COLUMN submission_hash")
    op.execute("ALTER TABLE payments DROP COLUMN submission_hash")
