"""An annotator's last answer can be replaced by another one."""

from alembic import op

revision = "0038"
down_revision = "0037"

BEFORE = """
    CREATE OR REPLACE FUNCTION exclusions(campaign bigint, up_to bigint)
    RETURNS TABLE (annotator_id bigint, response_seq bigint) LANGUAGE sql STABLE AS $$
        SELECT latest.annotator_id, latest.response_seq FROM (
            SELECT DISTINCT ON (d.annotator_id, d.response_seq) d.annotator_id, d.response_seq, d.kind
            FROM decisions d WHERE d.campaign_id = exclusions.campaign AND d.seq <= exclusions.up_to
            ORDER BY d.annotator_id, d.response_seq, d.seq DESC
        ) AS latest WHERE latest.kind <> 'include'
        {also}
    $$
"""
# An answer in the place of another one counts from the decision on that withdraws that one: never both, never neither.
NOT_YET = """
        UNION ALL
        SELECT NULL, r.seq FROM responses r
        WHERE r.campaign_id = exclusions.campaign AND r.replaces IS NOT NULL AND NOT EXISTS (
            SELECT FROM decisions d WHERE d.campaign_id = r.campaign_id AND d.response_seq = r.replaces
            AND d.kind = 'withdraw' AND d.seq <= exclusions.up_to)
"""


def upgrade() -> None:
    """No answer of before replaces another one. Campaigns that were launched stay as their annotators know them."""
    op.execute("ALTER TABLE campaigns ADD undo boolean NOT NULL DEFAULT true")
    op.execute("UPDATE campaigns SET undo = false WHERE status <> 'draft'")
    op.execute("ALTER TABLE responses ADD replaces bigint, DROP CONSTRAINT responses_campaign_id_hit_id_key")
    op.execute("CREATE UNIQUE INDEX responses_hit_id_idx ON responses (campaign_id, hit_id, coalesce(replaces, 0))")
    op.execute(
        "CREATE UNIQUE INDEX responses_replaces_idx ON responses (campaign_id, replaces) WHERE replaces IS NOT NULL"
    )
    op.execute(BEFORE.format(also=NOT_YET))


def downgrade() -> None:
    """Answers that replace others are forgotten with their decisions, and those that they replaced count again."""
    op.execute("DELETE FROM decisions WHERE kind = 'withdraw'")
    op.execute("DELETE FROM responses WHERE replaces IS NOT NULL")
    op.execute(BEFORE.format(also=""))
    op.execute("DROP INDEX responses_replaces_idx, responses_hit_id_idx")
    op.execute("ALTER TABLE responses DROP replaces, ADD UNIQUE (campaign_id, hit_id)")
    op.execute("ALTER TABLE campaigns DROP undo")
