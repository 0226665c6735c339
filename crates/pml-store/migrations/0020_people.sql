-- The people who sign in beside the operator of the gateway. `name` is their principal. `passphrase` is an
-- Argon2id hash. `mark` vouches for the row and is made with a key that is not in the database.
CREATE TABLE person (
    principal TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    passphrase TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    mark TEXT NOT NULL
) STRICT, WITHOUT ROWID;
