-- What was analysed of programs that clients run themselves, until their traces come back. `body` is sealed with a key that
-- is not in the database; `by_key` is the number of the client's key, or 0. Times are milliseconds since 1970.
CREATE TABLE learning_context (
    principal TEXT NOT NULL,
    workflow TEXT NOT NULL,
    by_key INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (principal, workflow)
) STRICT, WITHOUT ROWID;
CREATE INDEX learning_context_expiry ON learning_context (expires_at);

-- The traces that clients sent, each with the hash that the next one has to name.
CREATE TABLE client_trace (
    principal TEXT NOT NULL,
    client TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    at INTEGER NOT NULL,
    mark BLOB,
    PRIMARY KEY (principal, client, seq)
) STRICT, WITHOUT ROWID;
