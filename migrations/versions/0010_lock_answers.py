"""The function that locks the HITs of a batch of answers, and reads what the locks guard."""

from alembic import op

revision = "0010_lock_answers"
down_revision = "0009_no_trials"

# The text of `LOCK_ANSWERS_FUNCTION` in app/annotation/hits/locked_answers.py when this migration was written.
LOCK_ANSWERS_FUNCTION = """
    CREATE FUNCTION easel_lock_answers(
        campaign bigint, hits bigint[], late boolean, assignments bigint[], arrivals timestamptz[],
        OUT hit_ids bigint[], OUT annotator_ids bigint[], OUT items_of_hits text[], OUT segments int[],
        OUT shown_as_of_hits text[], OUT excluded bigint[], OUT numbers int[], OUT states float8[],
        OUT judgments int[], OUT campaign_row campaigns
    ) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    BEGIN
        PERFORM FROM (SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST($1 AS int))) AS locked;
        PERFORM FROM (
    SELECT 1 FROM states WHERE campaign_id = $1 AND kind = 'campaign' AND criterion = 0
    AND revision = (SELECT revision FROM campaigns WHERE id = $1) FOR NO KEY UPDATE
) AS locked;
        PERFORM FROM (SELECT hit FROM unnest($2) AS hit ORDER BY hit) AS answered, LATERAL (
            SELECT FROM hits h WHERE h.campaign_id = $1 AND h.id = answered.hit FOR NO KEY UPDATE OF h
        ) AS locked;
        SELECT array_agg(locked.subject), array_agg(locked.state), array_agg(locked.judgments)
        INTO numbers, states, judgments
        FROM (
            SELECT p.subject, p.state, p.judgments FROM posteriors p
            WHERE
    p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(ARRAY(
                SELECT item FROM unnest($2) AS hit, LATERAL (
                    SELECT h.items FROM hits h
                    WHERE h.campaign_id = $1 AND h.id = hit AND ($3 OR h.closed_at IS NULL
                        AND h.expires_at > clock_timestamp()) OFFSET 0
                ) AS h, unnest(h.items) AS item))
            ORDER BY p.subject FOR NO KEY UPDATE OF p
        ) AS locked;
        SELECT array_agg(h.id), array_agg(h.annotator_id), array_agg(CAST(h.items AS text)), array_agg(h.segment),
               array_agg(CAST(h.shown_as AS text))
        INTO hit_ids, annotator_ids, items_of_hits, segments, shown_as_of_hits
        FROM unnest($2, $4, $5) AS answered (hit, assignment, arrived_at), LATERAL (
            SELECT h.* FROM hits h
            WHERE h.campaign_id = $1 AND h.id = answered.hit AND ($3 OR h.closed_at IS NULL AND
                h.expires_at > clock_timestamp()) OFFSET 0
        ) AS h
        WHERE
    EXISTS (SELECT 1 FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
            WHERE s.campaign_id = h.campaign_id AND s.id = answered.assignment AND s.arrived_at =
                coalesce(CAST(answered.arrived_at AS timestamptz), s.arrived_at) AND a.id =
                h.annotator_id
            AND (s.id = h.assignment_id OR NOT platform = ANY('{mturk}')));
        SELECT c.* INTO campaign_row FROM campaigns c WHERE c.id = $1;
        IF campaign_row.decided > 0 THEN
            excluded := ARRAY(
                SELECT x.annotator_id FROM exclusions($1, campaign_row.decided) AS x
                WHERE x.annotator_id = ANY(annotator_ids));
        END IF;
    END
    $$
"""


def upgrade() -> None:
    """Make the function."""
    op.execute(LOCK_ANSWERS_FUNCTION)


def downgrade() -> None:
    """Drop the function; older servers lock HITs one by one."""
    op.execute("DROP FUNCTION easel_lock_answers")
