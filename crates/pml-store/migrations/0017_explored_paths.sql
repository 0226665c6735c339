-- What traces show of explored paths, by principal: one row for each trace of a path that was explored, or run after it
-- was chosen.
CREATE TABLE explored_path (
    seq INTEGER PRIMARY KEY REFERENCES trace (seq) ON DELETE CASCADE,
    principal TEXT NOT NULL,
    exploration TEXT NOT NULL,
    path TEXT NOT NULL,
    -- The id that a capability of this procedure has.
    procedure TEXT NOT NULL,
    -- Digest of the definitions of its tools.
    definitions TEXT NOT NULL,
    -- The intent, with its values replaced by what they are.
    intent TEXT NOT NULL,
    -- viable, failed, worked, misleading or undecided.
    outcome TEXT NOT NULL,
    weight REAL NOT NULL,
    -- mock, tool_change or tool, where the path was misleading.
    cause TEXT,
    message TEXT,
    mark BLOB
) STRICT;

CREATE INDEX explored_path_principal ON explored_path (principal, seq);
