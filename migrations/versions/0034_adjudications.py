"""Researchers choose final labels of items where annotators disagree."""

from alembic import op

revision = "0034_adjudications"
down_revision = "0033_checks_of_segments"


def upgrade() -> None:
    """Add the table of adjudications."""
    op.execute("""
        CREATE TABLE adjudications (
            campaign_id bigint NOT NULL CONSTRAINT adjudications_campaign_id_fkey
                REFERENCES campaigns (id) ON DELETE CASCADE,
            id bigint GENERATED ALWAYS AS IDENTITY,
            criterion smallint NOT NULL,
            item integer NOT NULL,
            label text,
            reason text NOT NULL,
            decided_by text NOT NULL,
            decided_at timestamptz NOT NULL,
            replaces bigint,
            CONSTRAINT adjudications_pkey PRIMARY KEY (campaign_id, id)
        )
    """)
    op.execute("""
        CREATE UNIQUE INDEX adjudications_item_idx
        ON adjudications (campaign_id, criterion, item, coalesce(replaces, 0))
    """)


def downgrade() -> None:
    """Drop them: no answer and no score depends on them."""
    op.execute("DROP TABLE adjudications")
