-- The runs with which a capability is tested. Their records are kept as long as the capability is there. Times are
-- milliseconds since 1970.
CREATE TABLE capability_golden (
    capability INTEGER NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    run TEXT NOT NULL,
    principal TEXT NOT NULL,
    at INTEGER NOT NULL,
    mark BLOB,
    PRIMARY KEY (capability, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX capability_golden_run ON capability_golden (run);
