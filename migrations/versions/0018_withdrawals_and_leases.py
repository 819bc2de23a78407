"""Withdrawals that annotators took back, leases that no blocked annotator gets, and raised limits on visits."""

from alembic import op

revision = "0018_withdrawals_and_leases"
down_revision = "0017_erasures"

# The text of this function in app/annotation/hits/lease_functions_sql.py when this migration was written.
LEASE_HITS_FUNCTION = """
    CREATE FUNCTION easel_lease_hits(
        campaign bigint, annotators bigint[], all_capped int[], few_open boolean, wanted int, people int,
            leaders int[], shared_leaders boolean[], capped text[], assignments bigint[], items text[],
            iterations int[], ordinals int[], segments int[], shown_as text[], times timestamptz[],
            lease_minutes int[], visitors bytea[], reasons text[], probabilities float8[], repeat_items
            boolean, hits_per_annotator int, one_hits boolean[], checks text[],
        OUT number int, OUT id bigint, OUT expires_at timestamptz
    ) RETURNS SETOF record LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        blocked bigint[];  -- annotators who get no HIT, or must pass a step first
        time_after_locks timestamptz;
        rooms int[];  -- for each of the capped items: how many more HITs may hold it
        leads boolean[];  -- for each of the capped items: whether it leads an open HIT
        spots int[];  -- places of the items of a HIT among them
        spot int;
        leader_spot int;
        has_room boolean;
        leased bigint;
    BEGIN
        PERFORM FROM (SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST($1 AS int))) AS locked;
        PERFORM FROM (
    SELECT 1 FROM states WHERE campaign_id = $1 AND kind = 'campaign' AND criterion = 0
    AND revision = (SELECT revision FROM campaigns WHERE id = $1) FOR NO KEY UPDATE
) AS locked;
        SELECT array_agg(locked.id) FILTER (WHERE locked.barred IS NOT NULL
            OR locked.admitted < (SELECT visit_version FROM campaigns WHERE id = $1)) INTO blocked
        FROM (SELECT DISTINCT annotator FROM unnest($2) AS annotator ORDER BY annotator) AS one, LATERAL (
            SELECT a.id, a.barred, a.admitted FROM annotators a
            WHERE a.campaign_id = $1 AND a.id = one.annotator FOR NO KEY UPDATE OF a
        ) AS locked;
        PERFORM FROM (
    SELECT p.subject FROM posteriors p WHERE
    p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(CAST($3 AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p) AS locked;
        time_after_locks := clock_timestamp();
        IF NOT EXISTS (SELECT 1 FROM campaigns WHERE id = $1 AND status = 'running') THEN
            RETURN;
        END IF;
        SELECT counted.rooms, counted.leads INTO rooms, leads
        FROM (
    WITH open AS (
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE NOT $4 AND ARRAY[h.campaign_id] && ARRAY[CAST($1 AS bigint)]
              AND h.items && CAST($3 AS int[]) AND num_nonnulls(h.closed_at) = 0
            UNION ALL
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE $4 AND h.campaign_id = $1 AND h.closed_at IS NULL AND h.expires_at >
                time_after_locks AND h.leader IS NOT NULL
    )
    SELECT array_agg(counted.room ORDER BY counted.item) AS rooms,
           array_agg(counted.leads ORDER BY counted.item) AS leads
    FROM (
        SELECT each.item, CAST(max(each.free) - sum(each.leases) AS int) AS room, bool_or(each.leads) AS leads
        FROM (
            SELECT p.subject AS item, 0 AS leases, false AS leads,
                   CASE WHEN p.judgments < $5 AND NOT p.settled AND p.unjudged < $6
                   THEN $5 - p.judgments ELSE 0 END AS free
            FROM posteriors p
            WHERE
    p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(CAST($3 AS int[]))
            UNION ALL
            SELECT item, 1, open.leader = item, NULL FROM open, unnest(open.items) AS item
            WHERE open.expires_at > time_after_locks
        ) AS each
        GROUP BY each.item HAVING count(each.free) > 0
    ) AS counted) AS counted;
        IF coalesce(cardinality(rooms), 0) <> cardinality($3) THEN
            RETURN;
        END IF;
        FOR place IN 1 .. cardinality($2) LOOP
            CONTINUE WHEN $2[place] = ANY(blocked);
            leader_spot := array_position($3, $7[place]);
            CONTINUE WHEN leads[leader_spot] AND NOT $8[place];
            spots := '{}';
            has_room := true;
            FOREACH spot IN ARRAY CAST($9[place] AS int[]) LOOP
                spot := array_position($3, spot);
                spots := spots || spot;
                has_room := has_room AND rooms[spot] > 0;
            END LOOP;
            CONTINUE WHEN NOT has_room;

    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
         expires_at, untouched_by, drawn_because, leader_probability)
    SELECT $1, CAST($2[place] AS bigint), CAST($10[place] AS bigint), CAST($7[place] AS int),
           CAST($11[place] AS int[]), CAST($12[place] AS int), CAST($13[place] AS int),
           CAST($14[place] AS int), CAST($15[place] AS int[]), $16[place],
           time_after_locks + make_interval(mins => $17[place]), CAST($18[place] AS bytea),
           CAST($19[place] AS text), CAST($20[place] AS float8)
    WHERE
    ($21 OR NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($2[place] AS bigint)
        AND h.id <> 0 AND h.segment IS NOT DISTINCT FROM CAST($14[place] AS int)
        AND (h.segment IS NOT NULL OR h.items && CAST($9[place] AS int[])) AND (h.closed_at IS NULL AND
            h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id =
            h.campaign_id AND r.hit_id = h.id))))
    AND (CAST($22 AS int) IS NULL OR $22 > (
        SELECT count(*) FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($2[place] AS bigint)
        AND h.id <> 0 AND (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1
            FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id))))
    AND (NOT $23[place] OR NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.assignment_id = CAST($10[place] AS bigint)
        AND h.id <> 0 AND (h.closed_at IS NULL OR (h.closed_at IS NULL AND h.expires_at > time_after_locks
            OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id =
            h.id))))) AND
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.id <> 0
        AND h.iteration = CAST($12[place] AS int) AND h.ordinal = CAST($13[place] AS int)
        AND (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r
            WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id)))
    ON CONFLICT (campaign_id, assignment_id) WHERE closed_at IS NULL AND assignment_id IS NOT NULL DO NOTHING
    RETURNING id, expires_at INTO leased, expires_at;
            CONTINUE WHEN leased IS NULL;
            IF $24[place] IS NOT NULL THEN

    INSERT INTO hit_checks (campaign_id, hit_id, place, check_number, number)
    SELECT $1, leased, (placed -> 0)::int, (placed -> 1)::int, (placed -> 2)::int
    FROM jsonb_array_elements(CAST($24[place] AS jsonb)) AS placed;
            END IF;
            FOREACH spot IN ARRAY spots LOOP
                rooms[spot] := rooms[spot] - 1;
            END LOOP;
            IF leader_spot IS NOT NULL THEN
                leads[leader_spot] := true;
            END IF;
            number := place;
            id := leased;
            RETURN NEXT;
        END LOOP;
    END
    $$
"""

