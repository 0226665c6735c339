-- The sessions of people at the dashboard. `cookie`, `csrf` and `passphrase` are digests. `mark` vouches for the row and is
-- made with a key that is not in the database; it does not cover `used_at`.
CREATE TABLE dashboard_session (
    cookie TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    csrf TEXT NOT NULL,
    passphrase TEXT,
    started_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    mark TEXT NOT NULL
) STRICT, WITHOUT ROWID;
