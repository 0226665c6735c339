-- How often calls of a tool succeeded, by patterns of their arguments. Learned from traces.

CREATE TABLE argument_pattern (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- A kind of value, such as `*.json`.
    pattern TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    mark BLOB,
    PRIMARY KEY (principal, tool, pattern)
) STRICT, WITHOUT ROWID;
