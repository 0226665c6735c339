-- How often calls of a tool succeeded, by patterns of their arguments. Learned from traces.
CREATE TABLE argument_pattern (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    pattern TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, tool, pattern)
);
