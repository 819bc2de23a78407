-- The schema of Easel 0.2.0: all tables, then views, functions and triggers. app/database describes the columns.

CREATE TABLE installation (
    single boolean DEFAULT true PRIMARY KEY,
    secret_key text NOT NULL,
    CONSTRAINT installation_one_row_check CHECK (single)
);

CREATE TABLE users (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    password_hash text,
    created_at timestamptz NOT NULL,
    role text DEFAULT 'guest' NOT NULL CHECK (role IN ('guest', 'member', 'viewer', 'manager', 'owner'))
);

CREATE TABLE campaigns (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    link_key text NOT NULL UNIQUE,
    status text DEFAULT 'draft' NOT NULL CHECK (status IN ('draft', 'running', 'paused', 'finished')),
    name text NOT NULL,
    question text NOT NULL,
    instructions text NOT NULL,
    low_label text NOT NULL,
    middle_label text,
    high_label text NOT NULL,
    items_per_hit integer NOT NULL CHECK (items_per_hit BETWEEN 1 AND 10),
    show_numbers boolean NOT NULL,
    update_law text NOT NULL,
    gamma double precision NOT NULL,
    epsilon double precision NOT NULL,
    tie_margin_points integer NOT NULL,
    selection text NOT NULL,
    hits_per_iteration integer,
    leaders_as_companions boolean NOT NULL,
    seed bigint NOT NULL,
    judgments_per_item integer NOT NULL,
    hits_per_annotator integer,
    repeat_items boolean NOT NULL,
    lease_minutes integer NOT NULL,
    prolific_completion_code text,
    iteration integer DEFAULT -1 NOT NULL,
    created_at timestamptz NOT NULL,
    launched_at timestamptz,
    finished_at timestamptz,
    minutes_per_hit double precision,
    pay text,
    archived_at timestamptz,
    design text DEFAULT 'slider' NOT NULL,
    revision integer DEFAULT 0 NOT NULL,
    decided bigint DEFAULT 0 NOT NULL,
    rule text DEFAULT 'easl' NOT NULL,
    prior double precision[],
    design_settings jsonb DEFAULT '{}' NOT NULL,
    fewest_items integer DEFAULT 1 NOT NULL,
    always_shown integer[] DEFAULT '{}' NOT NULL,
    cannot_be_judged boolean DEFAULT false NOT NULL,
    unjudged_reasons text[] DEFAULT '{}' NOT NULL,
    unjudged_people integer DEFAULT 2 NOT NULL,
    rehearsal_of bigint UNIQUE REFERENCES campaigns (id) ON DELETE CASCADE,
    tried_at timestamptz,
    implied_asked_percent integer,
    content text DEFAULT 'text' NOT NULL,
    source_column text,
    reference_column text,
    differences text DEFAULT 'none' NOT NULL,
    https_media boolean DEFAULT false NOT NULL,
    segment_count integer DEFAULT 0 NOT NULL,
    criteria jsonb DEFAULT '[]' NOT NULL,
    criteria_shown text DEFAULT 'in turn' NOT NULL,
    asked_by text DEFAULT '' NOT NULL,
    asked_criterion smallint DEFAULT 0,
    welcome boolean DEFAULT false NOT NULL,
    consent text DEFAULT '' NOT NULL,
    visit_version integer DEFAULT 0 NOT NULL,
    questions text[] DEFAULT '{}' NOT NULL,
    quality_preset text DEFAULT 'watch' NOT NULL,
    quality_rules text[] DEFAULT '{}' NOT NULL,
    false_alarms double precision DEFAULT 2 NOT NULL,
    open_link boolean DEFAULT true NOT NULL,
    passphrase text DEFAULT '' NOT NULL,
    language text DEFAULT 'browser' NOT NULL,
    alert_emails text[] DEFAULT '{}' NOT NULL,
    alert_webhook text,
    alert_quiet_minutes integer,
    checks_percent double precision,
    has_checks boolean DEFAULT false NOT NULL,
    training text DEFAULT '' NOT NULL,
    qualification text DEFAULT '' NOT NULL,
    pass_percent integer DEFAULT 80 NOT NULL,
    qualification_tries integer DEFAULT 1 NOT NULL,
    pay_per_hit double precision,
    currency text DEFAULT 'USD' NOT NULL,
    in_short text DEFAULT '' NOT NULL,
    leave_early boolean DEFAULT false NOT NULL,
    break_minutes integer,
    return_completed text,
    return_failed_checks text,
    return_screened_out text,
    return_nothing_left text,
    undo boolean DEFAULT true NOT NULL,
    comment_on text DEFAULT 'none' NOT NULL,
    flag_reasons text[] DEFAULT '{}' NOT NULL,
    flag_people integer DEFAULT 2 NOT NULL,
    gold_feedback boolean DEFAULT false NOT NULL,
    flag_on text DEFAULT 'none' NOT NULL,
    best_items integer DEFAULT 10 NOT NULL,
    threshold double precision DEFAULT 50 NOT NULL,
    open_platforms boolean,
    goal text DEFAULT 'none' NOT NULL,
    goal_percent integer DEFAULT 95 NOT NULL,
    goal_within double precision DEFAULT 5 NOT NULL,
    goal_width double precision DEFAULT 10 NOT NULL,
    goal_correlation double precision DEFAULT 0.9 NOT NULL,
    when_reached text DEFAULT 'tell' NOT NULL,
    goal_reached text,
    releases integer DEFAULT 0 NOT NULL,
    people_per_address integer CHECK (people_per_address >= 1),
    latex boolean DEFAULT false NOT NULL,
    newest_plan jsonb,
    CONSTRAINT campaigns_archived_check CHECK (archived_at IS NULL OR status <> 'running'),
    CONSTRAINT campaigns_fewest_items_check CHECK (fewest_items BETWEEN 1 AND items_per_hit),
    CONSTRAINT campaigns_positive_check CHECK (judgments_per_item > 0 AND lease_minutes > 0)
);

