-- The store in PostgreSQL, as SQLite has it after its migrations up to 0018. What tables and columns mean is said
-- there. `COLLATE "C"` orders texts by their bytes, as SQLite does. Times are milliseconds since 1970.

-- The last number that each table gave to a row. A sequence would not do: its numbers are not given back when a
-- transaction fails, so a transaction could not be repeated with the same result. Writers take turns anyway.
CREATE TABLE row_number (
    of TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);

CREATE FUNCTION next_number(of_table TEXT) RETURNS BIGINT LANGUAGE SQL VOLATILE AS $$
    INSERT INTO row_number (of, last) VALUES (of_table, 1)
    ON CONFLICT (of) DO UPDATE SET last = row_number.last + 1 RETURNING last
$$;

-- One row: how often anything was committed, and the fingerprint of the key that rows are sealed and marked with.
CREATE TABLE store (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL,
    key_fingerprint TEXT COLLATE "C"
);
INSERT INTO store (one, version) VALUES (1, 0);

-- The last batch of changes that each writer committed, so that a writer whose connection was cut while it committed
-- finds out whether it did.
CREATE TABLE committed_batch (
    writer TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    batch BIGINT NOT NULL,
    at BIGINT NOT NULL
);

-- When each gateway was last seen, by the clock of the database. A gateway also holds an advisory lock.
CREATE TABLE gateway (
    pid BIGINT NOT NULL,
    started TEXT COLLATE "C" NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (pid, started)
);

-- The encoding of the database does not change, so this is immutable.
CREATE FUNCTION text_digest(content TEXT) RETURNS BYTEA LANGUAGE SQL IMMUTABLE AS $$
    SELECT sha256(convert_to(content, 'UTF8'))
$$;

-- The sum of all values, 0 if there are none, as SQLite has it.
CREATE AGGREGATE total(DOUBLE PRECISION) (SFUNC = float8pl, STYPE = DOUBLE PRECISION, INITCOND = '0');

CREATE TABLE definition (
    id BIGINT DEFAULT next_number('definition') NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    raw TEXT COLLATE "C" NOT NULL,
    mark BYTEA,
    PRIMARY KEY (id),
    UNIQUE (principal, content)
);

CREATE TABLE server (
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    launch TEXT COLLATE "C" NOT NULL,
    info TEXT COLLATE "C",
    instructions TEXT COLLATE "C",
    protocol_version TEXT COLLATE "C",
    era TEXT COLLATE "C",
    capabilities TEXT COLLATE "C",
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (principal, server)
);

CREATE TABLE tool (
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    offered BOOLEAN NOT NULL,
    definition BIGINT NOT NULL REFERENCES definition (id),
    defined_at BIGINT NOT NULL,
    first_seen_at BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, server, tool),
    UNIQUE (principal, server, identifier)
);

CREATE INDEX tool_definition ON tool (definition);

