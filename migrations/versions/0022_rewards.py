"""Rewards of submissions as payments, and the subscription to the service's notices."""

from alembic import op

revision = "0022_rewards"
down_revision = "0021_work_and_progress"

STATEMENTS = (
    """
    ALTER TABLE payments
        ADD COLUMN kind text DEFAULT 'bonus' NOT NULL,
        ADD CONSTRAINT payments_kind_check CHECK (kind IN ('bonus', 'reward'))
    """,
    "CREATE UNIQUE INDEX payments_one_reward_idx ON payments (campaign_id, submission) WHERE kind = 'reward'",
    """
    ALTER TABLE submissions
        ADD COLUMN reward integer,
        ADD COLUMN return_requested_at timestamptz,
        ADD COLUMN decision_pending_since timestamptz
    """,
    # Budgets that were set before rewards were counted go on to cover bonuses alone, until a person saves them again.
    """
    ALTER TABLE payment_accounts
        ADD COLUMN budget_covers_rewards boolean DEFAULT false NOT NULL,
        ADD COLUMN hook_subscription text DEFAULT '' NOT NULL,
        ADD COLUMN hook_problem text DEFAULT '' NOT NULL
    """,
    "UPDATE payment_accounts SET due_at = now() WHERE due_at IS NOT NULL",
)


def upgrade() -> None:
    """Add the columns, and let the rewards of known submissions be read at once."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Take them away again, with the rows of rewards."""
    op.execute("DELETE FROM payments WHERE kind = 'reward'")
    op.execute("DROP INDEX payments_one_reward_idx")
    op.execute("ALTER TABLE payments DROP COLUMN kind")
    op.execute("""
        ALTER TABLE submissions
            DROP COLUMN reward, DROP COLUMN return_requested_at, DROP COLUMN decision_pending_since
    """)
    op.execute("""
        ALTER TABLE payment_accounts
            DROP COLUMN budget_covers_rewards, DROP COLUMN hook_subscription, DROP COLUMN hook_problem
    """)