CREATE TABLE alerts (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    occasion text NOT NULL,
    about text NOT NULL,
    because text DEFAULT '' NOT NULL,
    raised_at timestamptz DEFAULT now() NOT NULL,
    seen_at timestamptz,
    seen_by text,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, kind, occasion)
);

CREATE TABLE alert_messages (
    campaign_id bigint NOT NULL,
    alert_id bigint NOT NULL,
    way text NOT NULL CHECK (way IN ('email', 'webhook')),
    tries integer DEFAULT 0 NOT NULL,
    next_try_at timestamptz DEFAULT now() NOT NULL,
    sent_at timestamptz,
    problem text,
    receiver text DEFAULT '' NOT NULL,
    PRIMARY KEY (campaign_id, alert_id, way, receiver),
    CONSTRAINT alert_messages_alert_id_fkey FOREIGN KEY (campaign_id, alert_id)
        REFERENCES alerts (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX alert_messages_due_idx ON alert_messages (next_try_at) WHERE sent_at IS NULL;

CREATE TABLE annotators (
    id bigint GENERATED ALWAYS AS IDENTITY,
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    platform text NOT NULL,
    worker_id text NOT NULL,
    pseudonym text NOT NULL,
    created_at timestamptz NOT NULL,
    admitted integer DEFAULT 0 NOT NULL,
    barred_at timestamptz,
    barred text CHECK (barred IN ('held', 'excluded')),
    barred_reason text,
    barred_by text,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, platform, worker_id),
    UNIQUE (campaign_id, pseudonym)
);

CREATE TABLE api_tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name text NOT NULL,
    token_hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    last_used_from text,
    scopes text[] NOT NULL,
    campaign_id bigint REFERENCES campaigns (id) ON DELETE CASCADE
);
CREATE INDEX api_tokens_campaign_id_idx ON api_tokens (campaign_id);
CREATE INDEX api_tokens_user_id_idx ON api_tokens (user_id);