CREATE TABLE replaced_definition (
    id BIGINT DEFAULT next_number('replaced_definition') NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    definition BIGINT NOT NULL REFERENCES definition (id),
    seen_at BIGINT NOT NULL,
    replaced_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX replaced_definition_tool ON replaced_definition (principal, server, tool, id);

CREATE INDEX replaced_definition_definition ON replaced_definition (definition);

CREATE TABLE catalogue_change (
    id BIGINT DEFAULT next_number('catalogue_change') NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    before TEXT COLLATE "C",
    after TEXT COLLATE "C",
    at BIGINT NOT NULL,
    PRIMARY KEY (id),
    CHECK (before IS NOT NULL OR after IS NOT NULL)
);

CREATE INDEX catalogue_change_principal ON catalogue_change (principal, id);

CREATE TABLE catalogue_version (
    principal TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (principal)
);

CREATE TABLE server_state (
    principal TEXT COLLATE "C" NOT NULL,
    pid BIGINT NOT NULL,
    started TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (principal, pid, started, server)
);

CREATE TABLE run (
    number BIGINT DEFAULT next_number('run') NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL,
    code_hash TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    error_code TEXT COLLATE "C",
    calls BIGINT DEFAULT 0 NOT NULL,
    question_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    wake_at BIGINT,
    expires_at BIGINT,
    purged_at BIGINT,
    owner_pid BIGINT,
    owner_started TEXT COLLATE "C",
    lease_until BIGINT,
    fence BIGINT NOT NULL,
    idempotency_key TEXT COLLATE "C",
    request_digest TEXT COLLATE "C",
    answered BOOLEAN DEFAULT FALSE NOT NULL,
    voided_by TEXT COLLATE "C",
    request_mark TEXT COLLATE "C",
    capability TEXT COLLATE "C",
    learned TEXT COLLATE "C",
    failed_calls BIGINT DEFAULT 0 NOT NULL,
    speculated_calls BIGINT DEFAULT 0 NOT NULL,
    error_message TEXT COLLATE "C",
    saved_ms BIGINT DEFAULT 0 NOT NULL,
    call_bytes BIGINT DEFAULT 0 NOT NULL,
    result_bytes BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (id),
    CHECK ((owner_pid IS NULL) = (owner_started IS NULL) AND (owner_pid IS NULL) = (lease_until IS NULL)),
    CHECK ((idempotency_key IS NULL) = (request_digest IS NULL))
);

CREATE INDEX run_principal ON run (principal, number);

CREATE INDEX run_principal_state ON run (principal, state, number);

CREATE INDEX run_ended ON run (ended_at) WHERE ended_at IS NOT NULL AND purged_at IS NULL;

CREATE UNIQUE INDEX run_idempotency ON run (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE run_key (
    run BIGINT NOT NULL REFERENCES run (number),
    wrapped BYTEA NOT NULL,
    PRIMARY KEY (run)
);

CREATE TABLE run_body (
    run BIGINT NOT NULL REFERENCES run (number),
    part TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (run, part)
);

CREATE TABLE journal (
    run BIGINT NOT NULL REFERENCES run (number),
    seq BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    call BIGINT,
    frame BIGINT NOT NULL,
    node TEXT COLLATE "C",
    tool TEXT COLLATE "C",
    digest TEXT COLLATE "C",
    at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE answer (
    run BIGINT NOT NULL REFERENCES run (number),
    question_id TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (run, question_id)
);

CREATE TABLE audit (
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C",
    kind TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (seq)
);

CREATE TABLE approval_rule (
    number BIGINT NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    definition TEXT COLLATE "C" NOT NULL,
    code_hash TEXT COLLATE "C",
    arguments TEXT COLLATE "C",
    expires_at BIGINT NOT NULL,
    given_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    uses BIGINT DEFAULT 0 NOT NULL,
    used_at BIGINT,
    mark TEXT COLLATE "C",
    maker TEXT COLLATE "C" CHECK (maker = 'person'),
    row_mark BYTEA,
    PRIMARY KEY (number),
    CHECK ((mark IS NULL) = (revoked_at IS NOT NULL))
);

CREATE INDEX approval_rule_principal ON approval_rule (principal, number);

CREATE INDEX approval_rule_in_force ON approval_rule (principal, expires_at) WHERE revoked_at IS NULL;

CREATE INDEX run_owned ON run (owner_pid, owner_started) WHERE ended_at IS NULL AND owner_pid IS NOT NULL;

CREATE INDEX run_interrupted ON run (number) WHERE state = 'interrupted';

CREATE INDEX run_asks ON run (answered) WHERE question_id IS NOT NULL AND ended_at IS NULL;

CREATE INDEX run_wakes ON run (wake_at)
    WHERE wake_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL;

CREATE INDEX run_expires ON run (expires_at)
    WHERE expires_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL;

CREATE TABLE accepted_server (
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    launch TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (principal, server, launch)
);

CREATE TABLE accepted_definition (
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    launch TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    definition BIGINT NOT NULL REFERENCES definition (id),
    digest TEXT COLLATE "C" NOT NULL,
    accepted_at BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, server, launch, tool)
);

CREATE INDEX accepted_definition_definition ON accepted_definition (definition);

CREATE TABLE write_epoch (
    pid BIGINT NOT NULL,
    started TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    writes BIGINT NOT NULL,
    PRIMARY KEY (pid, started, server)
);

CREATE TABLE memory (
    one BIGINT NOT NULL,
    version BIGINT NOT NULL,
    learned_to BIGINT NOT NULL,
    effects_to BIGINT NOT NULL,
    cache_drops BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (one)
);

CREATE TABLE capability (
    number BIGINT DEFAULT next_number('capability') NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    promoted_at BIGINT,
    approved BOOLEAN DEFAULT FALSE NOT NULL,
    outside_because TEXT COLLATE "C",
    outside_seq BIGINT DEFAULT 0 NOT NULL,
    version BIGINT NOT NULL,
    usage_count BIGINT DEFAULT 0 NOT NULL,
    success_count BIGINT DEFAULT 0 NOT NULL,
    failure_count BIGINT DEFAULT 0 NOT NULL,
    failures_in_a_row BIGINT DEFAULT 0 NOT NULL,
    avg_duration_ms DOUBLE PRECISION DEFAULT 0 NOT NULL,
    last_used BIGINT,
    failing TEXT COLLATE "C",
    worked_seq BIGINT DEFAULT 0 NOT NULL,
    learning TEXT COLLATE "C" DEFAULT '{"paths":[],"dominantPath":[],"decisionStats":[]}' NOT NULL,
    examples TEXT COLLATE "C" DEFAULT '{}' NOT NULL,
    degraded_because TEXT COLLATE "C" GENERATED ALWAYS AS (CASE
        WHEN promoted_at IS NULL THEN NULL
        WHEN outside_because IS NOT NULL AND worked_seq <= outside_seq THEN outside_because
        ELSE failing END) STORED,
    state TEXT COLLATE "C" GENERATED ALWAYS AS (CASE
        WHEN promoted_at IS NULL THEN 'planned'
        WHEN outside_because IS NOT NULL AND worked_seq <= outside_seq THEN 'degraded'
        WHEN failing IS NOT NULL THEN 'degraded'
        ELSE 'active' END) STORED,
    mark BYTEA,
    PRIMARY KEY (number),
    UNIQUE (principal, name),
    UNIQUE (id)
);

CREATE INDEX capability_version ON capability (version);

CREATE INDEX capability_used ON capability (principal, last_used);

CREATE INDEX capability_planned ON capability (created_at) WHERE promoted_at IS NULL;

CREATE TABLE capability_procedure (
    capability BIGINT NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    tools TEXT COLLATE "C" NOT NULL,
    procedure TEXT COLLATE "C" NOT NULL,
    cache TEXT COLLATE "C",
    mark BYTEA,
    PRIMARY KEY (capability)
);

CREATE TABLE capability_intent (
    capability BIGINT NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    text TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    checked BIGINT DEFAULT 0 NOT NULL,
    mark BYTEA,
    -- An index entry has at most 2,704 bytes; an intent may be longer.
    text_key BYTEA GENERATED ALWAYS AS (text_digest(text)) STORED,
    PRIMARY KEY (capability, text_key)
);

CREATE INDEX capability_intent_recent ON capability_intent (capability, last_at);

CREATE TABLE capability_alias (
    id TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    capability BIGINT NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    mark BYTEA,
    PRIMARY KEY (id)
);

CREATE INDEX capability_alias_capability ON capability_alias (capability);

CREATE TABLE capability_gone (
    id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX capability_gone_version ON capability_gone (version);

CREATE TABLE trace (
    seq BIGINT DEFAULT next_number('trace') NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    capability BIGINT REFERENCES capability (number) ON DELETE SET NULL,
    own BOOLEAN NOT NULL,
    plan_hash TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    error TEXT COLLATE "C",
    duration_ms BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    parent TEXT COLLATE "C",
    priority DOUBLE PRECISION,
    cached BOOLEAN NOT NULL,
    exploratory BOOLEAN NOT NULL,
    approved BOOLEAN NOT NULL,
    first_tool TEXT COLLATE "C",
    last_tool TEXT COLLATE "C",
    tells BOOLEAN DEFAULT TRUE NOT NULL,
    mark BYTEA,
    PRIMARY KEY (seq),
    UNIQUE (principal, id)
);

CREATE INDEX trace_principal ON trace (principal, seq);

CREATE INDEX trace_capability ON trace (capability, seq) WHERE capability IS NOT NULL;

CREATE INDEX trace_priority ON trace (principal, priority, seq) WHERE priority IS NOT NULL;

CREATE INDEX trace_capability_priority ON trace (capability, priority, seq)
    WHERE capability IS NOT NULL AND priority IS NOT NULL;

CREATE INDEX trace_session ON trace (principal, session, seq) WHERE parent IS NULL;

CREATE INDEX trace_parent ON trace (principal, parent) WHERE parent IS NOT NULL;

CREATE TABLE trace_body (
    seq BIGINT NOT NULL REFERENCES trace (seq),
    lesson TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    mark BYTEA,
    PRIMARY KEY (seq)
);

CREATE TABLE observed (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    shape TEXT COLLATE "C" NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, tool, digest)
);

CREATE TABLE edge (
    principal TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, source, kind, target)
);

CREATE INDEX edge_target ON edge (principal, target);

CREATE TABLE cached_result (
    principal TEXT COLLATE "C" NOT NULL,
    capability TEXT COLLATE "C" NOT NULL,
    parameters TEXT COLLATE "C" NOT NULL,
    epoch TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    hit_count BIGINT DEFAULT 0 NOT NULL,
    intent TEXT COLLATE "C",
    stamps TEXT COLLATE "C" DEFAULT '[]' NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, capability, parameters)
);

