"""One transaction stores answers and leases the next HITs; leases lock the room of a campaign, and not its items."""

from alembic import op

revision = "0031_answers_and_leases"
down_revision = "0030_campaign_in_functions"

LOCK_ANSWERS = """
    CREATE FUNCTION easel_lock_answers(
        campaign bigint, hits bigint[], late boolean, answering bigint[], answering_since timestamptz[],
        OUT hit_ids bigint[], OUT annotator_ids bigint[], OUT items_of_hits text[], OUT segments int[],
        OUT shown_as_of_hits text[], OUT excluded bigint[], OUT numbers int[], OUT states float8[],
        OUT judgments int[], OUT campaign_version text
    ) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        last_decision bigint;  -- up to which decisions about answers count
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
                    WHERE h.campaign_id = $1 AND h.id = hit AND ($3 OR h.closed_at IS NULL AND h.expires_at >
                        clock_timestamp() + interval '30 seconds') OFFSET 0
                ) AS h, unnest(h.items) AS item))
            ORDER BY p.subject FOR NO KEY UPDATE OF p
        ) AS locked;
        SELECT array_agg(h.id), array_agg(h.annotator_id), array_agg(CAST(h.items AS text)), array_agg(h.segment),
               array_agg(CAST(h.shown_as AS text))
        INTO hit_ids, annotator_ids, items_of_hits, segments, shown_as_of_hits
        FROM unnest($2, $4, $5) AS answered (hit, assignment, arrived_at), LATERAL (
            SELECT h.* FROM hits h
            WHERE h.campaign_id = $1 AND h.id = answered.hit AND ($3 OR h.closed_at IS NULL AND h.expires_at >
                clock_timestamp() + interval '30 seconds') OFFSET 0
        ) AS h
        WHERE
    EXISTS (SELECT 1 FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
            WHERE s.campaign_id = $1 AND s.id = answered.assignment AND s.arrived_at =
                coalesce(CAST(answered.arrived_at AS timestamptz), s.arrived_at) AND a.id = h.annotator_id
            AND (s.id = h.assignment_id OR NOT platform = ANY('{mturk}')) OFFSET 0);
        SELECT concat(c.xmin, ' ', c.ctid), c.decided INTO campaign_version, last_decision
    FROM campaigns c LEFT JOIN (
        SELECT FROM posteriors WHERE campaign_id = $1 AND revision = 0 AND criterion = 0 AND subject = 0 LIMIT 1
    ) AS place ON true
    WHERE c.id = $1;
        IF last_decision > 0 THEN
            excluded := ARRAY(
                SELECT x.annotator_id
                FROM (
    SELECT latest.annotator_id, latest.response_seq FROM (
        SELECT DISTINCT ON (d.annotator_id, d.response_seq) d.annotator_id, d.response_seq, d.kind
        FROM decisions d WHERE d.campaign_id = $1 AND d.seq <= last_decision
        ORDER BY d.annotator_id, d.response_seq, d.seq DESC
    ) AS latest WHERE latest.kind <> 'include'
    UNION ALL
    SELECT NULL, r.seq FROM responses r
    WHERE r.campaign_id = $1 AND r.replaces > 0 AND NOT EXISTS (
        SELECT FROM decisions d WHERE d.campaign_id = $1 AND d.response_seq = r.replaces
        AND d.kind = 'withdraw' AND d.seq <= last_decision)) AS x
                WHERE x.annotator_id = ANY(annotator_ids));
        END IF;
    END
    $$
"""