CREATE TABLE assignments (
    id bigint GENERATED ALWAYS AS IDENTITY,
    annotator_id bigint NOT NULL,
    external_id text NOT NULL,
    arrival jsonb NOT NULL,
    arrived_at timestamptz NOT NULL,
    completed_at timestamptz,
    campaign_id bigint NOT NULL,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, annotator_id, external_id),
    CONSTRAINT assignments_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX assignments_external_id_idx ON assignments (campaign_id, external_id);

CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    noted_at timestamptz DEFAULT now() NOT NULL,
    who text NOT NULL,
    way text NOT NULL CHECK (way IN ('page', 'api', 'command', 'server')),
    campaign_id bigint,
    campaign text,
    action text NOT NULL,
    about text DEFAULT '' NOT NULL,
    before jsonb,
    after jsonb,
    answers bigint
);
CREATE INDEX audit_log_campaign_id_idx ON audit_log (campaign_id, id);
CREATE INDEX audit_log_noted_at_idx ON audit_log (noted_at);

CREATE TABLE campaign_links (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    id bigint GENERATED ALWAYS AS IDENTITY,
    token_hash bytea NOT NULL UNIQUE,
    words text NOT NULL,
    made_by text NOT NULL,
    made_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, id)
);

CREATE TABLE campaign_members (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role text NOT NULL CHECK (role IN ('viewer', 'manager', 'owner')),
    added_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, user_id)
);
CREATE INDEX campaign_members_user_id_idx ON campaign_members (user_id);

CREATE TABLE check_items (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    number integer NOT NULL,
    external_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('gold', 'attention')),
    shown text NOT NULL,
    expected jsonb NOT NULL,
    fields json NOT NULL,
    PRIMARY KEY (campaign_id, number),
    UNIQUE (campaign_id, external_id)
);

CREATE TABLE check_reports (
    campaign_id bigint NOT NULL,
    check_number integer NOT NULL,
    annotator_id bigint NOT NULL,
    reported_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, check_number, annotator_id),
    CONSTRAINT check_reports_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX check_reports_annotator_id_idx ON check_reports (campaign_id, annotator_id);

CREATE TABLE consent_texts (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    version integer NOT NULL,
    markdown text NOT NULL,
    sha256 text NOT NULL,
    since timestamptz DEFAULT now() NOT NULL,
    PRIMARY KEY (campaign_id, version)
);

CREATE TABLE crowds (
    campaign_id bigint PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    described jsonb NOT NULL,
    led_until timestamptz NOT NULL
);

CREATE TABLE experiment_arms (
    experiment text NOT NULL,
    arm text NOT NULL,
    campaign_id bigint NOT NULL UNIQUE REFERENCES campaigns (id) ON DELETE CASCADE,
    link_key text NOT NULL,
    PRIMARY KEY (experiment, arm)
);
CREATE INDEX experiment_arms_link_key_idx ON experiment_arms (link_key);

CREATE TABLE findings (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    id bigint GENERATED ALWAYS AS IDENTITY,
    annotator_id bigint NOT NULL,
    rule text NOT NULL,
    action text NOT NULL,
    seen jsonb NOT NULL,
    said text NOT NULL,
    found_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, annotator_id, rule, action),
    CONSTRAINT findings_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
);

