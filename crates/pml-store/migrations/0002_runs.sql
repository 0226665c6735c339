-- Runs: how each stands, who works on it, its journal, what it asks and what is answered. Bodies are
-- sealed with the key of their run; times are milliseconds since 1970.

-- Everything else refers to a run by its number, which grows in the order of creation. The row is
-- small and changes with the run; what is large stands apart.
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    intent TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    state TEXT NOT NULL,
    error_code TEXT,
    calls INTEGER NOT NULL DEFAULT 0,
    question_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    wake_at INTEGER,
    expires_at INTEGER,
    purged_at INTEGER,
    owner_pid INTEGER,
    owner_started TEXT,
    lease_until INTEGER,
    fence INTEGER NOT NULL,
    idempotency_key TEXT,
    request_digest TEXT,
    CHECK ((owner_pid IS NULL) = (owner_started IS NULL) AND (owner_pid IS NULL) = (lease_until IS NULL)),
    CHECK ((idempotency_key IS NULL) = (request_digest IS NULL))
) STRICT;
CREATE INDEX run_principal ON run (principal, number);
CREATE INDEX run_principal_state ON run (principal, state, number);
CREATE INDEX run_open ON run (state) WHERE ended_at IS NULL;
CREATE INDEX run_ended ON run (ended_at) WHERE ended_at IS NOT NULL AND purged_at IS NULL;
CREATE UNIQUE INDEX run_idempotency ON run (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- The key of a run, wrapped by one that is not in the database. With its row go all bodies.
CREATE TABLE run_key (
    run INTEGER PRIMARY KEY REFERENCES run (number),
    wrapped BLOB NOT NULL
) STRICT;

-- `plan`, `outcome` and `question`, each at most once.
CREATE TABLE run_body (
    run INTEGER NOT NULL REFERENCES run (number),
    part TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, part)
) STRICT, WITHOUT ROWID;

-- Numbered from 1 without gaps.
CREATE TABLE journal (
    run INTEGER NOT NULL REFERENCES run (number),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call INTEGER,
    frame INTEGER NOT NULL,
    node TEXT,
    tool TEXT,
    digest TEXT,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE answer (
    run INTEGER NOT NULL REFERENCES run (number),
    question_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, question_id)
) STRICT, WITHOUT ROWID;