STORE_ANSWERS = """
    CREATE FUNCTION easel_store_answers(
        campaign bigint, hits bigint[], assignments bigint[], annotators bigint[], sources text[], segments int[],
            extras text[], telemetries text[], times timestamptz[], item_starts int[], item_ends int[], value_starts
            int[], value_ends int[], items int[], item_values float8[], states float8[], numbers int[], width int,
            score float8[], variance float8[], more int[], revision int, criterion int,
        OUT seqs bigint[], OUT answered_hits bigint[], OUT stored_campaign bigint
    ) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    BEGIN
        stored_campaign := $1;
        WITH answered AS MATERIALIZED (
            SELECT * FROM unnest(
            CAST($2 AS bigint[]), CAST($3 AS bigint[]), CAST($4 AS bigint[]),
            CAST($5 AS text[]), CAST($6 AS int[]), CAST($7 AS text[]), CAST($8 AS text[]),
            CAST($9 AS timestamptz[]), CAST($10 AS int[]), CAST($11 AS int[]),
            CAST($12 AS int[]), CAST($13 AS int[])
        ) WITH ORDINALITY AS answered (
            hit, assignment, annotator, source, segment, extra, telemetry, answered_at, item_start, item_end,
            value_start, value_end, place)
        ), closed AS (
            UPDATE hits h
            SET closed_at = answered.answered_at, assignment_id = answered.assignment, untouched_by = NULL
            FROM answered, LATERAL (
                SELECT t.ctid AS place_in_table FROM hits t
                WHERE t.campaign_id = $1 AND t.id = answered.hit OFFSET 0  -- so that each is found by its key
            ) AS found
            WHERE h.ctid = found.place_in_table
        ), response AS (
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, segment, extra, telemetry,
                               received_at)
        SELECT $1, hit, annotator, source, (CAST($14 AS int[]))[item_start : item_end],
               (CAST($15 AS float8[]))[value_start : value_end], segment, CAST(extra AS jsonb),
               CAST(telemetry AS jsonb), answered_at
        FROM answered ORDER BY place
        RETURNING seq, hit_id
        ), changed AS (
    UPDATE posteriors p
    SET state = coalesce(
            (CAST($16 AS float8[]))[(width_bucket(p.subject, CAST($17 AS int[])) - 1) * CAST($18 AS int) + 1 :
                width_bucket(p.subject, CAST($17 AS int[])) * $18]),
        score = coalesce((CAST($19 AS float8[]))[width_bucket(p.subject, CAST($17 AS int[]))]),
        variance = coalesce((CAST($20 AS float8[]))[width_bucket(p.subject, CAST($17 AS int[]))]),
        judgments = p.judgments + (CAST($21 AS int[]))[width_bucket(p.subject, CAST($17 AS int[]))]
    WHERE p.campaign_id = $1 AND p.revision = $22 AND p.criterion = $23
    AND p.subject = ANY(CAST($17 AS int[]))
    RETURNING p.subject AS number, p.judgments
        )
        SELECT array_agg(seq), array_agg(hit_id) INTO seqs, answered_hits FROM response;
    END
    $$
"""

