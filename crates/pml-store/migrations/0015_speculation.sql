-- What came of the calls that were made before their programs asked for them, by principal and tool.

CREATE TABLE speculation (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    hits INTEGER NOT NULL,
    misses INTEGER NOT NULL,
    wasted INTEGER NOT NULL,
    differing INTEGER NOT NULL,
    -- Microseconds that programs did not have to wait.
    saved_us INTEGER NOT NULL,
    PRIMARY KEY (principal, tool)
) STRICT, WITHOUT ROWID;