CREATE TABLE hits (
    id bigint GENERATED ALWAYS AS IDENTITY,
    campaign_id bigint NOT NULL,
    annotator_id bigint NOT NULL,
    assignment_id bigint NOT NULL,
    leader integer,
    items integer[] NOT NULL,
    iteration integer,
    ordinal integer,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    closed_at timestamptz,
    draft jsonb,
    not_applicable integer[],
    untouched_by bytea,
    segment integer,
    shown_as integer[],
    drawn_because text,
    leader_probability double precision,
    PRIMARY KEY (campaign_id, id),
    CONSTRAINT hits_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
    CONSTRAINT hits_assignment_id_fkey FOREIGN KEY (campaign_id, assignment_id)
        REFERENCES assignments (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX hits_annotator_id_idx ON hits (campaign_id, annotator_id);
CREATE INDEX hits_assignment_id_idx ON hits (campaign_id, assignment_id);
CREATE INDEX hits_held_idx ON hits USING gin ((ARRAY [campaign_id]), items) WITH (fastupdate = off)
    WHERE num_nonnulls(closed_at) = 0;
CREATE INDEX hits_id_idx ON hits (id);
CREATE INDEX hits_not_applicable_idx ON hits (campaign_id) WHERE not_applicable IS NOT NULL;
CREATE UNIQUE INDEX hits_one_open_idx ON hits (campaign_id, assignment_id)
    WHERE closed_at IS NULL AND assignment_id IS NOT NULL;
CREATE INDEX hits_open_idx ON hits (campaign_id, expires_at) WHERE closed_at IS NULL AND leader IS NOT NULL;
CREATE INDEX hits_planned_idx ON hits (campaign_id, iteration, ordinal) WHERE iteration IS NOT NULL;
CREATE INDEX hits_untouched_idx ON hits (campaign_id, expires_at, untouched_by)
    WHERE closed_at IS NULL AND untouched_by IS NOT NULL;

CREATE TABLE check_answers (
    campaign_id bigint NOT NULL,
    hit_id bigint NOT NULL,
    check_number integer NOT NULL,
    annotator_id bigint NOT NULL,
    value double precision NOT NULL,
    answered_at timestamptz NOT NULL,
    changed_to double precision,
    PRIMARY KEY (campaign_id, hit_id, check_number),
    CONSTRAINT check_answers_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
    CONSTRAINT check_answers_hit_id_fkey FOREIGN KEY (campaign_id, hit_id)
        REFERENCES hits (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX check_answers_annotator_id_idx ON check_answers (campaign_id, annotator_id);

CREATE TABLE hit_checks (
    campaign_id bigint NOT NULL,
    hit_id bigint NOT NULL,
    place integer NOT NULL,
    check_number integer NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (campaign_id, hit_id, place),
    CONSTRAINT hit_checks_hit_id_fkey FOREIGN KEY (campaign_id, hit_id)
        REFERENCES hits (campaign_id, id) ON DELETE CASCADE
);

CREATE TABLE identities (
    issuer text NOT NULL,
    subject text NOT NULL,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    connected_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, user_id)
);
CREATE INDEX identities_user_id_idx ON identities (user_id);

CREATE TABLE invitations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    campaign_id bigint REFERENCES campaigns (id) ON DELETE CASCADE,
    role text NOT NULL,
    words text NOT NULL,
    invited_by bigint REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX invitations_campaign_id_idx ON invitations (campaign_id);
CREATE INDEX invitations_invited_by_idx ON invitations (invited_by);

CREATE TABLE items (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    number integer NOT NULL,
    external_id text NOT NULL,
    shown text NOT NULL,
    fields json NOT NULL,
    prior double precision[],
    PRIMARY KEY (campaign_id, number),
    UNIQUE (campaign_id, external_id)
);

CREATE TABLE login_failures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    address text NOT NULL,
    failed_at timestamptz NOT NULL,
    browser text
);
CREATE INDEX login_failures_failed_at_idx ON login_failures (failed_at);

CREATE TABLE logins (
    token_hash bytea PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    idle_at timestamptz NOT NULL,
    by_link_at timestamptz
);
CREATE INDEX logins_user_id_idx ON logins (user_id);

CREATE TABLE media (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    number integer NOT NULL,
    name text NOT NULL,
    address uuid DEFAULT gen_random_uuid() NOT NULL UNIQUE,
    content_type text NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (campaign_id, number),
    UNIQUE (campaign_id, name)
);

CREATE TABLE media_pieces (
    campaign_id bigint NOT NULL,
    number integer NOT NULL,
    place integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (campaign_id, number, place),
    CONSTRAINT media_pieces_number_fkey FOREIGN KEY (campaign_id, number)
        REFERENCES media (campaign_id, number) ON DELETE CASCADE
);

CREATE TABLE media_reports (
    campaign_id bigint NOT NULL,
    item integer NOT NULL,
    annotator_id bigint NOT NULL,
    reported_at timestamptz NOT NULL,
    segment integer DEFAULT 0 NOT NULL,
    PRIMARY KEY (campaign_id, item, segment, annotator_id),
    CONSTRAINT media_reports_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX media_reports_annotator_id_idx ON media_reports (campaign_id, annotator_id);

CREATE TABLE one_time_logins (
    token_hash bytea PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX one_time_logins_user_id_idx ON one_time_logins (user_id);

CREATE TABLE outputs (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    segment integer NOT NULL,
    item integer NOT NULL,
    shown text NOT NULL,
    digest text,
    PRIMARY KEY (campaign_id, segment, item)
);

CREATE TABLE personal_links (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    number integer NOT NULL,
    name text NOT NULL,
    link text NOT NULL,
    added_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, number),
    UNIQUE (campaign_id, link),
    UNIQUE (campaign_id, name)
);

CREATE TABLE planned_hits (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    iteration integer NOT NULL,
    ordinal integer NOT NULL,
    leader integer NOT NULL,
    items integer[] NOT NULL,
    drawn_because text,
    leader_probability double precision,
    PRIMARY KEY (campaign_id, iteration, ordinal)
);

CREATE TABLE posteriors (
    campaign_id bigint NOT NULL,
    subject integer NOT NULL,
    state double precision[] NOT NULL,
    score double precision NOT NULL,
    variance double precision NOT NULL,
    judgments integer DEFAULT 0 NOT NULL,
    revision integer DEFAULT 0 NOT NULL,
    criterion smallint DEFAULT 0 NOT NULL,
    unjudged integer DEFAULT 0 NOT NULL,
    settled boolean DEFAULT false NOT NULL,
    PRIMARY KEY (campaign_id, criterion, subject, revision)
) WITH (fillfactor = 70);

CREATE SEQUENCE record_seq;

CREATE TABLE responses (
    seq bigint DEFAULT nextval('record_seq') NOT NULL,
    campaign_id bigint NOT NULL,
    hit_id bigint NOT NULL,
    annotator_id bigint NOT NULL,
    source text NOT NULL,
    items integer[] NOT NULL,
    "values" double precision[] NOT NULL,
    received_at timestamptz NOT NULL,
    transaction_id xid8 DEFAULT pg_current_xact_id() NOT NULL,
    extra jsonb,
    telemetry jsonb,
    segment integer,
    replaces bigint,
    PRIMARY KEY (campaign_id, seq),
    CONSTRAINT responses_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE RESTRICT,
    CONSTRAINT responses_hit_id_fkey FOREIGN KEY (campaign_id, hit_id)
        REFERENCES hits (campaign_id, id) ON DELETE RESTRICT
);
CREATE INDEX responses_annotator_id_idx ON responses (campaign_id, annotator_id);
CREATE UNIQUE INDEX responses_hit_id_idx ON responses (campaign_id, hit_id, coalesce(replaces, 0));
CREATE INDEX responses_remarks_idx ON responses (campaign_id, seq) WHERE extra ? 'remarks';
CREATE UNIQUE INDEX responses_replaces_idx ON responses (campaign_id, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX responses_segment_idx ON responses (campaign_id, segment) WHERE segment IS NOT NULL;
CREATE INDEX responses_transaction_id_idx ON responses (transaction_id);
CREATE INDEX responses_unjudged_idx ON responses (campaign_id, seq) WHERE extra ? 'cannot_be_judged';

CREATE TABLE decisions (
    campaign_id bigint NOT NULL,
    seq bigint DEFAULT nextval('record_seq') NOT NULL,
    kind text NOT NULL CHECK (kind IN ('exclude', 'include', 'withdraw')),
    annotator_id bigint,
    response_seq bigint,
    reason text NOT NULL,
    decided_by text NOT NULL,
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, seq),
    CONSTRAINT decisions_about_one_check CHECK ((annotator_id IS NULL) <> (response_seq IS NULL)),
    CONSTRAINT decisions_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE RESTRICT,
    CONSTRAINT decisions_response_seq_fkey FOREIGN KEY (campaign_id, response_seq)
        REFERENCES responses (campaign_id, seq) ON DELETE CASCADE
);
CREATE INDEX decisions_annotator_id_idx ON decisions (campaign_id, annotator_id);
CREATE INDEX decisions_response_seq_idx ON decisions (campaign_id, response_seq);

CREATE TABLE segments (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    number integer NOT NULL,
    external_id text NOT NULL,
    source text,
    reference text,
    PRIMARY KEY (campaign_id, number),
    UNIQUE (campaign_id, external_id)
);

CREATE TABLE states (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    kind text NOT NULL,
    number bigint NOT NULL,
    state bytea NOT NULL,
    since bytea DEFAULT '\x' NOT NULL,
    revision integer DEFAULT 0 NOT NULL,
    layout smallint NOT NULL,
    criterion smallint DEFAULT 0 NOT NULL,
    PRIMARY KEY (campaign_id, revision, criterion, kind, number)
);

CREATE TABLE visit_allowances (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    address bytea NOT NULL,
    full_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, address)
);
CREATE INDEX visit_allowances_full_at_idx ON visit_allowances (full_at);

CREATE TABLE visit_refusals (
    campaign_id bigint NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    day date NOT NULL,
    refused integer NOT NULL,
    PRIMARY KEY (campaign_id, day)
);

CREATE TABLE visits (
    campaign_id bigint NOT NULL,
    annotator_id bigint NOT NULL,
    step text NOT NULL,
    version integer NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('passed', 'declined', 'failed', 'taken')),
    said jsonb DEFAULT '{}' NOT NULL,
    taken_at timestamptz NOT NULL,
    PRIMARY KEY (campaign_id, annotator_id, step, version),
    CONSTRAINT visits_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
        REFERENCES annotators (campaign_id, id) ON DELETE CASCADE
);

-- Names of annotators on pages and in exports: A1, A2, ... in the order in which they came.
CREATE VIEW named_annotators AS
    SELECT id, campaign_id, pseudonym, 'A' || row_number() OVER (PARTITION BY campaign_id ORDER BY id) AS name
    FROM annotators;

-- Posteriors of each campaign's present revision.
CREATE VIEW current_posteriors AS
    SELECT p.campaign_id, p.revision, p.criterion, p.subject AS number, p.state, p.score, p.variance, p.judgments,
           p.unjudged, p.settled
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision;

-- What each item begins with: its own prior, or its campaign's.
CREATE VIEW priors AS
    SELECT i.campaign_id, i.number, coalesce(i.prior, c.prior) AS state
    FROM items i JOIN campaigns c ON c.id = i.campaign_id;

-- Annotators and responses of a campaign that do not count, by its decisions up to a sequence number.
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
$$;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'lines of % are neither changed nor taken out', TG_TABLE_NAME USING ERRCODE = '42501';
END $$;

CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Annotators, assignments and HITs with answers cannot be deleted; a campaign is deleted whole, its record first.
CREATE FUNCTION delete_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM decisions WHERE campaign_id = OLD.id;
    DELETE FROM responses WHERE campaign_id = OLD.id;
    DELETE FROM posteriors WHERE campaign_id = OLD.id;
    RETURN OLD;
END $$;

CREATE TRIGGER campaigns_delete_record BEFORE DELETE ON campaigns
    FOR EACH ROW EXECUTE FUNCTION delete_record();