CREATE INDEX cached_result_expires ON cached_result (principal, expires_at);

CREATE TABLE cache_drop (
    number BIGINT DEFAULT next_number('cache_drop') NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    because TEXT COLLATE "C" NOT NULL,
    what TEXT COLLATE "C" NOT NULL,
    entries BIGINT NOT NULL,
    PRIMARY KEY (number)
);

CREATE INDEX cache_drop_principal ON cache_drop (principal, number);

CREATE TABLE allowed (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    definition TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (principal, tool)
);

CREATE INDEX allowed_at ON allowed (at);

CREATE TABLE vector (
    principal TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (principal, model, text)
);

CREATE TABLE tool_use (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, tool)
);

CREATE TABLE client_key (
    number BIGINT NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    interactive BOOLEAN NOT NULL,
    asks_itself BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    mark TEXT COLLATE "C",
    PRIMARY KEY (number),
    UNIQUE (digest),
    CHECK ((mark IS NULL) = (revoked_at IS NOT NULL))
);

CREATE TABLE question_tool (
    run BIGINT NOT NULL REFERENCES run (number),
    tool TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run, tool)
);

CREATE INDEX question_tool_by_tool ON question_tool (tool);

CREATE INDEX run_request ON run (principal, request_mark) WHERE request_mark IS NOT NULL AND ended_at IS NULL;

