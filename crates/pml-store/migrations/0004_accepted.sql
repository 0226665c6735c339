-- Which definitions a person accepted, and how often each process wrote. Times are milliseconds
-- since 1970.

-- Servers, by how they are started, whose first manifest was taken as accepted.
CREATE TABLE accepted_server (
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    launch TEXT NOT NULL,
    PRIMARY KEY (principal, server, launch)
) STRICT, WITHOUT ROWID;

-- The one definition of each tool that counts as accepted; `digest` is that of its meaning.
CREATE TABLE accepted_definition (
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    launch TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition INTEGER NOT NULL REFERENCES definition (id),
    digest TEXT NOT NULL,
    accepted_at INTEGER NOT NULL,
    PRIMARY KEY (principal, server, launch, tool)
) STRICT, WITHOUT ROWID;
CREATE INDEX accepted_definition_definition ON accepted_definition (definition);

-- What was in use until now stays in use.
INSERT INTO accepted_server (principal, server, launch) SELECT principal, server, launch FROM server;
INSERT INTO accepted_definition (principal, server, launch, tool, definition, digest, accepted_at)
    SELECT tool.principal, tool.server, server.launch, tool.tool, tool.definition, definition.digest, tool.defined_at
    FROM tool
    JOIN server ON server.principal = tool.principal AND server.server = tool.server
    JOIN definition ON definition.id = tool.definition;

-- How often something may have been changed by a call, counted by each process for itself: on all
-- servers where `server` is empty, on that one alone otherwise. What processes that have ended
-- counted is kept under process 0. A write is one for everybody, whoever makes it.
CREATE TABLE write_epoch (
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    server TEXT NOT NULL,
    writes INTEGER NOT NULL,
    PRIMARY KEY (pid, started, server)
) STRICT, WITHOUT ROWID;