# The one before it, of 0013_lease_batches.
FORMER_LEASE_HITS_FUNCTION = """
    CREATE FUNCTION easel_lease_hits(
        campaign bigint, counted bigint[], all_capped int[], few_open boolean, wanted int, people int,
            annotators bigint[], leaders int[], shared_leaders boolean[], capped text[], assignments bigint[],
            items text[], iterations int[], ordinals int[], segments int[], shown_as text[], times
            timestamptz[], lease_minutes int[], visitors bytea[], reasons text[], probabilities float8[],
            repeat_items boolean, hits_per_annotator int, one_hits boolean[], checks text[],
        OUT number int, OUT id bigint, OUT expires_at timestamptz
    ) RETURNS SETOF record LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        time_after_locks timestamptz;
        rooms int[];  -- for each of the capped items: how many more HITs may hold it
        leads boolean[];  -- for each of the capped items: whether it leads an open HIT
        spots int[];  -- places of the items of a HIT among them
        spot int;
        leader_spot int;
        has_room boolean;
        leased bigint;
    BEGIN
        PERFORM FROM (SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST($1 AS int))) AS locked;
        PERFORM FROM (
    SELECT 1 FROM states WHERE campaign_id = $1 AND kind = 'campaign' AND criterion = 0
    AND revision = (SELECT revision FROM campaigns WHERE id = $1) FOR NO KEY UPDATE
) AS locked;
        IF cardinality($2) > 0 THEN
            PERFORM FROM (SELECT annotator FROM unnest($2) AS annotator ORDER BY annotator) AS one, LATERAL (
                SELECT FROM annotators a WHERE a.campaign_id = $1 AND a.id = one.annotator FOR NO KEY UPDATE OF a
            ) AS locked;
        END IF;
        PERFORM FROM (
    SELECT p.subject FROM posteriors p WHERE
    p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(CAST($3 AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p) AS locked;
        time_after_locks := clock_timestamp();
        IF NOT EXISTS (SELECT 1 FROM campaigns WHERE id = $1 AND status = 'running') THEN
            RETURN;
        END IF;
        SELECT counted.rooms, counted.leads INTO rooms, leads
        FROM (
    WITH open AS (
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE NOT $4 AND ARRAY[h.campaign_id] && ARRAY[CAST($1 AS bigint)]
              AND h.items && CAST($3 AS int[]) AND num_nonnulls(h.closed_at) = 0
            UNION ALL
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE $4 AND h.campaign_id = $1 AND h.closed_at IS NULL AND h.expires_at > time_after_locks AND
                h.leader IS NOT NULL
    )
    SELECT array_agg(counted.room ORDER BY counted.item) AS rooms,
           array_agg(counted.leads ORDER BY counted.item) AS leads
    FROM (
        SELECT each.item, CAST(max(each.free) - sum(each.leases) AS int) AS room, bool_or(each.leads) AS leads
        FROM (
            SELECT p.subject AS item, 0 AS leases, false AS leads,
                   CASE WHEN p.judgments < $5 AND NOT p.settled AND p.unjudged < $6
                   THEN $5 - p.judgments ELSE 0 END AS free
            FROM posteriors p
            WHERE
    p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(CAST($3 AS int[]))
            UNION ALL
            SELECT item, 1, open.leader = item, NULL FROM open, unnest(open.items) AS item
            WHERE open.expires_at > time_after_locks
        ) AS each
        GROUP BY each.item HAVING count(each.free) > 0
    ) AS counted) AS counted;
        IF coalesce(cardinality(rooms), 0) <> cardinality($3) THEN
            RETURN;
        END IF;
        FOR place IN 1 .. cardinality($7) LOOP
            leader_spot := array_position($3, $8[place]);
            CONTINUE WHEN leads[leader_spot] AND NOT $9[place];
            spots := '{}';
            has_room := true;
            FOREACH spot IN ARRAY CAST($10[place] AS int[]) LOOP
                spot := array_position($3, spot);
                spots := spots || spot;
                has_room := has_room AND rooms[spot] > 0;
            END LOOP;
            CONTINUE WHEN NOT has_room;

    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
         expires_at, untouched_by, drawn_because, leader_probability)
    SELECT $1, CAST($7[place] AS bigint), CAST($11[place] AS bigint), CAST($8[place] AS int),
           CAST($12[place] AS int[]), CAST($13[place] AS int), CAST($14[place] AS int),
           CAST($15[place] AS int), CAST($16[place] AS int[]), $17[place],
           time_after_locks + make_interval(mins => $18[place]), CAST($19[place] AS bytea),
           CAST($20[place] AS text), CAST($21[place] AS float8)
    WHERE
    ($22 OR NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($7[place] AS bigint)
        AND h.id <> 0 AND h.segment IS NOT DISTINCT FROM CAST($15[place] AS int)
        AND (h.segment IS NOT NULL OR h.items && CAST($10[place] AS int[])) AND (h.closed_at IS NULL AND
            h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id =
            h.campaign_id AND r.hit_id = h.id))))
    AND (CAST($23 AS int) IS NULL OR $23 > (
        SELECT count(*) FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($7[place] AS bigint)
        AND h.id <> 0 AND (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM
            responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id))))
    AND (NOT $24[place] OR NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.assignment_id = CAST($11[place] AS bigint)
        AND h.id <> 0 AND (h.closed_at IS NULL OR (h.closed_at IS NULL AND h.expires_at > time_after_locks OR
            EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id))))) AND
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.id <> 0
        AND h.iteration = CAST($13[place] AS int) AND h.ordinal = CAST($14[place] AS int)
        AND (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r WHERE
            r.campaign_id = h.campaign_id AND r.hit_id = h.id)))
    ON CONFLICT (campaign_id, assignment_id) WHERE closed_at IS NULL AND assignment_id IS NOT NULL DO NOTHING
    RETURNING id, expires_at INTO leased, expires_at;
            CONTINUE WHEN leased IS NULL;
            IF $25[place] IS NOT NULL THEN

    INSERT INTO hit_checks (campaign_id, hit_id, place, check_number, number)
    SELECT $1, leased, (placed -> 0)::int, (placed -> 1)::int, (placed -> 2)::int
    FROM jsonb_array_elements(CAST($25[place] AS jsonb)) AS placed;
            END IF;
            FOREACH spot IN ARRAY spots LOOP
                rooms[spot] := rooms[spot] - 1;
            END LOOP;
            IF leader_spot IS NOT NULL THEN
                leads[leader_spot] := true;
            END IF;
            number := place;
            id := leased;
            RETURN NEXT;
        END LOOP;
    END
    $$
"""


def upgrade() -> None:
    """Add the table and the column, and replace the function."""
    op.execute("""
        CREATE TABLE undone_withdrawals (
            campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
            receipt text NOT NULL,
            undone_at timestamptz NOT NULL,
            CONSTRAINT undone_withdrawals_pkey PRIMARY KEY (campaign_id, receipt)
        )
    """)
    op.execute("ALTER TABLE visit_allowances ADD COLUMN share interval")
    op.execute("DROP FUNCTION easel_lease_hits")
    op.execute(LEASE_HITS_FUNCTION)


def downgrade() -> None:
    """Take the table and the column away, and make the earlier function again."""
    op.execute("DROP TABLE undone_withdrawals")
    op.execute("ALTER TABLE visit_allowances DROP COLUMN share")
    op.execute("DROP FUNCTION easel_lease_hits")
    op.execute(FORMER_LEASE_HITS_FUNCTION)
