-- Real results that stand in for calls that are not made, by principal. Times are milliseconds since 1970.

CREATE TABLE mock (
    principal TEXT NOT NULL,
    -- A hash of principal, tool, definition and arguments.
    id TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- Digest of the tool's definition. A mock of another definition is never used.
    digest TEXT NOT NULL,
    -- Names, types and classes of the arguments: calls with the same pattern are similar.
    pattern TEXT NOT NULL,
    arguments_digest TEXT NOT NULL,
    arguments TEXT NOT NULL,
    result TEXT NOT NULL,
    -- fresh, canonical, deprecated, stale or pinned.
    status TEXT NOT NULL,
    -- Uses, successes and failures, as JSON.
    counts TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    used_at INTEGER,
    mark BLOB,
    PRIMARY KEY (principal, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX mock_pattern ON mock (principal, tool, digest, pattern);

-- How often a mock was looked for and found, by principal and tool.
CREATE TABLE mock_lookup (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    equal INTEGER NOT NULL,
    similar INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    PRIMARY KEY (principal, tool)
) STRICT, WITHOUT ROWID;
