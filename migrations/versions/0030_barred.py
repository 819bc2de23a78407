"""Who gets no further HITs, and why: annotators who are held, or excluded."""

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Who is excluded already is by the last decision about them."""
    op.execute("ALTER TABLE annotators ADD barred text, ADD barred_reason text, ADD barred_by text")
    op.execute("ALTER TABLE annotators RENAME held_at TO barred_at")
    op.execute("ALTER TABLE annotators ADD CONSTRAINT annotators_barred_check CHECK (barred IN ('held', 'excluded'))")
    op.execute("""
        UPDATE annotators a SET barred = 'held', barred_reason = coalesce((
            SELECT f.said FROM findings f WHERE f.campaign_id = a.campaign_id AND f.annotator_id = a.id
            AND f.action = 'hold' ORDER BY f.id DESC LIMIT 1), ''), barred_by = 'Easel'
        WHERE barred_at IS NOT NULL
    """)
    op.execute("""
        UPDATE annotators a SET barred = 'excluded', barred_reason = d.reason, barred_by = d.decided_by,
                                barred_at = d.decided_at
        FROM decisions d WHERE d.campaign_id = a.campaign_id AND d.annotator_id = a.id AND d.kind <> 'include'
        AND d.seq = (SELECT max(o.seq) FROM decisions o WHERE o.campaign_id = a.campaign_id AND o.annotator_id = a.id)
    """)


def downgrade() -> None:
    op.execute("ALTER TABLE annotators DROP barred, DROP barred_reason, DROP barred_by")
    op.execute("ALTER TABLE annotators RENAME barred_at TO held_at")
