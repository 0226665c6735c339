-- What a person last allowed each tool to be called with, so that the next question can say what is
-- different. Times are milliseconds since 1970.

-- `body` holds the arguments, sealed with a key that is not in the database. It is not the key of the
-- run they were for: that one goes with the run, and the next question comes later.
CREATE TABLE allowed (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (principal, tool)
) STRICT, WITHOUT ROWID;
CREATE INDEX allowed_at ON allowed (at);
