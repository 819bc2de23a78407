"""Experiments whose arms are campaigns."""

from alembic import op

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    """Campaigns of before are arms of none."""
    op.execute("""
        CREATE TABLE experiment_arms (
            experiment text NOT NULL,
            arm text NOT NULL,
            campaign_id bigint NOT NULL UNIQUE REFERENCES campaigns (id) ON DELETE CASCADE,
            link_key text NOT NULL,
            PRIMARY KEY (experiment, arm)
        )
    """)
    op.execute("CREATE INDEX experiment_arms_link_key_idx ON experiment_arms (link_key)")


def downgrade() -> None:
    """The campaigns stay, each for itself."""
    op.execute("DROP TABLE experiment_arms")