LEASE_HITS = """
    CREATE FUNCTION easel_lease_hits(
        campaign bigint, waits boolean, annotators bigint[], few_open boolean, all_capped int[], wanted int, people
            int, leaders int[], shared_leaders boolean[], capped text[], repeat_items boolean, segments int[],
            hits_per_annotator int, one_hits boolean[], assignments bigint[], iterations int[], ordinals int[], items
            text[], shown_as text[], times timestamptz[], lease_minutes int[], visitors bytea[], reasons text[],
            probabilities float8[], checks text[],
        OUT number int, OUT id bigint, OUT expires_at timestamptz
    ) RETURNS SETOF record LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        admitted bigint[];  -- annotators who may get a HIT, and have no step to pass first
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
        IF $2 THEN
            SELECT array_agg(locked.id) INTO admitted FROM (
        SELECT a.id FROM (
            SELECT each.id, each.barred, each.admitted
            FROM (SELECT DISTINCT annotator FROM unnest($3) AS annotator ORDER BY annotator) AS one, LATERAL (
                SELECT a.id, a.barred, a.admitted FROM annotators a
                WHERE a.campaign_id = $1 AND a.id = one.annotator FOR NO KEY UPDATE OF a
            ) AS each
        ) AS a
        WHERE a.barred IS NULL AND a.admitted >= (SELECT visit_version FROM campaigns WHERE id = $1)) AS locked;
        ELSE
            SELECT array_agg(locked.id) INTO admitted
            FROM (
        SELECT a.id FROM (
            SELECT each.id, each.barred, each.admitted
            FROM (SELECT DISTINCT annotator FROM unnest($3) AS annotator ORDER BY annotator) AS one, LATERAL (
                SELECT a.id, a.barred, a.admitted FROM annotators a
                WHERE a.campaign_id = $1 AND a.id = one.annotator FOR NO KEY UPDATE OF a SKIP LOCKED
            ) AS each
        ) AS a
        WHERE a.barred IS NULL AND a.admitted >= (SELECT visit_version FROM campaigns WHERE id = $1)) AS locked;
        END IF;
        PERFORM FROM (SELECT pg_advisory_xact_lock(hashtext('campaign.room'), CAST($1 AS int))) AS locked;
        time_after_locks := clock_timestamp();
        IF NOT EXISTS (SELECT 1 FROM campaigns WHERE id = $1 AND status = 'running') THEN
            RETURN;
        END IF;
        SELECT counted.rooms, counted.leads INTO rooms, leads
        FROM (
    WITH open AS (
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE NOT $4 AND ARRAY[h.campaign_id] && ARRAY[CAST($1 AS bigint)]
              AND h.items && CAST($5 AS int[]) AND num_nonnulls(h.closed_at) = 0
            UNION ALL
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE $4 AND h.campaign_id = $1 AND h.closed_at IS NULL AND h.expires_at > time_after_locks AND h.leader
                IS NOT NULL
    )
    SELECT array_agg(counted.room ORDER BY counted.item) AS rooms,
           array_agg(counted.leads ORDER BY counted.item) AS leads
    FROM (
        SELECT each.item, CAST(max(each.free) - sum(each.leases) AS int) AS room, bool_or(each.leads) AS leads
        FROM (
            SELECT p.subject AS item, 0 AS leases, false AS leads,
                   CASE WHEN p.judgments < $6 AND NOT p.settled AND p.unjudged < $7
                   THEN $6 - p.judgments ELSE 0 END AS free
            FROM posteriors p
            WHERE
    p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(CAST($5 AS int[]))
            UNION ALL
            SELECT item, 1, open.leader = item, NULL FROM open, unnest(open.items) AS item
            WHERE open.expires_at > time_after_locks
        ) AS each
        GROUP BY each.item HAVING count(each.free) > 0
    ) AS counted) AS counted;
        IF coalesce(cardinality(rooms), 0) <> cardinality($5) THEN
            RETURN;
        END IF;
        FOR place IN 1 .. cardinality($3) LOOP
            CONTINUE WHEN array_position(admitted, $3[place]) IS NULL;
            leader_spot := array_position($5, $8[place]);
            CONTINUE WHEN leads[leader_spot] AND NOT $9[place];
            spots := '{}';
            has_room := true;
            FOREACH spot IN ARRAY CAST($10[place] AS int[]) LOOP
                spot := array_position($5, spot);
                spots := spots || spot;
                has_room := has_room AND rooms[spot] > 0;
            END LOOP;
            CONTINUE WHEN NOT has_room;
            IF NOT $11 THEN
                PERFORM 1 WHERE
        NOT EXISTS (
            SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($3[place] AS bigint)
            AND h.id <> 0 AND h.segment IS NOT DISTINCT FROM CAST($12[place] AS int)
            AND (h.segment IS NOT NULL OR h.items && CAST($10[place] AS int[])) AND
    (h.closed_at IS NULL AND h.expires_at > time_after_locks
     OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0)));
                CONTINUE WHEN NOT FOUND;
            END IF;
            IF CAST($13 AS int) IS NOT NULL THEN
                PERFORM 1 WHERE
        $13 > (
            SELECT count(*) FROM hits h
            WHERE h.campaign_id = $1 AND h.annotator_id = CAST($3[place] AS bigint)
            AND h.id <> 0 AND
    (h.closed_at IS NULL AND h.expires_at > time_after_locks
     OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0)));
                CONTINUE WHEN NOT FOUND;
            END IF;
            IF $14[place] THEN
                PERFORM 1 WHERE
        NOT EXISTS (
            SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.assignment_id = CAST($15[place] AS bigint)
            AND h.id <> 0 AND (h.closed_at IS NULL OR
    (h.closed_at IS NULL AND h.expires_at > time_after_locks
     OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0))));
                CONTINUE WHEN NOT FOUND;
            END IF;
            IF CAST($16[place] AS int) IS NOT NULL THEN
                PERFORM 1 WHERE
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.id <> 0
        AND h.iteration = CAST($16[place] AS int) AND h.ordinal = CAST($17[place] AS int)
        AND
    (h.closed_at IS NULL AND h.expires_at > time_after_locks
     OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0)));
                CONTINUE WHEN NOT FOUND;
            END IF;
    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
         expires_at, untouched_by, drawn_because, leader_probability)
    SELECT $1, CAST($3[place] AS bigint), CAST($15[place] AS bigint), CAST($8[place] AS int),
           CAST($18[place] AS int[]), CAST($16[place] AS int), CAST($17[place] AS int),
           CAST($12[place] AS int), CAST($19[place] AS int[]), $20[place],
           time_after_locks + make_interval(mins => $21[place]), CAST($22[place] AS bytea),
           CAST($23[place] AS text), CAST($24[place] AS float8)
    WHERE
    NOT EXISTS (
        SELECT 1 FROM hits h
        WHERE h.campaign_id = $1 AND h.assignment_id = CAST($15[place] AS bigint) AND h.closed_at IS NULL)
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

EARLIER_LOCK_ANSWERS = """
    CREATE FUNCTION easel_lock_answers( campaign bigint, hits bigint[], late boolean, assignments bigint[], arrivals
    timestamptz[], OUT hit_ids bigint[], OUT annotator_ids bigint[], OUT items_of_hits text[], OUT segments int[], OUT
    shown_as_of_hits text[], OUT excluded bigint[], OUT numbers int[], OUT states float8[], OUT judgments int[], OUT
    campaign_row campaigns ) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    BEGIN PERFORM FROM (SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST($1 AS int))) AS locked;
    PERFORM FROM ( SELECT 1 FROM states WHERE campaign_id = $1 AND kind = 'campaign' AND criterion = 0 AND revision =
    (SELECT revision FROM campaigns WHERE id = $1) FOR NO KEY UPDATE ) AS locked; PERFORM FROM (SELECT hit FROM
    unnest($2) AS hit ORDER BY hit) AS answered, LATERAL ( SELECT FROM hits h WHERE h.campaign_id = $1 AND h.id =
    answered.hit FOR NO KEY UPDATE OF h ) AS locked; SELECT array_agg(locked.subject), array_agg(locked.state),
    array_agg(locked.judgments) INTO numbers, states, judgments FROM ( SELECT p.subject, p.state, p.judgments FROM
    posteriors p WHERE p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1) AND
    p.criterion = 0 AND p.subject = ANY(ARRAY( SELECT item FROM unnest($2) AS hit, LATERAL ( SELECT h.items FROM hits
    h WHERE h.campaign_id = $1 AND h.id = hit AND ($3 OR h.closed_at IS NULL AND h.expires_at > clock_timestamp())
    OFFSET 0 ) AS h, unnest(h.items) AS item)) ORDER BY p.subject FOR NO KEY UPDATE OF p ) AS locked; SELECT
    array_agg(h.id), array_agg(h.annotator_id), array_agg(CAST(h.items AS text)), array_agg(h.segment),
    array_agg(CAST(h.shown_as AS text)) INTO hit_ids, annotator_ids, items_of_hits, segments, shown_as_of_hits FROM
    unnest($2, $4, $5) AS answered (hit, assignment, arrived_at), LATERAL ( SELECT h.* FROM hits h WHERE h.campaign_id
    = $1 AND h.id = answered.hit AND ($3 OR h.closed_at IS NULL AND h.expires_at > clock_timestamp()) OFFSET 0 ) AS h
    WHERE EXISTS (SELECT 1 FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id =
    s.annotator_id WHERE s.campaign_id = $1 AND s.id = answered.assignment AND s.arrived_at =
    coalesce(CAST(answered.arrived_at AS timestamptz), s.arrived_at) AND a.id = h.annotator_id AND (s.id =
    h.assignment_id OR NOT platform = ANY('{mturk}')) OFFSET 0); SELECT c.* INTO campaign_row FROM campaigns c WHERE
    c.id = $1; IF campaign_row.decided > 0 THEN excluded := ARRAY( SELECT x.annotator_id FROM ( SELECT
    latest.annotator_id, latest.response_seq FROM ( SELECT DISTINCT ON (d.annotator_id, d.response_seq)
    d.annotator_id, d.response_seq, d.kind FROM decisions d WHERE d.campaign_id = $1 AND d.seq <= campaign_row.decided
    ORDER BY d.annotator_id, d.response_seq, d.seq DESC ) AS latest WHERE latest.kind <> 'include' UNION ALL SELECT
    NULL, r.seq FROM responses r WHERE r.campaign_id = $1 AND r.replaces > 0 AND NOT EXISTS ( SELECT FROM decisions d
    WHERE d.campaign_id = $1 AND d.response_seq = r.replaces AND d.kind = 'withdraw' AND d.seq <=
    campaign_row.decided)) AS x WHERE x.annotator_id = ANY(annotator_ids)); END IF; END $$
