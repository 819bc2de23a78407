"""Functions whose statements name their campaign for each table, so that each can run where its campaign is stored."""

import re

import sqlalchemy
from alembic import op

revision = "0030_campaign_in_functions"
down_revision = "0029_submission_hashes"

EXCLUSIONS_FUNCTION = """
    CREATE FUNCTION exclusions(campaign bigint, up_to bigint)
    RETURNS TABLE (annotator_id bigint, response_seq bigint) LANGUAGE sql STABLE AS $$
    SELECT latest.annotator_id, latest.response_seq FROM (
        SELECT DISTINCT ON (d.annotator_id, d.response_seq) d.annotator_id, d.response_seq, d.kind
        FROM decisions d WHERE d.campaign_id = exclusions.campaign AND d.seq <= exclusions.up_to
        ORDER BY d.annotator_id, d.response_seq, d.seq DESC
    ) AS latest WHERE latest.kind <> 'include'
    UNION ALL
    SELECT NULL, r.seq FROM responses r
    WHERE r.campaign_id = exclusions.campaign AND r.replaces IS NOT NULL AND NOT EXISTS (
        SELECT FROM decisions d WHERE d.campaign_id = r.campaign_id AND d.response_seq = r.replaces
        AND d.kind = 'withdraw' AND d.seq <= exclusions.up_to)
    $$
"""
# The query of that function, for the campaign and the last decision of `easel_lock_answers`.
EXCLUSIONS_QUERY = """(
    SELECT latest.annotator_id, latest.response_seq FROM (
        SELECT DISTINCT ON (d.annotator_id, d.response_seq) d.annotator_id, d.response_seq, d.kind
        FROM decisions d WHERE d.campaign_id = $1 AND d.seq <= campaign_row.decided
        ORDER BY d.annotator_id, d.response_seq, d.seq DESC
    ) AS latest WHERE latest.kind <> 'include'
    UNION ALL
    SELECT NULL, r.seq FROM responses r
    WHERE r.campaign_id = $1 AND r.replaces > 0 AND NOT EXISTS (
        SELECT FROM decisions d WHERE d.campaign_id = $1 AND d.response_seq = r.replaces
        AND d.kind = 'withdraw' AND d.seq <= campaign_row.decided))"""

# Function, its text before, and after.
CHANGES = (
    ("easel_lock_answers", "s.campaign_id = h.campaign_id AND", "s.campaign_id = $1 AND"),
    # Without OFFSET 0, PostgreSQL reads all assignments or responses of the campaign.
    (
        "easel_lock_answers",
        "(s.id = h.assignment_id OR NOT platform = ANY('{mturk}')))",
        "(s.id = h.assignment_id OR NOT platform = ANY('{mturk}')) OFFSET 0)",
    ),
    ("easel_lock_answers", "exclusions($1, campaign_row.decided)", EXCLUSIONS_QUERY),
    (
        "easel_lease_hits",
        "r.campaign_id = h.campaign_id AND r.hit_id = h.id)",
        "r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0)",
    ),
    (
        "easel_lease_hits",
        "ON CONFLICT (campaign_id, assignment_id)",
        """AND NOT EXISTS (
        SELECT 1 FROM hits h
        WHERE h.campaign_id = $1 AND h.assignment_id = CAST($10[place] AS bigint) AND h.closed_at IS NULL)
    ON CONFLICT (campaign_id, assignment_id)""",
    ),
    (
        "easel_shown_items",
        "v.campaign_id = i.campaign_id AND v.item = i.number AND v.last_hit >= $2",
        "v.item = i.number AND v.last_hit >= $2 AND v.campaign_id = $3",
    ),
    ("easel_shown_outputs", "v.campaign_id = o.campaign_id AND", "v.campaign_id = $1 AND"),
)


def upgrade() -> None:
    """Change the functions, and drop the one whose text is now in each statement that used it."""
    for name, before, after in CHANGES:
        replace_text_in_function_or_raise(name, before, after)
    op.execute("DROP FUNCTION exclusions")


def downgrade() -> None:
    """Restore the earlier functions."""
    op.execute(EXCLUSIONS_FUNCTION)
    for name, before, after in CHANGES:
        replace_text_in_function_or_raise(name, after, before)


def replace_text_in_function_or_raise(name: str, before: str, after: str) -> None:
    """Replace a text in the body of a stored function, however its lines are broken."""
    find_definition = sqlalchemy.text("SELECT pg_get_functiondef(CAST(:name AS regproc))")
    definition = op.get_bind().execute(find_definition, {"name": name}).scalar_one()
    pattern = r"\s+".join(re.escape(word) for word in before.split())
    changed, count = re.subn(pattern, lambda _: after, definition)
    if not count:
        raise LookupError(f"{name} does not contain: {before}")
    op.get_bind().exec_driver_sql(changed)
