-- The capabilities that others see beside their owner, and the project and the organisation that they were published in.
-- Times are milliseconds since 1970.
CREATE TABLE capability_publication (
    capability INTEGER PRIMARY KEY REFERENCES capability (number) ON DELETE CASCADE,
    principal TEXT NOT NULL,
    visibility TEXT NOT NULL,
    org TEXT NOT NULL,
    project TEXT NOT NULL,
    published_by TEXT NOT NULL,
    at INTEGER NOT NULL,
    -- How often others used it; by whom is not kept.
    uses INTEGER NOT NULL DEFAULT 0,
    mark BLOB
) STRICT;
-- The project and the organisation of people. Whoever has no row is in `default` of `default`.
CREATE TABLE membership (
    principal TEXT NOT NULL PRIMARY KEY,
    org TEXT NOT NULL,
    project TEXT NOT NULL,
    mark BLOB
) STRICT, WITHOUT ROWID;
