"""A campaign counts the changes of each step of its settings form, so that no one saves over newer settings."""

from alembic import op

revision = "0004_step_versions"
down_revision = "0003_settings_sections"


def upgrade() -> None:
    op.execute("ALTER TABLE campaigns ADD step_versions jsonb DEFAULT '{}' NOT NULL")


def downgrade() -> None:
    op.execute("ALTER TABLE campaigns DROP step_versions")
