"""Why a HIT was drawn: the rule's reason, and the probability of its leader."""

from alembic import op

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    """Of HITs before, nobody knows; of the place of a plan, its iteration tells little more."""
    op.execute("ALTER TABLE hits ADD COLUMN drawn_because text, ADD COLUMN leader_probability double precision")
    op.execute("ALTER TABLE planned_hits ADD COLUMN drawn_because text, ADD COLUMN leader_probability double precision")


def downgrade() -> None:
    """The rule of the campaign tells the reason."""
    op.execute("ALTER TABLE planned_hits DROP COLUMN drawn_because, DROP COLUMN leader_probability")
    op.execute("ALTER TABLE hits DROP COLUMN drawn_because, DROP COLUMN leader_probability")
