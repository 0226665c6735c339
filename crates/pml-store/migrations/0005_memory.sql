-- What is kept of runs for good, and what was learned from it. Traces are free of secrets and therefore
-- not sealed. Times are milliseconds since 1970.

-- One row: how often capabilities changed, up to which trace was learned, and up to which trace learning
-- has had effects beyond the numbers, which are not had again when numbers are made anew.
CREATE TABLE memory (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    learned_to INTEGER NOT NULL,
    effects_to INTEGER NOT NULL
) STRICT;
INSERT INTO memory (one, version, learned_to, effects_to) VALUES (1, 0, 0, 0);

-- `outside_because` says why it was marked as degraded by somebody else than learning, and `outside_seq`
-- which was the last trace then: a later one that worked makes up for it. The columns from `usage_count`
-- on are learned, and follow from the traces alone.
CREATE TABLE capability (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    promoted_at INTEGER,
    approved INTEGER NOT NULL DEFAULT 0 CHECK (approved IN (0, 1)),
    outside_because TEXT,
    outside_seq INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL,
    usage_count INTEGER NOT NULL DEFAULT 0,
    success_count INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    avg_duration_ms REAL NOT NULL DEFAULT 0,
    last_used INTEGER,
    failing TEXT,
    worked_seq INTEGER NOT NULL DEFAULT 0,
    learning TEXT NOT NULL DEFAULT '{"paths":[],"dominantPath":[],"decisionStats":[]}',
    examples TEXT NOT NULL DEFAULT '{}',
    degraded_because TEXT GENERATED ALWAYS AS (CASE
        WHEN promoted_at IS NULL THEN NULL
        WHEN outside_because IS NOT NULL AND worked_seq <= outside_seq THEN outside_because
        ELSE failing END) VIRTUAL,
    state TEXT NOT NULL GENERATED ALWAYS AS (CASE
        WHEN promoted_at IS NULL THEN 'planned'
        WHEN outside_because IS NOT NULL AND worked_seq <= outside_seq THEN 'degraded'
        WHEN failing IS NOT NULL THEN 'degraded'
        ELSE 'active' END) VIRTUAL,
    UNIQUE (principal, name)
) STRICT;
CREATE INDEX capability_version ON capability (version);
CREATE INDEX capability_used ON capability (principal, last_used);
CREATE INDEX capability_planned ON capability (created_at) WHERE promoted_at IS NULL;

-- What a capability is; the row beside changes often and this one hardly ever. `tools` stands apart from
-- `procedure` because definitions of tools change.
CREATE TABLE capability_procedure (
    capability INTEGER PRIMARY KEY REFERENCES capability (number) ON DELETE CASCADE,
    tools TEXT NOT NULL,
    procedure TEXT NOT NULL
) STRICT;

-- Counts are learned; a row may be there before anything was.
CREATE TABLE capability_intent (
    capability INTEGER NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    text TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (capability, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX capability_intent_recent ON capability_intent (capability, last_at);

-- Ids of capabilities that were merged into another, for whose runs that other one is used.
CREATE TABLE capability_alias (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    capability INTEGER NOT NULL REFERENCES capability (number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX capability_alias_capability ON capability_alias (capability);

-- Ids that went, for those who keep capabilities in memory.
CREATE TABLE capability_gone (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX capability_gone_version ON capability_gone (version);

-- Traces, numbered in the order they were stored, which is that of learning. `capability` is the one it
-- counts for, and `own` says whether it is the one that was run and not one that that was merged into.
-- What is large stands apart.
CREATE TABLE trace (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    principal TEXT NOT NULL,
    session TEXT NOT NULL,
    capability INTEGER REFERENCES capability (number) ON DELETE SET NULL,
    own INTEGER NOT NULL CHECK (own IN (0, 1)),
    plan_hash TEXT NOT NULL,
    intent TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    duration_ms INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    parent TEXT,
    priority REAL,
    cached INTEGER NOT NULL CHECK (cached IN (0, 1)),
    exploratory INTEGER NOT NULL CHECK (exploratory IN (0, 1)),
    approved INTEGER NOT NULL CHECK (approved IN (0, 1)),
    first_tool TEXT,
    last_tool TEXT,
    UNIQUE (principal, id)
) STRICT;
CREATE INDEX trace_principal ON trace (principal, seq);
CREATE INDEX trace_capability ON trace (capability, seq) WHERE capability IS NOT NULL;
CREATE INDEX trace_priority ON trace (principal, priority, seq) WHERE priority IS NOT NULL;
CREATE INDEX trace_capability_priority ON trace (capability, priority, seq)
    WHERE capability IS NOT NULL AND priority IS NOT NULL;
CREATE INDEX trace_session ON trace (principal, session, seq) WHERE parent IS NULL;
CREATE INDEX trace_parent ON trace (principal, parent) WHERE parent IS NOT NULL;

-- `lesson` is all of the body that learning needs.
CREATE TABLE trace_body (
    seq INTEGER PRIMARY KEY REFERENCES trace (seq),
    lesson TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

-- What tools were seen to return.
CREATE TABLE observed (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    shape TEXT NOT NULL,
    PRIMARY KEY (principal, tool, digest)
) STRICT, WITHOUT ROWID;

-- In how many traces one thing came after another: tools as `server:tool`, capabilities by id.
CREATE TABLE edge (
    principal TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (principal, source, kind, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX edge_target ON edge (principal, target);

-- Results of capabilities, by what they were given. `capability` is what was run, also where that was
-- merged into another.
CREATE TABLE cached_result (
    principal TEXT NOT NULL,
    capability TEXT NOT NULL,
    parameters TEXT NOT NULL,
    epoch TEXT NOT NULL,
    result TEXT NOT NULL,
    at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    hit_count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (principal, capability, parameters)
) STRICT, WITHOUT ROWID;
CREATE INDEX cached_result_expires ON cached_result (principal, expires_at);

CREATE TABLE cache_drop (
    number INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    at INTEGER NOT NULL,
    because TEXT NOT NULL,
    what TEXT NOT NULL,
    entries INTEGER NOT NULL
) STRICT;
CREATE INDEX cache_drop_principal ON cache_drop (principal, number);