"""

EARLIER_LEASE_HITS = """
    CREATE FUNCTION easel_lease_hits( campaign bigint, annotators bigint[], all_capped int[], few_open boolean, wanted
    int, people int, leaders int[], shared_leaders boolean[], capped text[], assignments bigint[], items text[],
    iterations int[], ordinals int[], segments int[], shown_as text[], times timestamptz[], lease_minutes int[],
    visitors bytea[], reasons text[], probabilities float8[], repeat_items boolean, hits_per_annotator int, one_hits
    boolean[], checks text[], OUT number int, OUT id bigint, OUT expires_at timestamptz ) RETURNS SETOF record
    LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        blocked bigint[];  -- annotators who get no HIT, or must pass a step first
    time_after_locks timestamptz;
        rooms int[];  -- for each of the capped items: how many more HITs may hold it
        leads boolean[];  -- for each of the capped items: whether it leads an open HIT
        spots int[];  -- places of the items of a HIT among them
    spot int; leader_spot int; has_room boolean; leased bigint; BEGIN PERFORM FROM (SELECT
    pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST($1 AS int))) AS locked; PERFORM FROM ( SELECT 1
    FROM states WHERE campaign_id = $1 AND kind = 'campaign' AND criterion = 0 AND revision = (SELECT revision FROM
    campaigns WHERE id = $1) FOR NO KEY UPDATE ) AS locked; SELECT array_agg(locked.id) FILTER (WHERE locked.barred IS
    NOT NULL OR locked.admitted < (SELECT visit_version FROM campaigns WHERE id = $1)) INTO blocked FROM (SELECT
    DISTINCT annotator FROM unnest($2) AS annotator ORDER BY annotator) AS one, LATERAL ( SELECT a.id, a.barred,
    a.admitted FROM annotators a WHERE a.campaign_id = $1 AND a.id = one.annotator FOR NO KEY UPDATE OF a ) AS locked;
    PERFORM FROM ( SELECT p.subject FROM posteriors p WHERE p.campaign_id = $1 AND p.revision = (SELECT revision FROM
    campaigns WHERE id = $1) AND p.criterion = 0 AND p.subject = ANY(CAST($3 AS int[])) ORDER BY p.subject FOR NO KEY
    UPDATE OF p) AS locked; time_after_locks := clock_timestamp(); IF NOT EXISTS (SELECT 1 FROM campaigns WHERE id =
    $1 AND status = 'running') THEN RETURN; END IF; SELECT counted.rooms, counted.leads INTO rooms, leads FROM ( WITH
    open AS ( SELECT h.id, h.items, h.leader, h.expires_at FROM hits h WHERE NOT $4 AND ARRAY[h.campaign_id] &&
    ARRAY[CAST($1 AS bigint)] AND h.items && CAST($3 AS int[]) AND num_nonnulls(h.closed_at) = 0 UNION ALL SELECT
    h.id, h.items, h.leader, h.expires_at FROM hits h WHERE $4 AND h.campaign_id = $1 AND h.closed_at IS NULL AND
    h.expires_at > time_after_locks AND h.leader IS NOT NULL ) SELECT array_agg(counted.room ORDER BY counted.item) AS
    rooms, array_agg(counted.leads ORDER BY counted.item) AS leads FROM ( SELECT each.item, CAST(max(each.free) -
    sum(each.leases) AS int) AS room, bool_or(each.leads) AS leads FROM ( SELECT p.subject AS item, 0 AS leases, false
    AS leads, CASE WHEN p.judgments < $5 AND NOT p.settled AND p.unjudged < $6 THEN $5 - p.judgments ELSE 0 END AS
    free FROM posteriors p WHERE p.campaign_id = $1 AND p.revision = (SELECT revision FROM campaigns WHERE id = $1)
    AND p.criterion = 0 AND p.subject = ANY(CAST($3 AS int[])) UNION ALL SELECT item, 1, open.leader = item, NULL FROM
    open, unnest(open.items) AS item WHERE open.expires_at > time_after_locks ) AS each GROUP BY each.item HAVING
    count(each.free) > 0 ) AS counted) AS counted; IF coalesce(cardinality(rooms), 0) <> cardinality($3) THEN RETURN;
    END IF; FOR place IN 1 .. cardinality($2) LOOP CONTINUE WHEN $2[place] = ANY(blocked); leader_spot :=
    array_position($3, $7[place]); CONTINUE WHEN leads[leader_spot] AND NOT $8[place]; spots := '{}'; has_room :=
    true; FOREACH spot IN ARRAY CAST($9[place] AS int[]) LOOP spot := array_position($3, spot); spots := spots ||
    spot; has_room := has_room AND rooms[spot] > 0; END LOOP; CONTINUE WHEN NOT has_room; INSERT INTO hits
    (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
    expires_at, untouched_by, drawn_because, leader_probability) SELECT $1, CAST($2[place] AS bigint), CAST($10[place]
    AS bigint), CAST($7[place] AS int), CAST($11[place] AS int[]), CAST($12[place] AS int), CAST($13[place] AS int),
    CAST($14[place] AS int), CAST($15[place] AS int[]), $16[place], time_after_locks + make_interval(mins =>
    $17[place]), CAST($18[place] AS bytea), CAST($19[place] AS text), CAST($20[place] AS float8) WHERE ($21 OR NOT
    EXISTS ( SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($2[place] AS bigint) AND h.id <>
    0 AND h.segment IS NOT DISTINCT FROM CAST($14[place] AS int) AND (h.segment IS NOT NULL OR h.items &&
    CAST($9[place] AS int[])) AND (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM
    responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0)))) AND (CAST($22 AS int) IS NULL OR $22 > (
    SELECT count(*) FROM hits h WHERE h.campaign_id = $1 AND h.annotator_id = CAST($2[place] AS bigint) AND h.id <> 0
    AND (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r WHERE
    r.campaign_id = $1 AND r.hit_id = h.id OFFSET 0)))) AND (NOT $23[place] OR NOT EXISTS ( SELECT 1 FROM hits h WHERE
    h.campaign_id = $1 AND h.assignment_id = CAST($10[place] AS bigint) AND h.id <> 0 AND (h.closed_at IS NULL OR
    (h.closed_at IS NULL AND h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id
    = $1 AND r.hit_id = h.id OFFSET 0))))) AND NOT EXISTS ( SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.id <>
    0 AND h.iteration = CAST($12[place] AS int) AND h.ordinal = CAST($13[place] AS int) AND (h.closed_at IS NULL AND
    h.expires_at > time_after_locks OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id
    OFFSET 0))) AND NOT EXISTS ( SELECT 1 FROM hits h WHERE h.campaign_id = $1 AND h.assignment_id = CAST($10[place]
    AS bigint) AND h.closed_at IS NULL) ON CONFLICT (campaign_id, assignment_id) WHERE closed_at IS NULL AND
    assignment_id IS NOT NULL DO NOTHING RETURNING id, expires_at INTO leased, expires_at; CONTINUE WHEN leased IS
    NULL; IF $24[place] IS NOT NULL THEN INSERT INTO hit_checks (campaign_id, hit_id, place, check_number, number)
    SELECT $1, leased, (placed -> 0)::int, (placed -> 1)::int, (placed -> 2)::int FROM
    jsonb_array_elements(CAST($24[place] AS jsonb)) AS placed; END IF; FOREACH spot IN ARRAY spots LOOP rooms[spot] :=
    rooms[spot] - 1; END LOOP; IF leader_spot IS NOT NULL THEN leads[leader_spot] := true; END IF; number := place; id
    := leased; RETURN NEXT; END LOOP; END $$
"""


def upgrade() -> None:
    """Add the function that stores answers, and replace the others."""
    for name, function in (("easel_lock_answers", LOCK_ANSWERS), ("easel_lease_hits", LEASE_HITS)):
        op.execute(f"DROP FUNCTION {name}")
        op.execute(function)
    op.execute(STORE_ANSWERS)


def downgrade() -> None:
    """Restore the earlier functions."""
    op.execute("DROP FUNCTION easel_store_answers")
    for name, function in (("easel_lock_answers", EARLIER_LOCK_ANSWERS), ("easel_lease_hits", EARLIER_LEASE_HITS)):
        op.execute(f"DROP FUNCTION {name}")
        op.execute(function)
