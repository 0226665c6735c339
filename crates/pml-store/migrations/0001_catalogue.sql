-- What servers last told about themselves and their tools, what they told before, and which
-- processes hold them. Digests are hexadecimal text; times are milliseconds since 1970.

-- Each distinct text of a definition once. `content` is the digest of its bytes, `digest` that of
-- its meaning: texts that differ only in spelling or icons share a digest and are still kept exactly.
CREATE TABLE definition (
    id INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL,
    raw TEXT NOT NULL,
    UNIQUE (principal, content)
) STRICT;

CREATE TABLE server (
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    launch TEXT NOT NULL,
    info TEXT,
    instructions TEXT,
    protocol_version TEXT,
    era TEXT,
    capabilities TEXT,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (principal, server)
) STRICT, WITHOUT ROWID;

-- A row outlives the offer of its tool, so that the identifier stays taken and a tool that returns
-- is compared with what it was.
CREATE TABLE tool (
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    identifier TEXT NOT NULL,
    offered INTEGER NOT NULL CHECK (offered IN (0, 1)),
    definition INTEGER NOT NULL REFERENCES definition (id),
    defined_at INTEGER NOT NULL,
    first_seen_at INTEGER NOT NULL,
    PRIMARY KEY (principal, server, tool),
    UNIQUE (principal, server, identifier)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_definition ON tool (definition);

-- Definitions that another one replaced; the present one is in `tool`.
CREATE TABLE replaced_definition (
    id INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition INTEGER NOT NULL REFERENCES definition (id),
    seen_at INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL
) STRICT;
CREATE INDEX replaced_definition_tool ON replaced_definition (principal, server, tool, id);
CREATE INDEX replaced_definition_definition ON replaced_definition (definition);

CREATE TABLE catalogue_change (
    id INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    before TEXT,
    after TEXT,
    at INTEGER NOT NULL,
    CHECK (before IS NOT NULL OR after IS NOT NULL)
) STRICT;
CREATE INDEX catalogue_change_principal ON catalogue_change (principal, id);

-- Counts the changes of a principal's catalogue; never falls.
CREATE TABLE catalogue_version (
    principal TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE server_state (
    principal TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    server TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (principal, pid, started, server)
) STRICT, WITHOUT ROWID;
