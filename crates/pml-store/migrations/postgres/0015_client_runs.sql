-- What was analysed of programs that clients run themselves, and the traces that they sent.
CREATE TABLE learning_context (
    principal TEXT COLLATE "C" NOT NULL,
    workflow TEXT COLLATE "C" NOT NULL,
    by_key BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (principal, workflow)
);

CREATE INDEX learning_context_expiry ON learning_context (expires_at);

CREATE TABLE client_trace (
    principal TEXT COLLATE "C" NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, client, seq)
);
