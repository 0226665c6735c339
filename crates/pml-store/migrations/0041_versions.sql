-- The versions of capabilities that have more than one. The capability of this very name is the one in force; the others
-- have the name with `@` and their number. `offered_because` is there as long as nobody has put an offered one in force.
-- Times are milliseconds since 1970.
CREATE TABLE capability_release (
    principal TEXT NOT NULL,
    name TEXT NOT NULL,
    number INTEGER NOT NULL,
    capability INTEGER NOT NULL UNIQUE REFERENCES capability (number) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    offered_because TEXT,
    mark BLOB,
    PRIMARY KEY (principal, name, number)
) STRICT, WITHOUT ROWID;