CREATE INDEX capability_intent_checked ON capability_intent (checked);

CREATE TABLE forgotten_intent (
    capability BIGINT NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    text TEXT COLLATE "C" NOT NULL,
    -- An index entry has at most 2,704 bytes; an intent may be longer.
    text_key BYTEA GENERATED ALWAYS AS (text_digest(text)) STORED,
    PRIMARY KEY (capability, text_key)
);

CREATE TABLE sign_in (
    door TEXT COLLATE "C" NOT NULL,
    wrong BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    PRIMARY KEY (door)
);

CREATE TABLE process (
    pid BIGINT NOT NULL,
    started TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (pid, started)
);

CREATE TABLE speculation (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    hits BIGINT NOT NULL,
    misses BIGINT NOT NULL,
    wasted BIGINT NOT NULL,
    differing BIGINT NOT NULL,
    saved_us BIGINT NOT NULL,
    PRIMARY KEY (principal, tool)
);

CREATE TABLE mock (
    principal TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    pattern TEXT COLLATE "C" NOT NULL,
    arguments_digest TEXT COLLATE "C" NOT NULL,
    arguments TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    counts TEXT COLLATE "C" NOT NULL,
    recorded_at BIGINT NOT NULL,
    used_at BIGINT,
    mark BYTEA,
    PRIMARY KEY (principal, id)
);

CREATE INDEX mock_tool ON mock (principal, tool, digest);

CREATE TABLE mock_lookup (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    equal BIGINT NOT NULL,
    "similar" BIGINT NOT NULL,
    missing BIGINT NOT NULL,
    PRIMARY KEY (principal, tool)
);

CREATE TABLE explored_path (
    seq BIGINT NOT NULL REFERENCES trace (seq) ON DELETE CASCADE,
    principal TEXT COLLATE "C" NOT NULL,
    exploration TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    procedure TEXT COLLATE "C" NOT NULL,
    definitions TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    cause TEXT COLLATE "C",
    message TEXT COLLATE "C",
    mark BYTEA,
    PRIMARY KEY (seq)
);

CREATE INDEX explored_path_principal ON explored_path (principal, seq);

CREATE INDEX run_capability ON run (principal, coalesce(capability, learned), number)
    WHERE coalesce(capability, learned) IS NOT NULL;

CREATE TABLE run_claim (
    run BIGINT NOT NULL REFERENCES run (number),
    fence BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (run, fence)
);

CREATE INDEX journal_call ON journal (run, call) WHERE call IS NOT NULL;

CREATE INDEX audit_run ON audit (run) WHERE run IS NOT NULL;

CREATE INDEX run_created ON run (principal, created_at);

CREATE INDEX trace_cached ON trace (principal, created_at) WHERE cached;

INSERT INTO memory (one, version, learned_to, effects_to) VALUES (1, 0, 0, 0);

CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log only grows';
END $$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit EXECUTE FUNCTION audit_only_grows();
